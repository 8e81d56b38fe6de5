"""Whatever topic an agent adds, and whenever: it is subscribed to."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from faust.types.topics import TopicT

from streams import conductor
from streams.exactly_once import ExactlyOnceApp
from streams.options import Options


class Subscribed:
    """Stands for the consumer: keeps what it was told."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[set[str]] = asyncio.Queue()

    async def subscribe(self, topics: Iterable[str]) -> None:
        self.told.put_nowait(set(topics))


class Started:
    async def wait_until_agents_started(self) -> None: ...
    async def wait_until_tables_registered(self) -> None: ...


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExactlyOnceApp:
    monkeypatch.setattr(conductor, "RESUBSCRIBE_SECONDS", 0.01)
    kafka = {"bootstrap.servers": "127.0.0.1:1"}
    app = ExactlyOnceApp("app", options=Options(worker_id="w0", data=tmp_path, kafka=kafka))
    monkeypatch.setattr(app, "agents", Started())
    monkeypatch.setattr(app, "tables", Started())
    return app


async def first_told(app: ExactlyOnceApp, *, then: TopicT | None = None) -> list[set[str]]:
    consumer: Any = Subscribed()
    app.consumer = consumer
    subscribing = asyncio.ensure_future(app.topics._subscriber.fun(app.topics))  # type: ignore[attr-defined]
    try:
        async with asyncio.timeout(5):
            told = [await consumer.told.get()]
            if then is not None:
                app.topics.add(then)
                told.append(await consumer.told.get())
    finally:
        subscribing.cancel()
    return told


def test_a_topic_that_is_added_while_another_is_made(app: ExactlyOnceApp, monkeypatch: pytest.MonkeyPatch) -> None:
    orders, by_customer = app.topic("orders", internal=True), app.topic("by-customer", internal=True)

    async def make() -> None:
        await asyncio.sleep(0)
        app.topics.add(by_customer)

    async def exists() -> None: ...

    monkeypatch.setattr(orders, "maybe_declare", make)
    monkeypatch.setattr(by_customer, "maybe_declare", exists)
    app.topics.add(orders)
    assert asyncio.run(first_told(app)) == [{"orders", "by-customer"}], "one of them is read by nobody, for ever"


def test_a_topic_that_is_added_later(app: ExactlyOnceApp) -> None:
    app.topics.add(app.topic("orders"))
    told = asyncio.run(first_told(app, then=app.topic("late")))
    assert told == [{"orders"}, {"orders", "late"}]
