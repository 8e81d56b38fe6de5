"""The consumer thread: whatever ends it also ends the worker, which would else look alive and read nothing."""

import asyncio
from typing import Any

import pytest

from streams.intake import Intake, consumer_config

NOWHERE = {"bootstrap.servers": "127.0.0.1:9", "log_level": "0"}


class Worker:
    """Notes why it failed; the rest of a worker is not asked for here."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []

    def failed(self, error: BaseException) -> None:
        self.failures.append(error)


def test_an_unexpected_error_in_the_consumer_thread_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Intake) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("streams.intake.wait_known_everywhere", lambda client, topics: None)
    monkeypatch.setattr(Intake, "_read", broken)
    worker: Any = Worker()
    config = consumer_config(NOWHERE, "group", "w0", 6_000)

    async def life_of_a_thread() -> None:
        intake = Intake(NOWHERE, config, ["topic"], "group.w0", worker, asyncio.get_running_loop())
        intake.start()
        await asyncio.to_thread(intake.join)

    asyncio.run(life_of_a_thread())
    assert [str(failure) for failure in worker.failures] == ["a bug"]
