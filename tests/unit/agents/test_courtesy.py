"""A model gives way to rows, and not for ever."""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import pytest

from agents.courtesy import MOST_SECONDS, QUIET_SECONDS, Courtesy
from cauce.messages import ClientId

T = TypeVar("T")
ADA, BRUNO = ClientId("ada"), ClientId("bruno")


class Jumping(selectors.SelectSelector):
    """Where a loop would wait, its clock jumps: seconds cost nothing, and a busy machine changes none of them."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0.0
        return super().select(0)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    selector = Jumping()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


async def waited(courtesy: Courtesy) -> float:
    now = asyncio.get_running_loop().time
    began = now()
    await courtesy.give_way(ADA)
    return now() - began


@pytest.mark.parametrize(
    ("since_rows", "wait"),
    [
        (0.0, MOST_SECONDS),
        (QUIET_SECONDS - 0.01, 0.01),
        (QUIET_SECONDS + 0.01, 0.0),
    ],
)
def test_a_model_waits_until_no_rows_came_for_a_while_but_not_for_long(since_rows: float, wait: float) -> None:
    async def after_rows() -> float:
        courtesy = Courtesy()
        courtesy.busy(ADA)
        await asyncio.sleep(since_rows)
        return await waited(courtesy)

    assert run(after_rows()) == pytest.approx(wait)


def test_where_no_rows_came_nothing_waits() -> None:
    assert run(waited(Courtesy())) == 0.0


def test_nobody_waits_for_somebody_elses_rows() -> None:
    async def beside_another() -> float:
        courtesy = Courtesy()
        courtesy.busy(BRUNO)
        return await waited(courtesy)

    assert run(beside_another()) == 0.0


def test_rows_without_end_do_not_stop_a_model() -> None:
    async def beside_rows() -> Mapping[str, float]:
        courtesy = Courtesy()

        async def rows() -> None:
            while True:
                courtesy.busy(ADA)
                await asyncio.sleep(0.01)

        coming = asyncio.ensure_future(rows())
        await asyncio.sleep(0)
        waits = [await waited(courtesy) for _ in range(3)]
        coming.cancel()
        await asyncio.wait([coming])
        return {"longest": max(waits), "shortest": min(waits)}

    assert run(beside_rows()) == pytest.approx({"longest": MOST_SECONDS, "shortest": MOST_SECONDS})
