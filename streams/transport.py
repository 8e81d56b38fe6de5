"""Faust's transport, consumer and producer, as thin faces of the engine.

Faust calls these; all decisions are the engine's. What Faust does on its own (commit, seek, recover) is switched off.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from faust.transport import base
from faust.types import TP, ConsumerMessage, FutureMessage, HeadersArg, RecordMetadata
from mode import Seconds, want_seconds

from cauce.errors import Unsupported
from cauce.provision import WantedTopic, ensure_topics
from cauce.topics import STAMPED_BY_BROKERS
from streams.conductor import Conductor
from streams.outbox import Sent

if TYPE_CHECKING:
    from streams.engine import Engine

REQUEST_SECONDS: Final = 30.0


class Consumer(base.Consumer):
    """Says what is acknowledged; reads through the engine's intake."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        engine = self._engine
        # Faust's compiled stream iterator writes into these three directly
        self._unacked_messages = engine.inbox.in_flight
        self._acked = engine.inbox.acked
        self._acked_index = engine.inbox.acked_index

    @property
    def _engine(self) -> "Engine":
        return self.app.engine  # type: ignore[attr-defined, no-any-return]

    async def on_start(self) -> None:
        engine = self._engine
        for endless in (engine.deliver(), engine.pulse(), engine.tidy(), engine.watch()):
            self.add_future(engine.guarded(endless))

    async def on_stop(self) -> None: ...

    async def subscribe(self, topics: Iterable[str]) -> None:
        self._engine.join(set(topics))

    def assignment(self) -> set[TP]:
        return set(self._engine.assignment)

    def topic_partitions(self, topic: str) -> int | None:
        """Number of partitions; a table compares that of its changelog with that of the events' topic."""
        return self.app.tables.partition_counts.get(topic)  # type: ignore[attr-defined, no-any-return]

    async def commit(self, topics: Any = None, start_new_transaction: bool = True) -> bool:
        """A checkpoint is of everything or nothing; the engine's pulse makes them."""
        return False

    async def on_task_error(self, exc: BaseException) -> None:
        self._engine.failed(exc)

    async def verify_all_partitions_active(self) -> None: ...

    async def wait_empty(self) -> None: ...

    def stop_flow(self) -> None: ...

    def pause_partitions(self, tps: Iterable[TP]) -> None: ...

    def key_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int | None:
        raise Unsupported("routing by table key is not supported; read the table on the worker that owns the partition")

    # what the engine's intake does instead

    async def _not_here(self, *arguments: Any, **options: Any) -> Any:
        raise Unsupported("the engine reads and seeks on its own; Faust's recovery and seeking are switched off")

    _commit = _getmany = _seek = seek_to_committed = seek_wait = position = create_topic = _not_here
    earliest_offsets = highwaters = _not_here

    def highwater(self, tp: TP) -> int:
        return 0

    def _new_topicpartition(self, topic: str, partition: int) -> TP:
        return TP(topic, partition)

    def _to_message(self, tp: TP, record: Any) -> ConsumerMessage:
        raise Unsupported("the engine makes messages on its own")


class Producer(base.Producer):
    """Sends into the worker's open transaction."""

    @property
    def _engine(self) -> "Engine":
        return self.app.engine  # type: ignore[attr-defined, no-any-return]

    async def on_start(self) -> None:
        await self._engine.start()

    async def on_stop(self) -> None: ...

    async def flush(self) -> None: ...

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp: float | None,
        headers: HeadersArg | None,
        *,
        transactional_id: str | None = None,
    ) -> Awaitable[RecordMetadata]:
        await self.sendable()
        return self._engine.outbox.send(topic, key, value, **record_options(partition, timestamp, headers))

    async def send_and_wait(self, *arguments: Any, **options: Any) -> RecordMetadata:
        return await (await self.send(*arguments, **options))

    def send_soon(self, fut: FutureMessage) -> None:
        """Faust's synchronous send. Within an event it joins that event's transaction, at once and in order."""
        if not self._engine.outbox.is_open:
            self._refuse_outside_of_a_worker()
        self._engine.outbox.send_when_possible(partial(self.send_now, fut))

    async def sendable(self) -> None:
        if not self._engine.outbox.is_open:
            self._refuse_outside_of_a_worker()
            await self._engine.outbox.sendable()

    def _refuse_outside_of_a_worker(self) -> None:
        """`faust send`, or a script that imports the app: no transaction will ever begin there."""
        if not self.app.started and not self.app.in_worker:
            raise Unsupported(
                "nothing is sent outside of a worker, whose transactions carry it; use kafka-console-producer, "
                "or any producer of Kafka's"
            )

    def send_now(self, fut: FutureMessage) -> Sent:
        message = fut.message
        sent = self._engine.outbox.send(
            message.channel.get_topic_name(),
            message.key,
            message.value,
            **record_options(message.partition, message.timestamp, message.headers),
        )
        sent.add_done_callback(partial(self._resolve, fut))
        return sent

    @staticmethod
    def _resolve(fut: FutureMessage, sent: asyncio.Future[RecordMetadata]) -> None:
        error = sent.exception()
        if error is not None:
            fut.set_exception(error)
            return
        fut.set_result(sent.result())
        if fut.message.callback:
            fut.message.callback(fut)

    def supports_headers(self) -> bool:
        return True

    async def create_topic(
        self,
        topic: str,
        partitions: int,
        replication: int,
        *,
        config: Mapping[str, Any] | None = None,
        timeout: Seconds = REQUEST_SECONDS,  # noqa: ASYNC109 Faust's signature
        retention: Seconds | None = None,
        compacting: bool | None = None,
        deleting: bool | None = None,
        ensure_created: bool = False,
    ) -> None:
        """Make a topic that Faust needs (a changelog, a repartition topic), unless it exists. How many copies it gets
        is the options' word, not Faust's, which says one where nothing is said."""
        settings = dict(config or {})
        if compacting:
            settings["cleanup.policy"] = "compact,delete" if deleting else "compact"
        if topic in self.app.tables.changelog_topics:
            settings |= STAMPED_BY_BROKERS  # the age of a store goes by it
        if retention is not None:
            settings["retention.ms"] = str(int(want_seconds(retention) * 1000))
        options = self._engine.options
        await asyncio.to_thread(
            ensure_topics, options.kafka, [WantedTopic(topic, partitions, settings)], options.replication
        )


def record_options(partition: int | None, timestamp: float | None, headers: Any) -> dict[str, Any]:
    """Only what was given: librdkafka picks the partition by the key, and the time."""
    options: dict[str, Any] = {}
    if partition is not None:
        options["partition"] = partition
    if timestamp:
        options["timestamp"] = int(timestamp * 1000)
    if headers:
        options["headers"] = dict(headers)
    return options


class Transport(base.Transport):
    Conductor = Conductor
    Consumer = Consumer
    Producer = Producer
    driver_version = "librdkafka, exactly once"
