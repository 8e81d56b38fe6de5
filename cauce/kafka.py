"""Transactional producers, as workers and gateways both use them: how they are set, how an id is taken over, and how
librdkafka's errors become ours."""

from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

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

PRODUCER: Final[dict[str, Any]] = {
    "linger.ms": 5,
    "batch.size": 1 << 20,
    "message.max.bytes": MAX_RECORD_BYTES,
    "reconnect.backoff.max.ms": 1000,
    # A lost group coordinator is looked for only when some connection comes or goes, and nobody else may be using one
    # (librdkafka #5511): closing idle ones ends a wait that would last until a broker happens to restart.
    "connections.max.idle.ms": 3000,
    "log.thread.name": False,
}


def take_over_id(producer: Producer, transactional_id: str, seconds: float) -> None:
    """Become the only holder of the id: a former one is fenced, and its open transaction ended."""
    with doorway("init_transactions", transactional_id):
        producer.list_topics(ANY_TOPIC, seconds)  # connects; asked before that, the library waits half a second
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
