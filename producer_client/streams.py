"""Bytes that come once and in order: a file that is unpacked on its way, or what is piped into the command.

Invariant: what no gateway has committed yet is kept, so a gateway that dies costs nothing; memory is bounded, since no
more than MOST_BYTES are sent before a gateway says how far it is.
"""

import io
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from producer_client import formats
from producer_client.errors import WrongUsage
from producer_client.fingerprints import Fingerprint

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from producer_client.folder import FileKind

WRITE_BYTES: Final = 1024 * 1024  # big enough that Python costs little, small enough for many uploads at once
MOST_BYTES: Final = 64 * 1024 * 1024  # of one request, all of which are kept until it is answered
READ_AHEAD: Final = 8  # pieces that are unpacked while others are sent
GATHER_SECONDS: Final = 0.5  # for a whole piece, or the end: a request for each line of a slow pipe would be many
REQUEST_SECONDS: Final = 10.0  # then a request ends, however little it took: gateways end what trickles for 30 s
STOP_SECONDS: Final = 0.2  # between two looks whether we should stop


class Stream:
    """A source whose length is known at its end. It is read by a thread of its own, from the first request on."""

    def __init__(
        self,
        kind: "FileKind",
        name: str,
        separator: str | None,
        fingerprint: Fingerprint | None,
        content: Callable[[], BinaryIO],
        where: str,
        check_unchanged: Callable[[], None] = lambda: None,
    ) -> None:
        """`content` is opened once, and read from its first byte on; `where` names it in messages."""
        self.kind, self.name, self.separator, self.fingerprint = kind, name, separator, fingerprint
        self.length: int | None = None
        self._content, self._where, self._check_unchanged = content, where, check_unchanged
        self._pieces: queue.Queue[bytes | WrongUsage | None] = queue.Queue(READ_AHEAD)
        self._reader: threading.Thread | None = None
        self._closed = threading.Event()
        self._kept = deque[bytes]()
        self._start = self._end = 0  # of what is kept

    def prepare(self, offset: int, check_stop: Callable[[], None]) -> None:
        """Let go of what is before `offset`, and have something behind it, or know the length."""
        if self._reader is None:
            self._reader = threading.Thread(target=self._read_all, name=f"read {self.name}", daemon=True)
            self._reader.start()
        if offset < self._start:
            raise WrongUsage(f"{self._where}: bytes from {offset} on are wanted again, and were let go; use --fresh")
        since: float | None = None
        while self.length is None and self._end < offset + WRITE_BYTES:
            self._forget(offset)
            if self._end > offset:
                since = since or time.monotonic()
                if time.monotonic() - since > GATHER_SECONDS:
                    break
            check_stop()
            self._take(STOP_SECONDS)
        self._forget(offset)
        if offset > self._end:
            raise WrongUsage(
                f"{self._where} has {self._end} bytes, and {offset} of it were sent: it was changed; use --fresh"
            )

    def read(self, offset: int, most: int) -> Iterator[bytes]:
        """What is kept from `offset` on, then what comes, for a while."""
        until, end = time.monotonic() + REQUEST_SECONDS, offset + most
        at = self._start
        for piece in tuple(self._kept):
            wanted = piece[max(0, offset - at) : max(0, end - at)]
            at += len(piece)
            if wanted:
                yield wanted
        while self._end < end and self.length is None and time.monotonic() < until:
            before = self._end
            if self._take(STOP_SECONDS):
                yield self._kept[-1][: end - before]

    def close(self) -> None:
        """End the thread, which may wait for room."""
        self._closed.set()

    def _take(self, seconds: float) -> bool:
        """Keep the next piece; False if there was none in time, or no more."""
        try:
            piece = self._pieces.get(timeout=seconds)
        except queue.Empty:
            return False
        if isinstance(piece, WrongUsage):
            raise piece
        if piece is None:
            self.length = self._end
            return False
        self._kept.append(piece)
        self._end += len(piece)
        return True

    def _forget(self, offset: int) -> None:
        while self._kept and self._start + len(self._kept[0]) <= offset:
            self._start += len(self._kept.popleft())

    def _read_all(self) -> None:
        """The thread's work. The end is told only of a file that is still what it was."""
        try:
            try:
                with self._content() as content:
                    while not self._closed.is_set() and (piece := _some(content, WRITE_BYTES)):
                        self._put(piece)
            finally:
                self._check_unchanged()  # of one that was written to, damage is no news
            self._put(None)
        except formats.DAMAGE as error:
            self._put(WrongUsage(f"{self._where} cannot be unpacked: {error}; make it again, and use --fresh"))
        except OSError as error:
            self._put(WrongUsage(f"{self._where}: {error.strerror or error}; make it readable, and use --fresh"))
        except WrongUsage as error:
            self._put(error)

    def _put(self, piece: bytes | WrongUsage | None) -> None:
        while not self._closed.is_set():
            with suppress(queue.Full):
                self._pieces.put(piece, timeout=STOP_SECONDS)
                return


class Descriptor(io.FileIO):
    """Reads a descriptor with no buffer, and so with no lock.

    A thread that sits in a read of sys.stdin holds the lock of its buffer, and Python aborts when it ends meanwhile.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "rb", closefd=False)

    def read1(self, most: int) -> bytes:
        """Returns what is there now. Where nothing is yet and nobody may wait, that is an error and not the end."""
        return os.read(self.fileno(), most)


def piped(given: BinaryIO) -> tuple[BinaryIO, bytes]:
    """What is piped in, unpacked if it is packed; and how it begins."""
    head = _beginning(given)
    whole = _refilled(head, given)
    packing = formats.packing_of(head)
    if packing is None:
        return whole, head
    unpacked = formats.unpacked(whole, packing)
    try:
        head = _beginning(unpacked)
    except formats.DAMAGE as error:
        raise WrongUsage(f"standard input cannot be unpacked: {error}; make it again") from None
    return _refilled(head, unpacked), head


def _some(file: BinaryIO, most: int) -> bytes:
    """What is there now, or a first piece of it: of a pipe nobody waits for the rest."""
    return cast("io.BufferedReader", file).read1(most)


def _beginning(file: BinaryIO) -> bytes:
    """Enough to tell what it is: a header line, as a slow pipe may take long for more."""
    head = b""
    while len(head) < formats.HEAD_BYTES and not (len(head) > 512 and b"\n" in head):
        piece = _some(file, formats.HEAD_BYTES - len(head))
        if not piece:
            break
        head += piece
    return head


class _Refilled(io.RawIOBase):
    """A stream whose beginning, which was read from it, is put back."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        room = memoryview(buffer).cast("B")
        piece = self._head[: len(room)] or _some(self._rest, len(room))
        self._head = self._head[len(piece) :]
        room[: len(piece)] = piece
        return len(piece)


def _refilled(head: bytes, rest: BinaryIO) -> BinaryIO:
    return io.BufferedReader(_Refilled(head, rest), WRITE_BYTES)
