"""A worker or a gateway from outside: a process that we start, ask how it is by HTTP, and stop or kill.

Invariant: nothing of ours is imported here that the process runs; we meet on HTTP and exit codes. 0: stopped as asked.
2: the operator has to change something. Anything else: start it again, it goes on from its last commit.
"""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from cauce.errors import CauceError
from infra.processes import Process, leashed, wait_until

READY_SECONDS: Final = 60.0  # about 3 s here; restoring big tables takes longer
STOP_SECONDS: Final = 20.0  # it promises 10
PATIENT_SECONDS: Final = 10.0  # for a page; health checks have less patience, and look again
END_SECONDS: Final = 60.0  # of one that has to start first


class ServiceProcess:
    """`with ServiceProcess(...) as worker:` starts it and waits until it is ready; at the end it is told to stop."""

    def __init__(
        self, name: str, port: int, log_file: Path, command: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        self.name = name
        self.port = port
        self.log_file = log_file
        self._command = command
        self._environment = {**os.environ, **variables}
        self._child: subprocess.Popen[bytes] | None = None
        self.process: Process | None = None

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self.alive:
            self.stop()

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        assert self._child is not None, "not started"
        return self._child.pid

    def start(self) -> None:
        with self.log_file.open("ab") as log:
            self._child = subprocess.Popen(
                leashed(self._command),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us: we stop it in order
            )
        self.process = Process.of(self._child.pid)

    def wait_ready(self) -> None:
        wait_until(
            lambda: not self.alive or self.ready,
            seconds=READY_SECONDS,
            otherwise=f"{self.name} is not ready after {READY_SECONDS:.0f} s; see {self.log_file}",
        )
        if not self.alive:
            raise CauceError(f"{self.name} ended with {self.exit_code()}; see {self.log_file}")

    @property
    def ready(self) -> bool:
        return self.page("/readyz")[0] == 200

    def page(self, path: str) -> tuple[int, str]:
        return page(self.port, path, PATIENT_SECONDS)

    def send(self, sign: signal.Signals) -> None:
        if self._child is not None:
            self._child.send_signal(sign)

    def stop(self) -> int:
        """SIGTERM, and the exit code: 0 if all work was committed."""
        assert self._child is not None, "not started"
        self.send(signal.SIGTERM)
        return self._child.wait(STOP_SECONDS)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def exit_code(self) -> int | None:
        return None if self._child is None else self._child.poll()

    def wait_for_end(self, seconds: float = END_SECONDS) -> int:
        """The exit code of one that ends by itself: whoever talks to it knows before the kernel says so."""
        assert self._child is not None, "not started"
        return self._child.wait(seconds)


def page(port: int, path: str, seconds: float = 2.0) -> tuple[int, str]:
    """Status and text; status 0 while nothing answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=seconds) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, answer.read().decode()
    except OSError:
        return 0, ""


def worker_command(app: str = "streams") -> list[str]:
    return [str(Path(sys.executable).with_name("faust")), "-A", app, "worker"]


def spare_command(slot_file: Path) -> list[str]:
    """Of a worker: what it imports is imported ahead."""
    ahead = "faust.cli.faust,faust.cli.worker,faust.web.drivers.aiohttp,streams.wiring"
    return [sys.executable, "-m", "infra.spare", str(slot_file), ahead, *worker_command()]


def gateway_command() -> list[str]:
    return [sys.executable, "-m", "gateway"]


class WorkerProcess(ServiceProcess):
    """`faust -A streams worker`."""

    def __init__(
        self, worker_id: str, port: int, log_file: Path, variables: Mapping[str, str], app: str = "streams"
    ) -> None:
        own = {"CAUCE_WORKER_ID": worker_id, "CAUCE_WORKER_PORT": str(port)}
        super().__init__(worker_id, port, log_file, worker_command(app), {**own, **variables})


class GatewayProcess(ServiceProcess):
    """`python -m gateway`."""

    def __init__(self, name: str, port: int, log_file: Path, variables: Mapping[str, str]) -> None:
        own = {"CAUCE_GATEWAY_PORT": str(port)}
        super().__init__(name, port, log_file, gateway_command(), {**own, **variables})
