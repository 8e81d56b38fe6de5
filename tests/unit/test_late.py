"""What an event wrote or sent is with it, or the worker ends: whoever catches the error, and however late it comes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock
from weakref import ref

import pytest
from faust.events import Event
from faust.streams import _current_event
from faust.types import TP, Message

from cauce.errors import BrokerUnavailable, CauceError, Unsupported
from streams.exactly_once import ExactlyOnceApp
from streams.options import Options
from streams.outbox import WAITING_AT_MOST, Outbox
from tables.staging import StagedPartition
from tables.table import StagedTable


class Failures(list[BaseException]):
    """What would have ended the worker."""

    @property
    def kinds(self) -> list[type[BaseException]]:
        return [type(error) for error in self]


class Broken:
    """A store that cannot be read."""

    def get(self, key: bytes) -> bytes | None:
        raise OSError("Input/output error")

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        yield b"a", b"1"
        raise OSError("Input/output error")


@pytest.fixture
def app(tmp_path: Path) -> ExactlyOnceApp:
    options = Options(worker_id="w", data=tmp_path, kafka={"bootstrap.servers": "127.0.0.1:1"})
    return ExactlyOnceApp("late", options=options)


@pytest.fixture
def failures() -> Failures:
    return Failures()


@pytest.fixture
def table(app: ExactlyOnceApp, failures: Failures) -> StagedTable:
    table: Any = app.Table("t", default=int, key_type=str, value_type=int, partitions=1)
    table.data.on_failure = failures.append
    table._verify_source_topic_partitions = lambda topic: None
    return cast("StagedTable", table)


def event_of(app: ExactlyOnceApp, partition: int = 0) -> Event:
    message = Message("in", partition, 7, 0.0, 0, [], b"", b"", None, tp=TP("in", partition))
    return Event(app, b"", b"", {}, message)


class Within:
    """An event is in hand, as far as this context knows."""

    def __init__(self, event: Event) -> None:
        self._event = event

    def __enter__(self) -> Event:
        self._token = _current_event.set(ref(self._event))
        return self._event

    def __exit__(self, *reason: object) -> None:
        _current_event.reset(self._token)


def test_a_write_within_its_event_is_staged(app: ExactlyOnceApp, table: StagedTable, failures: Failures) -> None:
    table.data.partitions[0] = StagedPartition(Mock(get=lambda key: None))
    with Within(event_of(app)):
        table["a"] += 1
        assert table["a"] == 1
    assert not failures


def test_a_write_behind_its_event_ends_the_worker(app: ExactlyOnceApp, table: StagedTable, failures: Failures) -> None:
    table.data.partitions[0] = StagedPartition(Mock(get=lambda key: None))
    with Within(event_of(app)) as event:
        event.message.acked = True
        for write in (lambda: table.update(a=1), lambda: table.pop("a", 0), lambda: table.data.__setitem__("a", 1)):
            with pytest.raises(Unsupported, match="its event has ended already"):
                write()
    assert failures.kinds == [Unsupported] * 3


def test_a_write_behind_an_event_that_is_forgotten_ends_the_worker(
    app: ExactlyOnceApp, table: StagedTable, failures: Failures
) -> None:
    event = event_of(app)
    token = _current_event.set(ref(event))
    del event
    try:
        with pytest.raises(Unsupported, match="its event has ended already"):
            table["a"] = 1
    finally:
        _current_event.reset(token)
    assert failures.kinds == [Unsupported]


def test_a_write_without_an_event_is_refused_and_harms_nobody(table: StagedTable, failures: Failures) -> None:
    with pytest.raises(TypeError):
        table["a"] = 1
    assert not failures


@pytest.mark.parametrize("read", ["get", "in", "items"])
def test_a_store_that_cannot_be_read_ends_the_worker_whoever_catches_it(
    read: str, app: ExactlyOnceApp, table: StagedTable, failures: Failures
) -> None:
    table.data.partitions[0] = StagedPartition(Broken())  # type: ignore[arg-type]
    reads: dict[str, Any] = {
        "get": lambda: table["a"],
        "in": lambda: "a" in table,
        "items": lambda: list(table.items()),
    }
    with Within(event_of(app)) as event:
        with pytest.raises(OSError, match="Input/output"):
            reads[read]()
        assert failures.kinds == [OSError]
        event.message.acked = True  # a task that reads on, while partitions move away
        with pytest.raises(OSError, match="Input/output"):
            reads[read]()
    assert len(failures) == 1


def test_a_partition_that_is_not_ours_is_no_missing_key(
    app: ExactlyOnceApp, table: StagedTable, failures: Failures
) -> None:
    with Within(event_of(app, partition=3)), pytest.raises(Unsupported, match="partition 3 is not ours"):
        table.get("a", 0)
    assert failures.kinds == [Unsupported]


class Refusing:
    """A transaction that takes nothing."""

    def produce(self, *arguments: Any, **options: Any) -> None:
        raise BrokerUnavailable("no")


async def outbox_of(transaction: Any, failures: Failures) -> Outbox:
    outbox = Outbox(lambda: None, failures.append, lambda: False)
    outbox.open(transaction)
    return outbox


def test_a_send_that_is_not_taken_ends_the_worker_whoever_catches_it(failures: Failures) -> None:
    async def scene() -> None:
        outbox = await outbox_of(Refusing(), failures)
        with pytest.raises(CauceError):
            outbox.send("out", b"k", b"v")

    asyncio.run(scene())
    assert failures.kinds == [BrokerUnavailable]


def test_a_send_behind_its_event_ends_the_worker(app: ExactlyOnceApp, failures: Failures) -> None:
    async def scene() -> None:
        sent: list[Any] = []
        outbox = await outbox_of(Mock(produce=lambda *arguments, **options: sent.append(arguments)), failures)
        with Within(event_of(app)) as event:
            outbox.send("out", b"k", b"in time")
            left_behind = asyncio.get_running_loop().create_task(later(outbox))
            event.message.acked = True
        with pytest.raises(Unsupported, match="a record for out: its event has ended already"):
            await left_behind
        outbox.send("out", b"k", b"of a timer")
        outbox.close()
        with Within(event), pytest.raises(Unsupported):
            outbox.send_when_possible(lambda: None)
        assert [arguments[2] for arguments in sent] == [b"in time", b"of a timer"]

    async def later(outbox: Outbox) -> None:
        outbox.send("out", b"k", b"too late")

    asyncio.run(scene())
    assert failures.kinds == [Unsupported] * 2


class Unreachable:
    """A channel that takes nothing."""

    async def send(self, **options: Any) -> None:
        raise ValueError("too large")


def test_an_echo_that_is_not_taken_ends_the_worker(
    app: ExactlyOnceApp, failures: Failures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.engine, "event_failed", failures.append)

    async def scene() -> None:
        stream: Any = app.topic("x").stream().echo(cast("Any", Unreachable()))
        (echoing,) = stream._processors
        with pytest.raises(ValueError, match="too large"):
            await echoing("value")

    asyncio.run(scene())
    assert failures.kinds == [ValueError]


def test_what_waits_on_a_worker_without_partitions_is_bounded(failures: Failures) -> None:
    idle = False
    outbox = Outbox(lambda: None, failures.append, lambda: idle)
    for _ in range(WAITING_AT_MOST + 1):
        outbox.send_when_possible(lambda: None)  # during a commit, or a restore
    idle = True
    with pytest.raises(CauceError, match="no partition is ours"):
        outbox.send_when_possible(lambda: None)
    assert failures.kinds == [CauceError]
