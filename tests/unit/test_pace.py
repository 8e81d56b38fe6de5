"""When a checkpoint is due. Real time, in milliseconds: what is compared is the order of things."""

import asyncio
import time

from streams.pace import BETWEEN_SECONDS, HASTE_SECONDS, Pace

LONG_MS = 60_000


def seconds_until_due(pace: Pace) -> float:
    async def wait() -> float:
        started = time.monotonic()
        await asyncio.wait_for(pace.wait(), 10)
        return time.monotonic() - started

    return asyncio.run(wait())


def test_it_comes_by_itself_and_at_once_when_asked() -> None:
    assert seconds_until_due(Pace(every_ms=20)) >= 0.02
    pace = Pace(LONG_MS)
    pace.now()
    assert seconds_until_due(pace) < 10


def test_haste_gathers_a_little_and_keeps_a_distance_from_the_last_commit() -> None:
    async def hastened(pace: Pace) -> float:
        started = time.monotonic()
        pace.hasten()
        pace.hasten()
        await asyncio.wait_for(pace.wait(), 10)
        return time.monotonic() - started

    assert asyncio.run(hastened(Pace(LONG_MS))) >= HASTE_SECONDS
    pace = Pace(LONG_MS)
    before = time.monotonic()
    pace.committed()
    asyncio.run(hastened(pace))
    assert time.monotonic() - before >= BETWEEN_SECONDS


def test_a_commit_takes_the_haste_along() -> None:
    async def left_over() -> bool:
        pace = Pace(LONG_MS)
        pace.hasten()
        pace.committed()
        try:
            await asyncio.wait_for(pace.wait(), 2 * HASTE_SECONDS)
        except TimeoutError:
            return False
        return True

    assert not asyncio.run(left_over())
