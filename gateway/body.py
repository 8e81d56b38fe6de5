"""The bytes of a request, read only when somebody asks for them: whoever is slow to ask slows the sender down.

Invariant: never more than one block and one message of the server's are held here.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from enum import Enum
from typing import Any, Final

FLOOR_SECONDS: Final = 30.0  # a packet lost on a phone costs a few seconds, not thirty

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Ending(Enum):
    """open → one of the others, once."""

    OPEN = "open"
    WHOLE = "whole"  # all of it came
    CUT = "cut"  # the client is gone, or what it sends is no HTTP: granian tells both alike
    SLOW = "slow"  # fewer bytes than the floor asks for
    GIVE_WAY = "give way"  # another request wants the upload
    STOPPING = "stopping"  # this gateway ends


class Body:
    def __init__(
        self, receive: Receive, give_way: asyncio.Event, stopping: asyncio.Event, floor_bytes_per_second: int
    ) -> None:
        self._receive = receive
        self._signs = {Ending.GIVE_WAY: give_way, Ending.STOPPING: stopping}
        self._floor = floor_bytes_per_second * FLOOR_SECONDS
        self._waited = 0.0
        self._got = 0
        self._next: asyncio.Task[MutableMapping[str, Any]] | None = None
        self._watch: set[asyncio.Task[Any]] = set()
        self.ending = Ending.OPEN

    async def block(self, size: int, seconds: float) -> bytes:
        """About `size` bytes, or what came within `seconds`, which may be nothing."""
        chunks: list[bytes] = []
        length, deadline = 0, time.monotonic() + seconds
        while self.ending is Ending.OPEN and length < size and time.monotonic() < deadline:
            chunk = await self._chunk(min(deadline - time.monotonic(), FLOOR_SECONDS - self._waited))
            chunks.append(chunk)
            length += len(chunk)
        return b"".join(chunks)

    def close(self) -> None:
        """Want nothing more. The server ends its part when it sees fit: with the connection at the latest."""
        for task in (self._next, *self._watch):
            if task is not None:
                task.cancel()

    async def _chunk(self, seconds: float) -> bytes:
        """What comes next; empty when the time is over or the body has ended."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._receive())
        if not self._watch:
            self._watch = {asyncio.ensure_future(sign.wait()) for sign in self._signs.values()}
        asked = time.monotonic()
        await asyncio.wait({self._next, *self._watch}, timeout=max(0, seconds), return_when=asyncio.FIRST_COMPLETED)
        self._waited += time.monotonic() - asked
        chunk = self._taken() if self._next.done() else b""
        self._got += len(chunk)
        self._judge()
        return chunk

    def _taken(self) -> bytes:
        assert self._next is not None
        message, self._next = self._next.result(), None
        if message["type"] == "http.disconnect":
            self.ending = Ending.CUT
            return b""
        if not message.get("more_body", False):
            self.ending = Ending.WHOLE
        body: bytes = message.get("body", b"")
        return body

    def _judge(self) -> None:
        if self.ending is not Ending.OPEN:
            return
        for ending, sign in self._signs.items():
            if sign.is_set():
                self.ending = ending
        if self._waited >= FLOOR_SECONDS:
            if self._got < self._floor:
                self.ending = Ending.SLOW
            self._waited, self._got = 0.0, 0
