"""Who holds which upload on this replica: one request each, a limited number of producers, idle ones given back.

Invariant: a seat's producer was made by taking the upload over, and its progress is what that producer committed last.
So the progress is right for as long as Kafka takes anything from that producer.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from cauce.messages import ClientId, Upload, UploadId
from gateway.parse import Parser
from gateway.problems import Problem, later
from gateway.publish import Publisher

log = logging.getLogger(__name__)

Key = tuple[ClientId, UploadId]
GIVE_WAY_SECONDS: Final = 5.0  # a commit that is under way ends within this, or Kafka is slow
LOOK_SECONDS: Final = 1.0


@dataclass(slots=True)
class Live:
    """An upload that this replica may write to."""

    publisher: Publisher
    progress: Upload | None  # None: not created yet
    parser: Parser | None = None  # of the bytes that `progress` counts
    dirty: bool = False  # the parser may be ahead of the progress
    created: dict[UploadId, Upload] = field(default_factory=dict)  # in a folder, by this producer: the view lags behind


@dataclass(slots=True)
class Seat:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    give_way: asyncio.Event = field(default_factory=asyncio.Event)  # another request wants the upload
    live: Live | None = None
    used_at: float = 0.0
    waiting: int = 0


TakeOver = Callable[[], Awaitable[Live]]
# Whether nothing speaks against a producer that was kept: another replica may have moved on.
Fresh = Callable[[Live], bool]


def never(live: Live) -> bool:
    return False


def while_it_holds(live: Live) -> bool:
    """For a folder: whoever else adds to it or closes it has fenced this producer, and its next transaction fails."""
    return True


class Seats:
    def __init__(self, limit: int, idle_seconds: float) -> None:
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._seats: dict[Key, Seat] = {}
        self._taken = 0  # producers there are, or about to be

    @property
    def live(self) -> int:
        return self._taken

    @asynccontextmanager
    async def hold(
        self, key: Key, take_over: TakeOver, fresh: Fresh = never
    ) -> AsyncIterator[tuple[Live, asyncio.Event]]:
        """The upload for one request. Where that leaves things unsaid the producer is dropped: the next one takes over
        anew."""
        seat = self._seats.setdefault(key, Seat())
        await self._acquire(key, seat)
        try:
            if seat.live is not None and not fresh(seat.live):
                await self._drop(seat)
            if seat.live is None:
                seat.live = await self._make(take_over)
            yield seat.live, seat.give_way
        except BaseException as error:
            if seat.live and (seat.live.dirty or not isinstance(error, Problem)):
                await asyncio.shield(self._drop(seat))
            raise
        finally:
            seat.used_at = time.monotonic()
            seat.lock.release()
            self._tidy(key, seat)

    async def reap(self) -> None:
        """For ever: give back what nobody used for a while."""
        while True:
            await asyncio.sleep(min(LOOK_SECONDS, self._idle_seconds))
            for key, seat in list(self._seats.items()):
                if not seat.lock.locked() and time.monotonic() - seat.used_at > self._idle_seconds:
                    await self._drop(seat)
                    self._tidy(key, seat)

    async def close(self) -> None:
        """Ask all to give way, and give every producer back."""
        for seat in self._seats.values():
            seat.give_way.set()
        for seat in list(self._seats.values()):
            async with seat.lock:
                await self._drop(seat)

    async def _acquire(self, key: Key, seat: Seat) -> None:
        """The later request wins, as it does between replicas: its client knows whether the former one is alive."""
        if seat.lock.locked():
            seat.give_way.set()
        seat.waiting += 1
        try:
            async with asyncio.timeout(GIVE_WAY_SECONDS):
                await seat.lock.acquire()
        except TimeoutError:
            self._tidy(key, seat)
            raise later(423, "moved", "another request is writing to this upload; HEAD says how far it is") from None
        finally:
            seat.waiting -= 1
        seat.give_way.clear()

    async def _make(self, take_over: TakeOver) -> Live:
        while self._taken >= self._limit:
            idle = [seat for seat in self._seats.values() if seat.live and not seat.lock.locked()]
            if not idle:
                raise later(503, "busy", f"{self._limit} uploads are live here, which is the limit; wait a little", 2)
            await self._drop(min(idle, key=lambda seat: seat.used_at))
        self._taken += 1
        try:
            return await take_over()
        except BaseException:
            self._taken -= 1
            raise

    async def _drop(self, seat: Seat) -> None:
        live, seat.live = seat.live, None
        if live is not None:
            self._taken -= 1
            await asyncio.to_thread(live.publisher.close)

    def _tidy(self, key: Key, seat: Seat) -> None:
        if seat.live is None and not seat.lock.locked() and not seat.waiting:
            self._seats.pop(key, None)
