"""The doorway to Kafka's producer: one transactional id, one holder, and transactions that are open for moments only.

Invariant: a transaction is begun when all of its records are at hand and ends in the same call. So no client, however
slow, holds back what others have committed; and the progress record goes last, right before the commit.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from confluent_kafka import KafkaError, KafkaException, Producer

from cauce.errors import BrokerUnavailable, CauceError, CommitUncertain, Fenced
from cauce.topics import MAX_RECORD_BYTES

log = logging.getLogger(__name__)

FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
INIT_SECONDS: Final = 15.0  # a former holder's transaction may have to be ended first
SEND_SECONDS: Final = 10.0  # three brokers that lose one stall for 5.0–8.6 s
ABORT_SECONDS: Final = 5.0
TRANSACTION_TIMEOUT_MS: Final = 15_000  # a dead gateway's open transaction holds readers back so long at most
ANY_TOPIC: Final = "__consumer_offsets"


@dataclass(frozen=True, slots=True)
class Record:
    topic: str
    partition: int
    key: str
    value: bytes | None  # None: a tombstone
    headers: Sequence[tuple[str, bytes]] = ()


def producer_config(client: Mapping[str, str]) -> dict[str, Any]:
    """As streams/transaction.py has it, for less at once."""
    return {
        **client,
        "linger.ms": 5,
        "batch.size": 1 << 20,
        "compression.type": "none",  # batches are compressed inside, by column
        "message.max.bytes": MAX_RECORD_BYTES,
        "queue.buffering.max.kbytes": 64 << 10,
        "reconnect.backoff.max.ms": 1000,
        # A lost coordinator is looked for only when some connection comes or goes (librdkafka #5511).
        "connections.max.idle.ms": 3000,
        "log.thread.name": False,
        "logger": log,
    }


class Publisher:
    """Holds one transactional id. Every call blocks: make it in a thread, one at a time. After an error, only `close`
    is left."""

    def __init__(self, client: Mapping[str, str], transactional_id: str) -> None:
        self.id = transactional_id
        self._producer = Producer(
            producer_config(client)
            | {"transactional.id": transactional_id, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
        )

    @classmethod
    def take_over(cls, client: Mapping[str, str], transactional_id: str) -> Self:
        """Become the only holder of the id: a former one is fenced, and its open transaction ended."""
        publisher = cls(client, transactional_id)
        try:
            with doorway("init_transactions", transactional_id):
                publisher._producer.list_topics(ANY_TOPIC, INIT_SECONDS)  # connects: half a second less to wait
                publisher._producer.init_transactions(INIT_SECONDS)
        except BaseException:
            publisher.close()
            raise
        return publisher

    def publish(self, records: Iterable[Record], last: Iterable[Record]) -> None:
        """One transaction. Returns when all of it is visible; raises when none of it is, or nobody knows yet."""
        with doorway("begin_transaction", self.id):
            self._producer.begin_transaction()
        try:
            self._send(records)
            self._flush()
            self._send(last)
            self._flush()
            with doorway("commit_transaction", self.id):
                self._producer.commit_transaction(SEND_SECONDS)
        except Fenced:
            raise
        except BaseException:
            self._abort()
            raise

    def close(self) -> None:
        """Give the id and its threads back. Nothing is open: `publish` ended what it began, as far as Kafka let it.

        The library's own `close` would wait for Kafka without end; letting go of it does not."""
        self._producer.purge()
        del self._producer

    def _send(self, records: Iterable[Record]) -> None:
        for record in records:
            with doorway("produce", self.id):
                self._producer.produce(
                    record.topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                )

    def _flush(self) -> None:
        with doorway("flush", self.id):
            left = self._producer.flush(SEND_SECONDS)
        if left:
            raise BrokerUnavailable(f"transaction {self.id}: {left} records not acknowledged in {SEND_SECONDS} s")

    def _abort(self) -> None:
        """Readers of these partitions need not wait for the time-out then. Where it fails, the time-out does it."""
        try:
            self._producer.purge()
            self._producer.abort_transaction(ABORT_SECONDS)
        except KafkaException as error:
            log.warning("transaction left to its time-out", extra={"transactional_id": self.id, "reason": str(error)})


class Notes:
    """Plain records, such as a new session: on their own, each is all there is to say."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._producer = Producer(
            producer_config(client) | {"enable.idempotence": True, "delivery.timeout.ms": int(SEND_SECONDS * 1000)}
        )

    def send(self, record: Record) -> None:
        """Returns once every replica in sync has it."""
        outcome: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, message: object) -> None:
            outcome.append(error)

        with doorway("produce", "of notes"):
            self._producer.produce(
                record.topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                headers=list(record.headers),
                on_delivery=delivered,
            )
            self._producer.flush(SEND_SECONDS + 1)
        if not outcome:
            raise BrokerUnavailable(f"{record.topic}: not acknowledged in {SEND_SECONDS} s")
        if outcome[0] is not None:
            raise translated(outcome[0], record.topic)

    def close(self) -> None:
        self._producer.purge()
        del self._producer


class doorway:  # noqa: N801 reads as a statement
    """Turns librdkafka's errors into ours."""

    def __init__(self, call: str, transactional_id: str) -> None:
        self._where = f"transaction {transactional_id}: {call}"

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KafkaException):
            raise translated(error.args[0], self._where) from error
        if isinstance(error, BufferError):
            raise BrokerUnavailable(f"{self._where}: the queue to Kafka is full") from error


def translated(error: KafkaError, where: str) -> CauceError:
    if error.code() in FENCED:
        return Fenced(f"{where}: {error.str()}; another holder goes on from the last commit, nothing was lost")
    if error.code() == KafkaError._TIMED_OUT or error.retriable():
        return CommitUncertain(f"{where}: {error.str()}; the next holder finds out how it ended")
    return BrokerUnavailable(f"{where}: {error.name()} {error.str()}")
