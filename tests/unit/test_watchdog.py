"""A loop that is held is noticed; one that works, idles or was paused is left alone."""

import asyncio
import threading
import time

from streams.watchdog import Watchdog

LOOK_SECONDS = 0.01


def test_an_agent_that_holds_the_loop_is_noticed() -> None:
    held = threading.Event()

    async def hold() -> None:
        Watchdog(asyncio.get_running_loop(), 5 * LOOK_SECONDS, held.set, LOOK_SECONDS).start()
        assert held.wait(30)  # on purpose: nobody else gets a turn

    asyncio.run(hold())


def test_a_loop_that_has_its_turns_is_left_alone() -> None:
    held = threading.Event()

    async def turns() -> None:
        dog = Watchdog(asyncio.get_running_loop(), 200 * LOOK_SECONDS, held.set, LOOK_SECONDS)
        dog.start()
        for _ in range(20):
            time.sleep(LOOK_SECONDS * 5)  # noqa: ASYNC251  (an event takes its time)
            await asyncio.sleep(0)
        dog.end()
        dog.join()

    asyncio.run(turns())
    assert not held.is_set()
