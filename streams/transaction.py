"""The one transactional producer of a worker: everything it sends, and the offsets of what it read, commit together.

Invariants: nothing commits without offsets, because the group generation that travels with them is what makes a stale
worker fail (docs/exactly-once.md). Any error here ends the process; no call is tried again. Where the library may have
sent a request of a commit twice, nothing is begun before `renew` has made the late one harmless.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from faust.types import TP

from cauce.errors import BrokerUnavailable, CauceError, CommitUncertain, IllegalMove
from cauce.kafka import PRODUCER, SENT_ONCE_SECONDS, doorway, take_over_id, translated

log = logging.getLogger(__name__)

INIT_SECONDS: Final = 30.0  # a former self may hold a transaction that a dying coordinator has to end first
POLL_SECONDS: Final = 0.05
ABORT_SECONDS: Final = 0.1  # for a word of a producer that is done for; there is nothing left to abort

Delivered = Callable[[KafkaError | None, Any], None]
Member = object  # the consumer's group metadata, opaque: member id and generation at the time of the assignment


def producer_config(client: Mapping[str, str], transactional_id: str, timeout_ms: int) -> dict[str, Any]:
    return {
        **client,
        **PRODUCER,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": timeout_ms,
        "partitioner": "murmur2_random",  # where Java's and Faust's own producer put a key
        "compression.type": "lz4",
        "queue.buffering.max.kbytes": 256 << 10,
        "queue.buffering.max.messages": 1_000_000,
        "logger": log,
    }


class Transaction:
    """Blocking calls, made from the checkpoint thread; only `produce` is called on the event loop."""

    def __init__(
        self, client: Mapping[str, str], transactional_id: str, timeout_ms: int, label: Callable[[TP], str]
    ) -> None:
        self.id = transactional_id
        self._label = label
        self._timeout = timeout_ms / 1000
        self._config = producer_config(client, transactional_id, timeout_ms)
        self._producer = Producer(self._config)
        self._closing = threading.Event()
        self._failure: KafkaError | None = None
        # A request of the last commit may still be on its way, and would be taken for one of the next.
        self.needs_renewal = False
        self._poller = threading.Thread(target=self._poll, name="deliveries", daemon=True)

    def initialise(self) -> None:
        """Become the only holder of the id, once: a former self is fenced, and its open transaction ended.

        To be called as a member of the group: whoever got the partitions of a worker that was none fences it, and has
        done so before the group can let that worker in again."""
        if not self._poller.is_alive():
            take_over_id(self._producer, self.id, INIT_SECONDS)
            self._poller.start()

    def renew(self) -> None:
        """Takes a new producer, and with it a new epoch: the broker refuses what the old one left on its way. Nothing
        is open and all was acknowledged, so there is nothing to hand over."""
        log.warning("a commit was slow, a new epoch is taken", extra={"transactional_id": self.id})
        producer = Producer(self._config)
        take_over_id(producer, self.id, INIT_SECONDS)
        self._producer, self.needs_renewal = producer, False

    def begin(self) -> None:
        if self.needs_renewal:
            raise IllegalMove(f"transaction {self.id}: begun although a request of the last one may be on its way")
        with doorway("begin_transaction", self.id):
            self._producer.begin_transaction()

    def produce(self, topic: str, key: bytes | None, value: bytes | None, delivered: Delivered, **options: Any) -> None:
        def on_delivery(error: KafkaError | None, message: Any) -> None:
            if error is not None and self._failure is None:
                self._failure = error
            delivered(error, message)

        try:
            self._produce(topic, key=key, value=value, on_delivery=on_delivery, **options)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:  # its sender's to deal with
                raise ValueError(f"record for {topic}: {error.args[0].str()}; send several smaller ones") from error
            raise self._ours(error.args[0], f"record for {topic}") from error

    def _produce(self, topic: str, **options: Any) -> None:
        """Where one event sends more than the library holds, wait for room, for as long as a flush may take."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return self._producer.produce(topic, **options)
            except BufferError as error:
                if time.monotonic() > deadline:
                    raise BrokerUnavailable(f"transaction {self.id}: no room for more in {self._timeout} s") from error
                self._producer.poll(POLL_SECONDS)

    def flush(self) -> None:
        """Return when every record is acknowledged by all replicas in sync, or raise."""
        with doorway("flush", self.id):  # raises if the producer was fenced meanwhile
            remaining = self._producer.flush(self._timeout)
        if remaining:
            raise BrokerUnavailable(f"transaction {self.id}: {remaining} records not acknowledged in {self._timeout} s")
        if self._failure is not None:
            raise self._ours(self._failure, "a record was not acknowledged")

    def _ours(self, error: KafkaError, what: str) -> CauceError:
        """A producer that is done for says only that to whoever sends; asked to abort, it says why."""
        if error.code() == KafkaError._FATAL:
            try:
                self._producer.abort_transaction(ABORT_SECONDS)
            except KafkaException as told:
                error = told.args[0]
        return translated(error, f"transaction {self.id}: {what}")

    def send_offsets(self, offsets: Mapping[TP, int], member: Member) -> None:
        """Put what was read into the transaction. The label, with our id, goes along as metadata: whoever owns the
        partition next knows whose open transaction to end."""
        if not offsets:
            raise CommitUncertain(f"transaction {self.id}: no offsets, so nothing would fence a stale worker; a bug")
        positions = [TopicPartition(tp.topic, tp.partition, offset, self._label(tp)) for tp, offset in offsets.items()]
        with doorway("send_offsets_to_transaction", self.id), self._noting_whether_slow():
            self._producer.send_offsets_to_transaction(positions, member, self._timeout)

    def commit(self) -> None:
        with doorway("commit_transaction", self.id), self._noting_whether_slow():
            self._producer.commit_transaction(self._timeout)

    @contextmanager
    def _noting_whether_slow(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.needs_renewal |= time.monotonic() - began >= SENT_ONCE_SECONDS

    def abort(self, timeout_seconds: float) -> None:
        with doorway("abort_transaction", self.id):
            self._producer.abort_transaction(timeout_seconds)

    def close(self) -> None:
        self._closing.set()
        if self._poller.is_alive():
            self._poller.join()

    def _poll(self) -> None:
        """Serve delivery reports while nobody flushes, so that awaiting a send does not wait for the checkpoint."""
        while not self._closing.is_set():
            try:
                self._producer.poll(POLL_SECONDS)
            except KafkaException as error:  # fenced: the next flush says so, and ends the worker
                self._failure = self._failure or error.args[0]
                return


def fence(client: Mapping[str, str], transactional_ids: Iterable[str], timeout_ms: int) -> None:
    """End the open transactions of workers that are gone, so that nobody waits for them to time out."""
    for transactional_id in sorted(transactional_ids):
        log.warning("fencing a worker that left", extra={"transactional_id": transactional_id})
        take_over_id(Producer(producer_config(client, transactional_id, timeout_ms)), transactional_id, INIT_SECONDS)
