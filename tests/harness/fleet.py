"""Worker processes under test: started on a leash, signalled by pid, and read by what they log and how they end."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from cauce.process import EXIT_FAILED
from infra.processes import Process, Spawner
from tests.harness.plan import Fault, Plan, Switch

ROOT: Final = Path(__file__).parents[2]
LOOK_SECONDS: Final = 0.02
READY_SECONDS: Final = 60.0  # about 4 s here; two cores shared with others may take many times that
STOP_SECONDS: Final = 10.0  # what the issue allows a worker for its way down
FAILED: Final = EXIT_FAILED
LAST_WORDS: Final = "worker ends, the next one goes on from the last commit"
# Where bytecode may not be written next to the source, every start would compile Faust anew: a second each.
PYCACHE: Final = Path(tempfile.gettempdir()) / f"cauce-pycache-{os.getuid()}"
COMPILED_ONCE: Final = ("env", "-u", "PYTHONDONTWRITEBYTECODE", f"PYTHONPYCACHEPREFIX={PYCACHE}")


def wait_for(condition: Callable[[], bool], seconds: float, otherwise: str) -> float:
    """Look until it is true and return how long that took; past the deadline fail with `otherwise`."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > seconds:
            raise AssertionError(f"{otherwise} (waited {seconds} s)")
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - started


class Worker:
    """One process; another one is made when it is started again."""

    def __init__(self, plan: Plan, child: "subprocess.Popen[bytes]", log_file: Path) -> None:
        self.plan = plan
        self.log_file = log_file
        self.started_at = time.monotonic()
        self._child = child
        self._process = Process.of(child.pid)

    @property
    def name(self) -> str:
        return self.plan.worker

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def code(self) -> int | None:
        return self._child.poll()

    @property
    def stopped(self) -> bool:
        return self._process.letter() in ("T", "t")

    def send(self, sign: signal.Signals) -> None:
        if self.code is None:
            os.kill(self.pid, sign)

    def kill(self) -> None:
        """SIGKILL; gone when this returns."""
        self.send(signal.SIGKILL)
        self._child.wait()

    def pause(self) -> None:
        self.send(signal.SIGSTOP)
        wait_for(lambda: self.stopped or self.code is not None, 10, f"{self.name}: SIGSTOP had no effect")

    def resume(self) -> None:
        self.send(signal.SIGCONT)

    def terminate(self, seconds: float = STOP_SECONDS) -> int:
        """SIGTERM, and the exit code."""
        self.send(signal.SIGTERM)
        return self.wait_end(seconds)

    def wait_end(self, seconds: float) -> int:
        wait_for(lambda: self.code is not None, seconds, f"{self.name}: did not end; its log is {self.log_file}")
        assert self.code is not None
        return self.code

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        self.wait_said("worker ready", seconds)

    def wait_said(self, message: str, seconds: float = READY_SECONDS) -> dict[str, Any]:
        def known() -> bool:
            if self.said(message):
                return True
            assert self.code is None, f"{self.name}: ended with {self.code} before saying {message!r}: {self.tail()}"
            return False

        wait_for(known, seconds, f"{self.name}: never said {message!r}: {self.tail()}")
        return self.said(message)[0]

    def wait_fault(self, seconds: float = READY_SECONDS) -> None:
        """Until the planned fault has happened: without it there is no verdict."""

        def happened() -> bool:
            code = self.code  # before the look: it may say so and die in between
            if self.plan.reached.exists():
                return True
            assert code is None, f"{self.name}: ended with {self.code} before {self.plan.fault}: {self.tail()}"
            return False

        wait_for(happened, seconds, f"{self.name}: {self.plan.fault} never happened; its log is {self.log_file}")

    def said(self, message: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line.get("message") == message]

    def lines(self) -> list[dict[str, Any]]:
        lines = self.log_file.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        whole = (line for line in lines if line.startswith("{") and line.endswith("}\n"))  # the last may still grow
        return [json.loads(line) for line in whole]

    def tail(self, lines: int = 8) -> str:
        return "\n".join(self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


class Fleet:
    """The workers of one test. Leaving the `with` block ends all of them, by pid."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.workers: dict[str, Worker] = {}  # the newest process of each
        self.restarts = 0
        self.all: list[Worker] = []
        self._spawner = Spawner()
        plan.data.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()
        for worker in self.all:
            print(f"---- {worker.log_file.name}: ended with {worker.code}\n{worker.tail()}")

    def close(self) -> None:
        for worker in self.all:
            worker.kill()
        self._spawner.close()

    def start(
        self,
        name: str,
        fault: Fault | None = None,
        off: tuple[Switch, ...] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> Worker:
        plan = replace(self.plan.of(name, fault), off=off or self.plan.off)
        for leftover in (plan.reached, plan.go_on):
            leftover.unlink(missing_ok=True)
        log_file = self.plan.data / f"{name}-{len(self.all)}.log"
        with log_file.open("wb") as output:
            own = [f"{variable}={value}" for variable, value in variables.items()]
            command = [*COMPILED_ONCE, *own, sys.executable, "-m", "tests.harness.worker", plan.to_json()]
            worker = Worker(plan, self._spawner.spawn(command, cwd=ROOT, output=output), log_file)
        self.workers[name] = worker
        self.all.append(worker)
        return worker

    def start_ready(self, *names: str) -> None:
        for worker in [self.start(name) for name in names]:
            worker.wait_ready()

    def wait_ready(self, name: str, seconds: float = READY_SECONDS) -> None:
        """Until the newest process of that name is ready. Whoever got its partitions while it was away may fence it on
        its way up; then the one after it has to be."""

        def ready() -> bool:
            self.tend(name)
            return bool(self.workers[name].said("worker ready"))

        wait_for(ready, seconds, f"{name}: never ready: {self.workers[name].tail()}")

    def tend(self, *names: str) -> None:
        """What a supervisor does: start again whoever (of these) asked for it, or was killed. Anything else is a
        failure."""
        for worker in [self.workers[name] for name in names or list(self.workers)]:
            if worker.code in (FAILED, -signal.SIGKILL):
                self.restarts += 1
                self.start(worker.name)
            elif worker.code is not None:
                raise AssertionError(f"{worker.name}: ended with {worker.code}: {worker.tail()}")

    def stop(self) -> None:
        """SIGTERM to all; each must end with 0 in time. One that is still coming up has no ear for it yet."""
        names = [worker.name for worker in self.workers.values() if worker.code is None]
        for name in names:
            self.wait_ready(name)
        running = [self.workers[name] for name in names]
        for worker in running:
            worker.send(signal.SIGTERM)
        for worker in running:
            assert worker.wait_end(STOP_SECONDS) == 0, f"{worker.name}: ended with {worker.code}: {worker.tail()}"
