"""What workers and gateways both need of Kafka: how a transactional producer is set, how its id is taken over, how
librdkafka's errors become ours, and where partitions end."""

import logging
import threading
import time
from collections.abc import Collection, Mapping
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from cauce.errors import BrokerUnavailable, CauceError, CommitUncertain, Fenced
from cauce.topics import MAX_RECORD_BYTES

FENCED: Final = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
    }
)
ANY_TOPIC: Final = "__consumer_offsets"
REQUEST_SECONDS: Final = 10.0
TRY_SECONDS: Final = 2.0  # then another leader has been chosen, and who asks anew learns of it
AGAIN_SECONDS: Final = 0.2

Place = tuple[str, int]  # topic and partition
log = logging.getLogger(__name__)

# librdkafka waits at least 0.8 of this before it sends a request again. So a call of a transaction that took
# less time sent its requests once, see `SENT_ONCE_SECONDS`.
RETRY_BACKOFF_MS: Final = 250
# A request that was sent twice may arrive twice, and for the first time when the next transaction has begun: an EndTxn
# ends that one then (docs/kafka-findings.md). A new epoch, from `init_transactions`, makes the broker refuse it.
SENT_ONCE_SECONDS: Final = 0.8 * RETRY_BACKOFF_MS / 1000

PRODUCER: Final[dict[str, Any]] = {
    "retry.backoff.ms": RETRY_BACKOFF_MS,
    "linger.ms": 5,
    "batch.size": 1 << 20,
    "message.max.bytes": MAX_RECORD_BYTES,
    "reconnect.backoff.ms": 10,  # of the first try, and the library waits before that one, too
    "reconnect.backoff.max.ms": 1000,
    # A lost group coordinator is looked for only when some connection comes or goes, and nobody else may be using one
    # (librdkafka #5511): closing idle ones ends a wait that would last until a broker happens to restart.
    "connections.max.idle.ms": 3000,
    "log.thread.name": False,
}


def take_over_id(producer: Producer, transactional_id: str, seconds: float) -> None:
    """Become the only holder of the id: a former one is fenced, and its open transaction ended."""
    with doorway("init_transactions", transactional_id):
        # The first connects to the address that was given, the second to the broker that is there. Not connected, the
        # library looks for the coordinator half a second later: it did so 11 of 60 times after one, 0 of 400 after two.
        for _ in range(2):
            producer.list_topics(ANY_TOPIC, seconds)
        producer.init_transactions(seconds)


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
    return BrokerUnavailable(f"{where}: {error.name()} {error.str()}; the next holder goes on from the last commit")


def let_go(consumer: Consumer) -> None:
    """Close a consumer that nobody needs any more, and do not wait for that: when brokers were away it may not return
    (librdkafka 2.16; a gateway read nothing for four minutes)."""
    threading.Thread(target=consumer.close, name="closing", daemon=True).start()


class Ends:
    """Asks the brokers where partitions end, now, or where they begin.

    As a consumer. An admin client asks a leader that is away again and again without a pause, for as long as it was
    given: up to 0.9 of a core a process, just when the brokers need it (measured with librdkafka 2.16)."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = dict(client)
        self._consumers: dict[IsolationLevel, Consumer] = {}  # connect when they are first needed

    def of(self, places: Collection[Place], isolation: IsolationLevel) -> dict[Place, int]:
        """Committed or not, as asked for. Blocks; may be called from any thread."""
        return self._ask(places, isolation, OFFSET_END)

    def _ask(self, places: Collection[Place], isolation: IsolationLevel, which: int) -> dict[Place, int]:
        consumer = self._consumers.get(isolation) or self._connect(isolation)
        try:
            found = consumer.offsets_for_times([TopicPartition(*place, which) for place in places], TRY_SECONDS)
            errors = [tp.error or "no answer" for tp in found if tp.error is not None or tp.offset < 0]
        except KafkaException as error:
            errors = [error.args[0]]
        if errors:
            # It goes on asking whoever led when it last looked; a new one looks first.
            self._consumers.pop(isolation, None)
            what = "ends" if which == OFFSET_END else "beginnings"
            raise BrokerUnavailable(f"the {what} of {min(places)[0]} are not to be had: {errors[0]}")
        return {(tp.topic, tp.partition): tp.offset for tp in found}

    def wait_for(
        self, places: Collection[Place], isolation: IsolationLevel, seconds: float, stop: threading.Event | None = None
    ) -> dict[Place, int]:
        """The same, asked again while a partition moves to another broker, or a new one has not heard of it yet."""
        return self._wait_for(places, isolation, OFFSET_END, seconds, stop or threading.Event())

    def wait_for_beginnings(self, places: Collection[Place], seconds: float) -> dict[Place, int]:
        """The first offsets that retention has left."""
        return self._wait_for(places, IsolationLevel.READ_UNCOMMITTED, OFFSET_BEGINNING, seconds, threading.Event())

    def _wait_for(
        self, places: Collection[Place], isolation: IsolationLevel, which: int, seconds: float, stop: threading.Event
    ) -> dict[Place, int]:
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._ask(places, isolation, which)
            except BrokerUnavailable:
                if time.monotonic() > deadline or stop.wait(AGAIN_SECONDS):
                    raise

    def _connect(self, isolation: IsolationLevel) -> Consumer:
        level = "read_committed" if isolation is IsolationLevel.READ_COMMITTED else "read_uncommitted"
        own = {"group.id": "none", "enable.auto.commit": False, "isolation.level": level, "log.thread.name": False}
        consumer = self._consumers[isolation] = Consumer({**self._client, **own}, logger=log)
        return consumer
