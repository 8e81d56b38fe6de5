"""The tus upload of one file, and of several side by side.

Invariant: what is sent next begins at the offset that a gateway said last. So a cut connection, a dead gateway or a
dead client costs the bytes that were on their way and nothing else, and no byte counts twice.
"""

import base64
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from producer_client.errors import BadFile, Refused, SessionGone
from producer_client.folder import Source
from producer_client.gateways import Gateways, Route, Trouble

PATCH_BYTES: Final = 64 * 1024 * 1024  # one round trip and one commit of the rest for so many bytes
CAREFUL_BYTES: Final = 1024 * 1024  # after a failure: hear what the gateway says before much is sent in vain
SIDE_BY_SIDE: Final = 2  # more would share the same network and the same cores, and end later
LAST_WORDS_SECONDS: Final = 1.0  # for threads to see that they should stop; what is in flight then is cut
TUS: Final = {"Tus-Resumable": "1.0.0"}


class Watcher(Protocol):
    """Is told how uploads go, from the threads that do them."""

    def begin(self, name: str, length: int) -> None: ...
    def at(self, name: str, offset: int) -> None: ...
    def trouble(self, name: str, what: str) -> None: ...


class Transfer:
    """One source on its way to a session."""

    def __init__(
        self,
        gateways: Gateways,
        uploads: str,
        headers: Mapping[str, str],
        source: Source,
        route: Route,
        watcher: Watcher,
    ) -> None:
        self._gateways, self._uploads, self._source, self._route, self._watcher = (
            gateways,
            uploads,
            source,
            route,
            watcher,
        )
        self._headers = {**headers, **TUS}

    def run(self) -> None:
        """Create the upload, or find it again; then send what is missing until nothing is."""
        name, length = self._source.name, self._source.length
        self._watcher.begin(name, length)
        location = self._create()
        offset = self._ask_offset(location)
        self._watcher.at(name, offset)
        while offset < length:
            try:
                reached = self._patch(location, offset)
            except Trouble as trouble:
                self._route.failed(trouble)
                reached = self._ask_offset(location)
            if reached > offset:
                self._route.progressed()
            offset = reached
            self._watcher.at(name, offset)

    def _create(self) -> str:
        """Asked again with the same name and length, a gateway answers with the same upload."""
        metadata = f"filename {_base64(self._source.name)},kind {_base64(self._source.kind.kind)}"
        headers = {**self._headers, "Upload-Length": str(self._source.length), "Upload-Metadata": metadata}
        response = self._gateways.ask("POST", self._uploads, route=self._route, headers=headers, refused=BadFile)
        return urlsplit(response.headers["Location"]).path  # any gateway may be asked for it

    def _ask_offset(self, location: str) -> int:
        response = self._gateways.ask("HEAD", location, route=self._route, headers=self._headers, refused=BadFile)
        return int(response.headers["Upload-Offset"])

    def _patch(self, location: str, offset: int) -> int:
        length = min(CAREFUL_BYTES if self._route.failures else PATCH_BYTES, self._source.length - offset)
        headers = {
            **self._headers,
            "Upload-Offset": str(offset),
            "Content-Type": "application/offset+octet-stream",
            "Content-Length": str(length),
        }
        body = self._body(offset, length)
        with self._gateways.once(
            "PATCH", location, route=self._route, headers=headers, content=body, refused=BadFile
        ) as response:
            return int(response.headers["Upload-Offset"])

    def _body(self, offset: int, length: int) -> Iterator[bytes]:
        for piece in self._source.read(offset, length):
            self._route.check_stop()
            yield piece
            offset += len(piece)
            self._watcher.at(self._source.name, offset)


def run_all(transfers: Sequence[tuple[str, Callable[[], None]]], stop: threading.Event) -> dict[str, Refused]:
    """Run named transfers side by side; gives the refused ones by name. Any other error ends all of them.

    Threads are daemons: Ctrl-C returns at once, and an upload that is cut can be resumed anyway.
    """
    waiting = list(transfers)
    ended: queue.SimpleQueue[tuple[str, BaseException | None]] = queue.SimpleQueue()
    threads: list[threading.Thread] = []
    refused: dict[str, Refused] = {}

    def work(name: str, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001  (carried to the thread that waits, and raised there)
            ended.put((name, error))
        else:
            ended.put((name, None))

    def start_next() -> None:
        if waiting:
            name, run = waiting.pop(0)
            threads.append(threading.Thread(target=work, args=(name, run), name=f"upload {name}", daemon=True))
            threads[-1].start()

    try:
        for _ in range(SIDE_BY_SIDE):
            start_next()
        for _ in transfers:
            name, error = ended.get()
            if error is not None:
                refused[name] = _refusal(error)
            start_next()
    except BaseException:
        stop.set()
        deadline = time.monotonic() + LAST_WORDS_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        raise
    return refused


def _refusal(error: BaseException) -> Refused:
    """The one kind of error that the other transfers may survive; raises any other."""
    if isinstance(error, Refused) and not isinstance(error, SessionGone):
        return error
    raise error


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
