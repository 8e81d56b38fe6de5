"""The doorway to Kafka's producer: one transactional id, one holder, and transactions that are open for moments only.

Invariants: a transaction is begun when all of its records are at hand and ends in the same call. So no client, however
slow, holds back what others have committed; and the progress record goes last, right before the commit. Where the
library may have sent the request of a commit twice, the late one would end the next transaction: so there is none, and
the id has to be taken over again.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from confluent_kafka import KafkaError, KafkaException, Producer

from cauce.errors import BrokerUnavailable, Fenced, IllegalMove
from cauce.kafka import FENCED, PRODUCER, SENT_ONCE_SECONDS, doorway, take_over_id, translated

log = logging.getLogger(__name__)

INIT_SECONDS: Final = 15.0  # a former holder's transaction may have to be ended first
SEND_SECONDS: Final = 10.0  # three brokers that lose one stall for 5.0–8.6 s
ABORT_SECONDS: Final = 5.0
TRANSACTION_TIMEOUT_MS: Final = 15_000  # a dead gateway's open transaction holds readers back so long at most


@dataclass(frozen=True, slots=True)
class Record:
    topic: str
    partition: int
    key: str
    value: bytes | None  # None: a tombstone
    headers: Sequence[tuple[str, bytes]] = ()


def producer_config(client: Mapping[str, str]) -> dict[str, Any]:
    return {
        **client,
        **PRODUCER,
        "compression.type": "none",  # batches are compressed inside, by column
        "queue.buffering.max.kbytes": 64 << 10,
        "logger": log,
    }


class Publisher:
    """Holds one transactional id. Every call blocks: make it in a thread, one at a time. After an error, only `close`
    is left."""

    def __init__(self, client: Mapping[str, str], transactional_id: str) -> None:
        self.id = transactional_id
        # The request of the last commit may still be on its way, and would be taken for that of the next.
        self.is_spent = False
        self._producer = Producer(
            producer_config(client)
            | {"transactional.id": transactional_id, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
        )

    @classmethod
    def take_over(cls, client: Mapping[str, str], transactional_id: str) -> Self:
        """Become the only holder of the id: a former one is fenced, and its open transaction ended."""
        publisher = cls(client, transactional_id)
        try:
            take_over_id(publisher._producer, transactional_id, INIT_SECONDS)
        except BaseException:
            publisher.close()
            raise
        return publisher

    def publish(self, records: Iterable[Record], last: Iterable[Record]) -> None:
        """One transaction. Returns when all of it is visible; raises when none of it is, or nobody knows yet."""
        if self.is_spent:
            raise IllegalMove(f"transaction {self.id}: begun although a request of the last one may be on its way")
        with doorway("begin_transaction", self.id):
            self._producer.begin_transaction()
        try:
            self._send(records)
            self._flush()
            self._send(last)
            self._flush()
            began_at = time.monotonic()
            with doorway("commit_transaction", self.id):
                self._producer.commit_transaction(SEND_SECONDS)
            self.is_spent = time.monotonic() - began_at >= SENT_ONCE_SECONDS
        except Fenced:
            raise
        except BaseException:
            self._abort()
            raise

    def prove(self, known: Record) -> None:
        """Writes once more what is there already: raises Fenced where another holder has the id. It may be done by a
        spent producer, since a late request could end it early and change nothing."""
        was_spent, self.is_spent = self.is_spent, False
        self.publish([], [known])
        self.is_spent |= was_spent

    def close(self) -> None:
        """Give the id and its threads back. Nothing is open: `publish` ended what it began, as far as Kafka let it.

        The library's own `close` would wait for Kafka without end; letting go of it does not."""
        self._producer.purge()
        del self._producer

    def _send(self, records: Iterable[Record]) -> None:
        for record in records:
            with doorway("produce", self.id):
                produce(self._producer, record)

    def _flush(self) -> None:
        with doorway("flush", self.id):
            left = self._producer.flush(SEND_SECONDS)
        if left:
            raise BrokerUnavailable(f"transaction {self.id}: {left} records not acknowledged in {SEND_SECONDS} s")

    def _abort(self) -> None:
        """Readers of these partitions need not wait for the time-out then. Where it fails, the time-out does it.

        A fenced producer tells the call that finds out no more than "fatal error"; here it says why."""
        try:
            self._producer.purge()
            self._producer.abort_transaction(ABORT_SECONDS)
        except KafkaException as error:
            if error.args[0].code() in FENCED:
                raise translated(error.args[0], f"transaction {self.id}") from error
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
            produce(self._producer, record, on_delivery=delivered)
            self._producer.flush(SEND_SECONDS + 1)
        if not outcome:
            raise BrokerUnavailable(f"{record.topic}: not acknowledged in {SEND_SECONDS} s")
        if outcome[0] is not None:
            raise translated(outcome[0], record.topic)

    def close(self) -> None:
        self._producer.purge()
        del self._producer


def produce(producer: Producer, record: Record, **options: Any) -> None:
    producer.produce(
        record.topic,
        value=record.value,
        key=record.key,
        partition=record.partition,
        headers=list(record.headers),
        **options,
    )
