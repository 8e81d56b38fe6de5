"""The tus upload of one file, and of several side by side.

Invariant: what is sent next begins at the offset that a gateway said last. So a cut connection, a dead gateway or a
dead client costs the bytes that were on their way and nothing else, and no byte counts twice.
"""

import base64
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from producer_client.errors import BadFile, Refused, SessionGone
from producer_client.folder import Source
from producer_client.gateways import Gateways, Route, Trouble

PATCH_BYTES: Final = 512 * 1024 * 1024  # one round trip and one commit of the rest for so many bytes
CAREFUL_BYTES: Final = 1024 * 1024  # after a failure: hear what the gateway says before much is sent in vain
# The next file is begun when so little is left of those under way: its start costs some round trips, which they hide.
# Large files go one after the other, as more would share the same network and the same cores, and all end later.
AHEAD_BYTES: Final = 32 * 1024 * 1024
MOST_AT_ONCE: Final = 4
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
        creation: Route,
        watcher: Watcher,
    ) -> None:
        self._gateways, self._uploads, self._source = gateways, uploads, source
        self._route, self._creation, self._watcher = route, creation, watcher
        self._headers = {**headers, **TUS}
        self.name = source.name
        self.left = source.length  # bytes to send
        self._tell_left: Callable[[], None] = lambda: None

    def run(self, tell_left: Callable[[], None]) -> None:
        """Create the upload, or find it again; then send what is missing until nothing is. `tell_left` is called when
        less is left than before."""
        self._tell_left = tell_left
        length = self._source.length
        self._watcher.begin(self.name, length)
        location, offset = self._create()
        self._reach(offset)
        while offset < length:
            try:
                reached = self._patch(location, offset)
            except Trouble as trouble:
                self._route.failed(trouble)
                reached = self._ask_offset(location)
            if reached > offset:
                self._route.progressed()
            offset = reached
            self._reach(offset)

    def _reach(self, offset: int) -> None:
        self.left = self._source.length - offset
        self._watcher.at(self.name, offset)
        self._tell_left()

    def _create(self) -> tuple[str, int]:
        """Where it is, and how far. Asked again with the same name and length, a gateway answers with the same."""
        metadata = f"filename {_base64(self._source.name)},kind {_base64(self._source.kind.kind)}"
        headers = {**self._headers, "Upload-Length": str(self._source.length), "Upload-Metadata": metadata}
        response = self._gateways.ask("POST", self._uploads, route=self._creation, headers=headers, refused=BadFile)
        location = urlsplit(response.headers["Location"]).path  # any gateway may be asked for it
        offset = response.headers.get("Upload-Offset")  # tus asks for it only where bytes came along
        return location, self._ask_offset(location) if offset is None else int(offset)

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
            self._reach(offset)


def run_all(transfers: Sequence[Transfer], stop: threading.Event) -> dict[str, Refused]:
    """Run all, some side by side; gives the refused ones by name. Any other error ends all of them.

    Threads are daemons: Ctrl-C returns at once, and an upload that is cut can be resumed anyway.
    """
    waiting = deque(transfers)
    running: list[Transfer] = []
    threads: list[threading.Thread] = []
    ended: list[tuple[Transfer, BaseException | None]] = []
    news = threading.Condition()
    refused: dict[str, Refused] = {}

    def tell() -> None:
        with news:
            news.notify()

    def work(transfer: Transfer) -> None:
        error: BaseException | None = None
        try:
            transfer.run(tell)
        except BaseException as raised:  # noqa: BLE001  (carried to the thread that waits, and raised there)
            error = raised
        with news:
            ended.append((transfer, error))
            news.notify()

    def may_start() -> bool:
        left = sum(transfer.left for transfer in running)
        return bool(waiting) and len(running) < MOST_AT_ONCE and left < AHEAD_BYTES

    def start_next() -> None:
        transfer = waiting.popleft()
        running.append(transfer)
        threads.append(threading.Thread(target=work, args=[transfer], name=f"upload {transfer.name}", daemon=True))
        threads[-1].start()

    try:
        while waiting or running:
            with news:
                news.wait_for(lambda: ended or may_start())
                while ended:
                    transfer, error = ended.pop()
                    running.remove(transfer)
                    if error is not None:
                        refused[transfer.name] = _refusal(error)
                while may_start():
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
