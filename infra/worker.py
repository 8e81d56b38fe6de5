"""One worker process, `faust -A streams worker`, from outside: it meets us on topics and HTTP only."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from cauce.errors import CauceError
from infra.processes import leashed, wait_until

READY_SECONDS = 60.0  # about 3 s here; restoring big tables takes longer
STOP_SECONDS = 20.0  # it promises 10


class WorkerProcess:
    """`with WorkerProcess(...) as worker:` starts it and waits until it is ready; at the end it is told to stop."""

    def __init__(
        self, worker_id: str, port: int, log_file: Path, variables: Mapping[str, str], app: str = "streams"
    ) -> None:
        self.worker_id = worker_id
        self._app = app
        self.port = port
        self.log_file = log_file
        self._environment = {
            **os.environ,
            "CAUCE_WORKER_ID": worker_id,
            "CAUCE_WORKER_PORT": str(port),
            **variables,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "WorkerProcess":
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
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def start(self) -> None:
        faust = str(Path(sys.executable).with_name("faust"))
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                leashed([faust, "-A", self._app, "worker"]),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us: we stop it in order
            )

    def wait_ready(self) -> None:
        wait_until(
            lambda: not self.alive or self.page("/readyz")[0] == 200,
            seconds=READY_SECONDS,
            otherwise=f"worker {self.worker_id} is not ready after {READY_SECONDS:.0f} s; see {self.log_file}",
        )
        if not self.alive:
            raise CauceError(f"worker {self.worker_id} ended with {self.exit_code()}; see {self.log_file}")

    def page(self, path: str) -> tuple[int, str]:
        """Status and text; status 0 while nothing answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.read().decode()
        except OSError:
            return 0, ""

    def stop(self) -> int:
        """SIGTERM, and the exit code: 0 if all work was committed."""
        assert self._process is not None, "not started"
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_SECONDS)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def exit_code(self) -> int | None:
        return None if self._process is None else self._process.poll()
