"""Who holds which upload on this replica: one request each, a limited number of producers, idle ones given back.

Invariant: a seat's producer was made by taking the upload over, and its progress is what that producer committed last.
So the progress is right for as long as Kafka takes anything from that producer.

Who is about to go on looks first (`look`), and what it is told stays true until a request that came later: a writer on
this replica commits what it has in hand and gives way, one on another replica is fenced. A writer that is interrupted
again and again is left a turn each time, so any number of looks only slows it down.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from cauce.errors import Fenced
from cauce.messages import ClientId, Upload, UploadId
from cauce.process import give_memory_back
from gateway.limits import Rates
from gateway.parse import Parser
from gateway.problems import Problem, later
from gateway.publish import Publisher

log = logging.getLogger(__name__)

Key = tuple[ClientId, UploadId]
GIVE_WAY_SECONDS: Final = 5.0  # a commit that is under way ends within this, or Kafka is slow
REAP_SECONDS: Final = 1.0
# Interruptions of one upload: three at once, for a client on a bad line, then one in three seconds. A writer on another
# replica learns that it was fenced with its next commit, and sends again what came after the last one: that costs a
# second or so.
TURNS_PER_SECOND: Final = 1 / 3
TURNS_AT_ONCE: Final = 3
ASK_AGAIN_SECONDS: Final = 1.0  # whoever was in front of us in the queue may be writing by now
LOOKS_AT_ONCE: Final = 8  # each makes a producer; the threads that they block are also those that commit


@dataclass(slots=True)
class Live:
    """An upload that this replica may write to."""

    publisher: Publisher
    progress: Upload | None  # None: not created yet
    # Gives it another producer of the same upload, for one whose last commit was slow.
    renew: Callable[["Live"], Awaitable[None]]
    parser: Parser | None = None  # of the bytes that `progress` counts
    proved_at: float = 0.0  # when what showed last that nobody has taken the upload from us was begun
    dirty: bool = False  # the parser may be ahead of the progress
    created: dict[UploadId, Upload] = field(default_factory=dict)  # in a folder, by this producer: the view lags behind


@dataclass(slots=True)
class Seat:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    give_way: asyncio.Event = field(default_factory=asyncio.Event)  # another request wants the upload
    live: Live | None = None
    used_at: float = 0.0
    waiting: int = 0
    looked: tuple[float, Upload | None] = (0.0, None)  # when the last look was begun, and what it saw


TakeOver = Callable[[], Awaitable[Live]]
# Commits what is known once more; raises Fenced where another replica has taken the upload over.
Prove = Callable[[Live], Awaitable[None]]
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
        self._interruptions = Rates(TURNS_PER_SECOND, "interruptions here", at_once=TURNS_AT_ONCE)
        self._fences = Rates(TURNS_PER_SECOND, "interruptions elsewhere", at_once=TURNS_AT_ONCE)
        self._looks = asyncio.Semaphore(LOOKS_AT_ONCE)
        self._given_back = False  # some of them since memory was
        self._memory_given_back_at = time.monotonic()

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
        seat.looked = (0.0, None)
        self._fences.give_back(key)  # its client looks again if another replica fences it, and has to go on then
        try:
            if seat.live is not None and (seat.live.publisher.is_spent or not fresh(seat.live)):
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

    async def look(self, key: Key, take_over: TakeOver, prove: Prove) -> Upload | None:
        """Returns what is committed of the upload, and no request that came before this one changes it any more.

        It is not bound by the limit of producers: one that is made for it is kept only while there is room."""
        asked_at = time.monotonic()
        seat = self._seats.setdefault(key, Seat())
        seat.waiting += 1
        try:
            while True:
                await self._acquire(key, seat)
                try:
                    if seat.live is not None and await self._holds(seat, asked_at, prove):
                        return seat.live.progress
                    began_at, progress = seat.looked
                    if began_at >= asked_at:  # another look, which was begun when this one had been asked for
                        return progress
                    wait = self._fences.wait(key)  # it may interrupt a writer on another replica
                    if not wait:
                        return await self._look(seat, take_over)
                finally:
                    seat.used_at = time.monotonic()
                    seat.lock.release()
                await asyncio.sleep(wait)
        finally:
            seat.waiting -= 1
            self._tidy(key, seat)

    def offset(self, key: Key) -> int:
        """How far the upload is at least, as far as this replica wrote it."""
        seat = self._seats.get(key)
        return seat.live.progress.offset if seat and seat.live and seat.live.progress else 0

    async def reap(self) -> None:
        """For ever: give back what nobody used for a while, and the memory of what was given back: malloc would keep
        150 MB of 20 uploads that broke off."""
        while True:
            await asyncio.sleep(min(REAP_SECONDS, self._idle_seconds))
            for key, seat in list(self._seats.items()):
                if not seat.lock.locked() and time.monotonic() - seat.used_at > self._idle_seconds:
                    await self._drop(seat)
                    self._tidy(key, seat)
            now = time.monotonic()
            if self._given_back and now - self._memory_given_back_at > self._idle_seconds:
                self._given_back, self._memory_given_back_at = False, now
                await asyncio.to_thread(give_memory_back)

    async def close(self) -> None:
        """Ask all to give way, and give every producer back."""
        for seat in self._seats.values():
            seat.give_way.set()
        for seat in list(self._seats.values()):
            async with seat.lock:
                await self._drop(seat)

    async def _acquire(self, key: Key, seat: Seat) -> None:
        """The later request wins, as it does between replicas: its client knows whether the former one is alive."""
        seat.waiting += 1
        try:
            async with asyncio.timeout(GIVE_WAY_SECONDS):
                while not await self._acquired(key, seat):
                    pass
        except TimeoutError:
            self._tidy(key, seat)
            raise later(423, "moved", "another request is writing to this upload; HEAD says how far it is") from None
        finally:
            seat.waiting -= 1
        seat.give_way.clear()

    async def _acquired(self, key: Key, seat: Seat) -> bool:
        """Waits a while for the lock. Whoever has it is asked to give way, unless it has been asked too often."""
        patience = ASK_AGAIN_SECONDS
        if seat.lock.locked():
            if wait := self._interruptions.wait(key):
                patience = wait
            else:
                seat.give_way.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                return await seat.lock.acquire()
        return False

    async def _holds(self, seat: Seat, asked_at: float, prove: Prove) -> bool:
        """Whether the producer that was kept is still the upload's only one."""
        assert seat.live is not None
        if seat.live.proved_at >= asked_at:
            return True
        known = seat.live.progress
        # What has ended is changed by whoever holds the folder, or ends the session: nobody has fenced this producer.
        if known is not None and not (known.complete or known.failed or seat.live.publisher.is_spent):
            try:
                await prove(seat.live)
            except Fenced:
                pass
            except BaseException:
                await asyncio.shield(self._drop(seat))
                raise
            else:
                return True
        await self._drop(seat)
        return False

    async def _look(self, seat: Seat, take_over: TakeOver) -> Upload | None:
        async with self._looks:
            live = await take_over()
        seat.looked = (live.proved_at, live.progress)
        if live.progress is not None and self._taken < self._limit:
            self._taken += 1
            seat.live = live
        else:
            await asyncio.to_thread(live.publisher.close)
        return live.progress

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
            self._given_back = True

    def _tidy(self, key: Key, seat: Seat) -> None:
        if seat.live is None and not seat.lock.locked() and not seat.waiting:
            self._seats.pop(key, None)
