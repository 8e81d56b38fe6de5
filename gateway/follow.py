"""The doorway to Kafka's consumer: a thread that reads some topics from their beginning, committed records only.

Invariant: `Reached` is an offset below which every committed record was handed on. It may be compared with an end
offset that counts open transactions: whoever waits for that sees what those transactions hold, too.
"""

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, IsolationLevel, KafkaError, TopicPartition

from cauce.errors import BrokerUnavailable
from cauce.kafka import REQUEST_SECONDS, Ends, Place, let_go

log = logging.getLogger(__name__)

AT_ONCE: Final = 500
POLL_SECONDS: Final = 0.2  # how soon it notices that it is to stop
PART_SECONDS: Final = 15.0
HELD_SECONDS: Final = 20.0  # a turn takes as long as the event loop needs for 500 records, a fraction of a second


@dataclass(frozen=True, slots=True)
class Seen:
    topic: str
    partition: int
    offset: int
    key: str
    value: bytes | None
    at: float  # when it was written, in seconds


@dataclass(frozen=True, slots=True)
class Reached:
    topic: str
    partition: int
    offset: int


Apply = Callable[[Sequence[Seen | Reached]], None]


def consumer_config(client: Mapping[str, str]) -> dict[str, str | int | float | bool]:
    return {
        **client,
        "group.id": "none",  # wanted by the library; nothing is ever committed to it
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 50,  # the end of a partition is told one empty fetch later
        "queued.min.messages": AT_ONCE,
        "queued.max.messages.kbytes": 8 << 10,
        "reconnect.backoff.max.ms": 1000,
        "connections.max.idle.ms": 3000,  # as the producers
        "log.thread.name": False,
    }


class Follower:
    def __init__(self, client: Mapping[str, str], places: Sequence[Place], apply: Apply) -> None:
        self._client = dict(client)
        self._places = places
        self._apply = apply
        self._ends = Ends(client)
        self._stopping = threading.Event()
        self._renewing = threading.Event()
        self._positions: dict[Place, int] = {}  # where a new consumer goes on
        self._turned_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def start(self) -> None:
        self._turned_at = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(2 * REQUEST_SECONDS)

    @property
    def alive(self) -> bool:
        """Whether somebody reads, and is not held by a call that does not return."""
        return self._thread.is_alive() and time.monotonic() - self._turned_at < HELD_SECONDS

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """The end offsets now, open transactions included. Blocks."""
        return self._ends.wait_for(places, IsolationLevel.READ_UNCOMMITTED, REQUEST_SECONDS, self._stopping)

    def renew(self) -> None:
        """Go on with a new consumer. After a broker's absence one was seen to fetch nothing more of a partition, with
        no error (caught once, librdkafka 2.16; its issue #4492 is alike): whoever waits in vain asks for this."""
        self._renewing.set()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._renewing.clear()
                self._read(Consumer(consumer_config(self._client), logger=log))
        except Exception:  # the view's probe sees that nobody reads any more, and ends the gateway
            log.exception("the reader of sessions, uploads and answers ended")

    def _read(self, consumer: Consumer) -> None:
        try:
            consumer.assign([TopicPartition(*place, self._positions.get(place, 0)) for place in self._places])
            while not self._stopping.is_set() and not self._renewing.is_set():
                self._turned_at = time.monotonic()
                # waits for the first one only: a lone record is handed on at once
                first = consumer.poll(POLL_SECONDS)
                if first is not None:  # a tombstone is as false as nothing
                    batch = list(self._events([first, *consumer.consume(AT_ONCE, 0)]))
                    if batch:
                        self._apply(batch)
        finally:
            let_go(consumer)

    def _events(self, messages: Sequence[object]) -> Iterator[Seen | Reached]:
        for message in messages:
            topic, partition, offset = message.topic(), message.partition(), message.offset()  # type: ignore[attr-defined]
            error: KafkaError | None = message.error()  # type: ignore[attr-defined]
            if error is None:
                key, value = message.key() or b"", message.value()  # type: ignore[attr-defined]
                at = message.timestamp()[1] / 1000  # type: ignore[attr-defined]
                self._positions[topic, partition] = offset + 1
                yield Seen(topic, partition, offset, key.decode(), value, at)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._positions[topic, partition] = offset
                yield Reached(topic, partition, offset)
            else:
                log.warning("reading goes on after an error", extra={"topic": topic, "reason": error.str()})


def read_at(client: Mapping[str, str], topic: str, partition: int, offsets: Sequence[int]) -> Generator[bytes]:
    """The values of these records, in this order, one at a time. Blocks."""
    small = {
        "queued.max.messages.kbytes": 4 << 10,
        "queued.min.messages": 2,
        "fetch.queue.backoff.ms": 10,  # the default waits a second whenever the queue is full
        "enable.partition.eof": False,
    }
    consumer = Consumer(consumer_config(client) | small, logger=log)
    try:
        consumer.assign([TopicPartition(topic, partition, offsets[0])])
        expected = offsets[0]
        for offset in offsets:
            if not expected <= offset <= expected + AT_ONCE:
                consumer.seek(TopicPartition(topic, partition, offset))
            while True:
                message = consumer.poll(PART_SECONDS)
                if message is None:
                    raise BrokerUnavailable(f"{topic}-{partition}: no record at {offset} in {PART_SECONDS} s")
                if message.error() is not None:
                    raise BrokerUnavailable(f"{topic}-{partition}: {message.error()}")
                found = message.offset()
                assert found is not None
                expected = found + 1
                if found == offset:
                    yield message.value() or b""
                    break
                if found > offset:
                    raise BrokerUnavailable(f"{topic}-{partition}: the record at {offset} is gone; it was kept 24 h")
    finally:
        consumer.close()
