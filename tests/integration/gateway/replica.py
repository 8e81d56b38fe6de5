"""One gateway process, `python -m gateway`, from outside, and a client of its HTTP interface."""

import base64
import os
import signal
import ssl
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from infra.processes import wait_until
from infra.service import GatewayProcess

# Of no use here, and httpx would read all authorities again for each request: 20 ms.
TRUST = ssl.create_default_context()
SECRET = "a secret for tests only"
TUS = {"Tus-Resumable": "1.0.0"}
BYTES = {**TUS, "Content-Type": "application/offset+octet-stream"}


class Replica(GatewayProcess):
    """A gateway that sessions can be opened at, that can be put to sleep, and whose memory can be told."""

    def __init__(self, port: int, log_file: Path, variables: Mapping[str, str]) -> None:
        super().__init__(log_file.stem, port, log_file, {"CAUCE_SECRET": SECRET, **variables})
        self.url = f"http://127.0.0.1:{port}"

    def __exit__(self, *error: object) -> None:
        if self.alive:
            self.send(signal.SIGCONT)
        super().__exit__(*error)

    def pause(self) -> None:
        self.send(signal.SIGSTOP)
        assert self.process is not None
        process = self.process
        wait_until(lambda: process.letter() in ("T", "t"), seconds=60, otherwise="SIGSTOP had no effect")

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def open(self, **wish: Any) -> "Visit":
        answer = httpx.post(f"{self.url}/sessions", json={"dataset": "movies", **wish}, timeout=30, verify=TRUST)
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
            method,
            self.url + path,
            headers={**self.auth, **(headers or {})},
            content=content,
            timeout=timeout,
            verify=TRUST,
        )

    def create(self, name: str, length: int, **metadata: str) -> str:
        answer = self.ask("POST", "uploads", {**TUS, "Upload-Length": str(length), **described(name, **metadata)})
        assert answer.status_code == 201, answer.text
        return answer.headers["Location"]

    def offset(self, location: str) -> int:
        answer = self.ask("HEAD", location, TUS)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return int(answer.headers["Upload-Offset"])

    def committed(self, location: str) -> int:
        """How far an upload is, for one who only looks: a HEAD that waits long for a transaction takes it over."""
        answer = self.ask("GET", "")
        uploads = answer.json()["uploads"] if answer.status_code == 200 else []
        return sum(int(each["offset"]) for each in uploads if location.endswith(f"/{each['id']}"))

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
