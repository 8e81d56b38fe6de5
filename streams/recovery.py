"""Restoring tables: read each changelog from where its store stands to the END it had once the offsets were stable.

Invariant: the end is the log end, not the last stable offset, and it is asked for after the committed offsets are
stable: an open transaction of a zombie may hold the stable offset below changelog records that are committed already.
"""

import logging
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from faust.types import TP

from cauce.errors import BrokerUnavailable
from cauce.kafka import Ends, let_go
from cauce.provision import wait_known_everywhere
from streams.intake import take
from tables.store import PartitionStore, Position

log = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 15.0
TAKE_AT_MOST: Final = 10_000
TAKE_SECONDS: Final = 0.2
STALLED_SECONDS: Final = 60.0  # nothing came and the end is not reached: an open transaction outlived its time-out


@dataclass(slots=True)
class Progress:
    """How far a restore is, for metrics and logs. Written by the restore thread, read by anyone."""

    wanted: int = 0  # offsets between the stores and the ends; compacted ones will never come
    records: int = 0
    size_bytes: int = 0
    passed: int = 0  # offsets left behind
    started_at: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started_at

    @property
    def seconds_left(self) -> float:
        if self.passed == 0:
            return float("inf") if self.wanted else 0.0
        return self.seconds * max(self.wanted - self.passed, 0) / self.passed


@dataclass(frozen=True, slots=True)
class TopicFacts:
    id: str  # a topic deleted and made again is another one
    partitions: int


class Changelogs:
    """Facts about changelog topics, asked of the cluster once an assignment."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = client
        self._admin = AdminClient(dict(client), logger=log)
        self._ends = Ends(client)

    def cluster_id(self) -> str:
        return str(self._admin.describe_cluster(request_timeout=REQUEST_SECONDS).result().cluster_id)

    def describe(self, topics: Iterable[str]) -> dict[str, TopicFacts]:
        names = sorted(topics)
        if not names:
            return {}
        try:
            found = self._describe(names)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            wait_known_everywhere(self._client, names)  # made a moment ago, and not every broker has heard of it
            found = self._describe(names)
        return {name: TopicFacts(str(topic.topic_id), len(topic.partitions)) for name, topic in found.items()}

    def _describe(self, names: list[str]) -> dict[str, Any]:
        described = self._admin.describe_topics(TopicCollection(names), request_timeout=REQUEST_SECONDS)
        return {name: future.result() for name, future in described.items()}

    def ends(self, tps: Iterable[TP]) -> dict[TP, int]:
        wanted = list(tps)
        if not wanted:
            return {}
        found = self._ends.wait_for(wanted, IsolationLevel.READ_UNCOMMITTED, REQUEST_SECONDS)
        return {TP(*place): offset for place, offset in found.items()}

    def newest_at(self, tps: Collection[TP]) -> dict[TP, float]:
        """Returns the largest append time in each, by its brokers' clocks; of a transaction's marker, too. It is that
        of the last record unless a broker's clock went back; then a store is restored anew that had no need of it."""
        if not tps:
            return {}
        latest = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
        places = {TopicPartition(tp.topic, tp.partition): latest for tp in tps}
        try:
            asked = self._admin.list_offsets(places, request_timeout=REQUEST_SECONDS)
            found = {TP(place.topic, place.partition): future.result() for place, future in asked.items()}
        except KafkaException as error:
            raise BrokerUnavailable(f"the ages of changelogs are not to be had: {error.args[0].str()}") from None
        return {tp: (newest.timestamp or 0) / 1000 for tp, newest in found.items()}


def appended_at(message: Any) -> float:
    """Returns when a record was appended, in seconds; by the broker's clock, as changelogs are made."""
    return float(message.timestamp()[1]) / 1000


class Restore:
    """Brings a set of stores up to their ends. Blocking; runs in a thread of its own, and can be cancelled."""

    def __init__(self, client: Mapping[str, str], stores: Mapping[TP, PartitionStore], ends: Mapping[TP, int]) -> None:
        self.progress = Progress()
        self._client = client
        self._stores = stores
        self._ends = ends
        self._cancelled = threading.Event()
        self._pending = {tp for tp, store in stores.items() if store.offset < ends[tp]}
        self.progress.wanted = sum(ends[tp] - stores[tp].offset for tp in self._pending)

    def cancel(self) -> None:
        self._cancelled.set()

    def run(self) -> bool:
        """Return whether every store has reached its end (not, if cancelled)."""
        if self._pending:
            consumer = Consumer(self._config())
            try:
                consumer.assign(
                    [TopicPartition(tp.topic, tp.partition, self._stores[tp].offset) for tp in self._pending]
                )
                self._read_to_the_ends(consumer)
            finally:
                let_go(consumer)
        return not self._cancelled.is_set()

    def _config(self) -> dict[str, Any]:
        return {
            **self._client,
            "group.id": f"restore-{uuid4()}",  # the library wants one; nothing joins or commits
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "fetch.message.max.bytes": 4 << 20,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 64 << 10,
            "fetch.queue.backoff.ms": 10,  # the default waits a second once the queue is full
            "logger": log,
        }

    def _read_to_the_ends(self, consumer: Consumer) -> None:
        last_news = time.monotonic()
        while self._pending and not self._cancelled.is_set():
            messages = take(consumer, TAKE_AT_MOST, TAKE_SECONDS)
            if messages:
                last_news = time.monotonic()
                self._apply(messages)
            elif time.monotonic() - last_news > STALLED_SECONDS:
                raise BrokerUnavailable(f"restore: nothing came for {STALLED_SECONDS} s, waiting for {self._pending}")

    def _apply(self, messages: Sequence[Any]) -> None:
        changes: dict[TP, dict[bytes, bytes | None]] = {}
        reached: dict[TP, Position] = {}
        for message in messages:
            error = message.error()
            tp = TP(message.topic(), message.partition())
            if error is None:
                changes.setdefault(tp, {})[message.key()] = message.value()
                reached[tp] = Position(message.offset() + 1, appended_at(message))
                self.progress.records += 1
                self.progress.size_bytes += len(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                before = reached.get(tp, self._stores[tp].position)
                reached[tp] = Position(max(message.offset(), before.offset), before.appended_at)
            else:
                raise BrokerUnavailable(f"restore of {tp.topic}-{tp.partition}: {error.str()}")
        for tp, position in reached.items():
            self.progress.passed += position.offset - self._stores[tp].offset
            self._stores[tp].write(changes.get(tp, {}).items(), position)
            if position.offset >= self._ends[tp]:
                self._pending.discard(tp)
