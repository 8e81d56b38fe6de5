"""What cannot be exactly-once is refused at start, with a sentence that says what to use instead."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faust
import pytest

from cauce.errors import CauceError, Unsupported
from cauce.process import EXIT_FAILED, exit_code
from streams.exactly_once import ExactlyOnceApp
from streams.options import Options


@pytest.fixture
def app(tmp_path: Path) -> ExactlyOnceApp:
    options = Options(worker_id="w", data=tmp_path, kafka={"bootstrap.servers": "127.0.0.1:1"})
    return ExactlyOnceApp("refusals", options=options)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "tumbling window": lambda app: app.Table("t").tumbling(10),
    "hopping window": lambda app: app.Table("t").hopping(10, 5),
    "window argument": lambda app: app.Table("t", window=faust.TumblingWindow(10)),
    "set table": lambda app: app.SetTable("t"),
    "global table": lambda app: app.GlobalTable("t"),
    "global set table": lambda app: app.SetGlobalTable("t"),
    "store of one's own": lambda app: app.Table("t", store="memory://"),
    "partitioner": lambda app: app.Table("t", use_partitioner=True),
    "topic without acks": lambda app: app.topic("x", acks=False).stream(),
    "long take": lambda app: app.stream(app.topic("x")).take(10, within=5),
    "endless take": lambda app: app.stream(app.topic("x")).take(10, within=None),
    "long take of events": lambda app: app.stream(app.topic("x")).take_events(10, within=5),
    "manual acks": lambda app: app.stream(app.topic("x")).noack(),
    "manual acks of a take": lambda app: app.stream(app.topic("x")).noack_take(10, within=0.1),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_at_start_with_what_to_do_instead(what: str, app: ExactlyOnceApp) -> None:
    async def attempt() -> None:
        REFUSED[what](app)

    with pytest.raises(Unsupported) as refusal:
        asyncio.run(attempt())
    assert any(word in str(refusal.value) for word in ("use", "keep", "put", "send", "leave", "group_by", "engine"))


async def read(stream: Any) -> None:
    async for _ in stream:
        raise AssertionError("nothing was sent")


def sends_on_commit(app: ExactlyOnceApp) -> ExactlyOnceApp:
    app.conf.stream_publish_on_commit = True
    return app


AWAITED: dict[str, Callable[[Any], Any]] = {
    "faust send": lambda app: app.topic("x").send(value=b"v"),
    "sends kept until Faust's own commit": lambda app: sends_on_commit(app).start(),
    "a stream of a task": lambda app: read(app.stream(app.topic("x"))),
    "a topic without a stream": lambda app: read(app.topic("x")),
}


@pytest.mark.parametrize("what", AWAITED)
def test_what_would_wait_for_ever_or_lose_an_event_is_refused(what: str, app: ExactlyOnceApp) -> None:
    async def attempt() -> None:
        await asyncio.wait_for(AWAITED[what](app), 10)

    with pytest.raises(Unsupported, match="use"):
        asyncio.run(attempt())


def test_a_receiver_of_a_signal_that_holds_the_group_up_is_refused(tmp_path: Path) -> None:
    options = Options(
        worker_id="w", data=tmp_path, kafka={"bootstrap.servers": "127.0.0.1:1"}, transaction_timeout_ms=50
    )
    app = ExactlyOnceApp("signals", options=options)

    @app.on_partitions_revoked.connect
    async def wait_for_good(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    with pytest.raises(CauceError, match="on_partitions_revoked: a receiver took over") as refusal:
        asyncio.run(app.on_released(frozenset()))
    assert exit_code(refusal.value) == EXIT_FAILED, "what it waits for may come back"


def test_a_receivers_own_time_out_is_its_own(app: ExactlyOnceApp) -> None:
    @app.on_partitions_revoked.connect
    async def ask_somebody(*_: Any, **__: Any) -> None:
        raise TimeoutError("nobody answers")

    with pytest.raises(TimeoutError, match="nobody answers"):
        asyncio.run(app.on_released(frozenset()))


def test_a_table_is_really_staged_on_rocksdb(app: ExactlyOnceApp) -> None:
    from tables.table import StagedStore, StagedTable

    table = app.Table("t")
    assert isinstance(table, StagedTable)
    assert isinstance(table.data, StagedStore)


def test_nothing_connects_when_an_app_is_imported(app: ExactlyOnceApp) -> None:
    app.Table("t")

    @app.agent(app.topic("x"))
    async def agent(stream: Any) -> None: ...

    assert not hasattr(app.engine, "_transaction")
