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

from producer_client.errors import BadFile, Refused, SessionGone, WrongUsage
from producer_client.folder import Source
from producer_client.gateways import Gateways, Route, Trouble
from producer_client.streams import MOST_BYTES

PATCH_BYTES: Final = 512 * 1024 * 1024  # one round trip and one commit of the rest for so many bytes
CAREFUL_BYTES: Final = 1024 * 1024  # after a failure: hear what the gateway says before much is sent in vain
# The next file is begun when so little is left of those under way: its start costs some round trips, which they hide.
# Large files go one after the other, as more would share the same network and the same cores, and all end later.
AHEAD_BYTES: Final = 32 * 1024 * 1024
MOST_AT_ONCE: Final = 4
LAST_WORDS_SECONDS: Final = 1.0  # for threads to see that they should stop; what is in flight then is cut
TUS: Final = {"Tus-Resumable": "1.0.0"}


class Watcher(Protocol):
    """Is told how uploads go, from the threads that do them. A length of 0 is not known yet: `begin` comes again."""

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
        self.left = source.length or AHEAD_BYTES  # bytes to send; where that is not known, nothing is begun beside it
        self._told: int | None = source.length  # the length that the gateway knows
        self._tell_left: Callable[[], None] = lambda: None

    def run(self, tell_left: Callable[[], None]) -> None:
        """Create the upload, or find it again; then send what is missing until nothing is. `tell_left` is called when
        less is left than before."""
        self._tell_left = tell_left
        self._watcher.begin(self.name, self._source.length or 0)
        try:
            self._send()
        finally:
            self._source.close()

    def _send(self) -> None:
        location, offset = self._create()
        self._reach(offset)
        while offset != self._told:
            self._prepare(offset)
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
        length = self._source.length
        self.left = AHEAD_BYTES if length is None else length - offset
        self._watcher.at(self.name, offset)
        self._tell_left()

    def _prepare(self, offset: int) -> None:
        unknown = self._source.length is None
        self._source.prepare(offset, self._route.check_stop)
        length = self._source.length
        if unknown and length is not None:
            self._watcher.begin(self.name, length)
        if self._told is not None and self._told != length is not None:
            raise WrongUsage(f"{self.name} has {length} bytes and had {self._told}: it was changed; use --fresh")

    def _create(self) -> tuple[str, int]:
        """Where it is, and how far. Asked again for the same file, a gateway answers with the same."""
        length = self._source.length
        size = {"Upload-Defer-Length": "1"} if length is None else {"Upload-Length": str(length)}
        headers = {**self._headers, **size, "Upload-Metadata": _metadata(self._source)}
        response = self._gateways.ask("POST", self._uploads, route=self._creation, headers=headers, refused=BadFile)
        location = urlsplit(response.headers["Location"]).path  # any gateway may be asked for it
        offset = int(response.headers.get("Upload-Offset", -1))  # tus asks for it only where bytes came along
        # Of one that was begun by an earlier run, the length may be known by now: HEAD says so.
        is_known = offset == 0 or (offset > 0 and length is not None)
        return location, offset if is_known else self._ask_offset(location)

    def _ask_offset(self, location: str) -> int:
        response = self._gateways.ask("HEAD", location, route=self._route, headers=self._headers, refused=BadFile)
        if self._source.length is None or self._told is None:
            told = response.headers.get("Upload-Length")
            self._told = None if told is None else int(told)
        return int(response.headers["Upload-Offset"])

    def _patch(self, location: str, offset: int) -> int:
        length = self._source.length
        most = CAREFUL_BYTES if self._route.failures else PATCH_BYTES
        headers = {**self._headers, "Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
        if length is None:
            most = min(most, MOST_BYTES)  # the body says itself where it ends
        else:
            most = min(most, length - offset)
            headers["Content-Length"] = str(most)
        if self._told is None and length is not None:
            headers["Upload-Length"] = str(length)
        body = self._body(offset, most)
        with self._gateways.once(
            "PATCH", location, route=self._route, headers=headers, content=body, refused=BadFile
        ) as response:
            if "Upload-Length" in headers:
                self._told = length
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


def _metadata(source: Source) -> str:
    """Upload-Metadata: what the upload is, and what tells its file from another of the same name."""
    values = {"filename": source.name, "kind": source.kind.kind}
    if source.fingerprint is not None:
        values |= {name: str(value) for name, value in source.fingerprint.to_json().items()}
    if source.separator is not None:
        values["separator"] = source.separator
    return ",".join(f"{name} {_base64(value)}" for name, value in values.items())


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
