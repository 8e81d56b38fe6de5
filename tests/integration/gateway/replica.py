"""One gateway process, `python -m gateway`, from outside, and a client of its HTTP interface."""

import base64
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from cauce.errors import CauceError
from infra.processes import Process, leashed, wait_until

READY_SECONDS = 60.0
STOP_SECONDS = 20.0  # it promises 10
SECRET = "a secret for tests only"
TUS = {"Tus-Resumable": "1.0.0"}
BYTES = {**TUS, "Content-Type": "application/offset+octet-stream"}


class Replica:
    """`with Replica(...) as replica:` starts it and waits until it is ready; at the end it is told to stop."""

    def __init__(self, port: int, log_file: Path, variables: Mapping[str, str]) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log_file = log_file
        self._environment = {
            **os.environ,
            "CAUCE_GATEWAY_PORT": str(port),
            "CAUCE_SECRET": SECRET,
            **variables,
        }
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Replica":
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self.alive:
            self.send(signal.SIGCONT)
            self.stop()

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def child(self) -> "subprocess.Popen[bytes]":
        assert self._child is not None, "not started"
        return self._child

    def start(self) -> None:
        with self.log_file.open("ab") as log:
            self._child = subprocess.Popen(
                leashed([sys.executable, "-m", "gateway"]),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        wait_until(
            lambda: not self.alive or self.page("/readyz")[0] == 200,
            seconds=READY_SECONDS,
            otherwise=f"the gateway is not ready after {READY_SECONDS:.0f} s: {self.log_file.read_text()}",
        )
        if not self.alive:
            raise CauceError(f"the gateway ended with {self.child.poll()}: {self.log_file.read_text()}")

    def page(self, path: str) -> tuple[int, str]:
        """Status and text; status 0 while nothing answers."""
        try:
            answer = httpx.get(self.url + path, timeout=2)
        except httpx.TransportError:
            return 0, ""
        return answer.status_code, answer.text

    def send(self, sign: signal.Signals) -> None:
        self.child.send_signal(sign)

    def pause(self) -> None:
        self.send(signal.SIGSTOP)
        process = Process.of(self.child.pid)
        wait_until(lambda: process.letter() in ("T", "t"), seconds=10, otherwise="SIGSTOP had no effect")

    def stop(self) -> int:
        self.send(signal.SIGTERM)
        return self.child.wait(STOP_SECONDS)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.child.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def open(self, **wish: Any) -> "Visit":
        answer = httpx.post(f"{self.url}/sessions", json={"dataset": "movies", **wish}, timeout=30)
        assert answer.status_code == 201, answer.text
        return Visit(self.url, answer.json())


class Visit:
    """A session of a client, at the replica of its choice."""

    def __init__(self, url: str, opened: Mapping[str, Any]) -> None:
        self.url = url
        self.opened = opened
        self.client_id: str = opened["client_id"]
        self.path = f"/sessions/{self.client_id}"
        self.auth = {"Authorization": f"Bearer {opened['token']}"}

    def at(self, replica: Replica) -> "Visit":
        return Visit(replica.url, self.opened)

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, content: Any = None, timeout: float = 60
    ) -> httpx.Response:
        path = path if path.startswith("/") else f"{self.path}/{path}" if path else self.path
        return httpx.request(
            method, self.url + path, headers={**self.auth, **(headers or {})}, content=content, timeout=timeout
        )

    def create(self, name: str, length: int, **metadata: str) -> str:
        answer = self.ask("POST", "uploads", {**TUS, "Upload-Length": str(length), **described(name, **metadata)})
        assert answer.status_code == 201, answer.text
        return answer.headers["Location"]

    def offset(self, location: str) -> int:
        answer = self.ask("HEAD", location, TUS)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return int(answer.headers["Upload-Offset"])

    def patch(self, location: str, offset: int, content: Any, **headers: str) -> httpx.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("PATCH", location, {**BYTES, "Upload-Offset": str(offset), **given}, content)

    def show(self) -> dict[str, Any]:
        answer = self.ask("GET", "")
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown


class Trickle(threading.Thread):
    """A client that sends a file in one request: half of it, then a little at a time, the rest when it is told to."""

    def __init__(self, visit: Visit, location: str, data: bytes) -> None:
        super().__init__(daemon=True)
        self._visit = visit
        self._location = location
        self._data = data
        self._go_on = threading.Event()
        self.status = 0  # 0: the connection broke
        self.start()

    def finish(self) -> None:
        self._go_on.set()
        self.join(90)
        assert not self.is_alive(), "the request hangs"

    def run(self) -> None:
        headers = {**self._visit.auth, **BYTES, "Upload-Offset": "0"}
        try:
            answer = httpx.patch(self._visit.url + self._location, headers=headers, content=self._pieces(), timeout=90)
        except httpx.TransportError:
            return
        self.status = answer.status_code

    def _pieces(self) -> Iterator[bytes]:
        at = len(self._data) // 2
        yield self._data[:at]
        while not self._go_on.wait(0.02) and at < len(self._data) * 3 // 4:
            yield self._data[at : at + 100]
            at += 100
        self._go_on.wait(60)
        yield self._data[at:]


def described(name: str, **more: str) -> dict[str, str]:
    pairs = {"filename": name, **more}
    text = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in pairs.items())
    return {"Upload-Metadata": text}
