"""Workers that owned our partitions before us and are gone: their open transactions are ended before we restore.

An open transaction of a worker that never returns holds back every reader of what it wrote. Offsets are committed with
the transactional.id of the owner as metadata, so the next owner knows whom to fence.
"""

import logging
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from streams.suspects import Label
from streams.transaction import fence

log = logging.getLogger(__name__)

REQUEST_SECONDS = 15.0
FENCING_TIMEOUT_MS = 10_000


def end_transactions_of_the_gone(
    client: Mapping[str, str], group: str, own_id: str, partitions: Sequence[TopicPartition]
) -> None:
    """Fence the last committers of these partitions, unless they are us or still members of the group."""
    former = last_committers(client, group, partitions) - {own_id}
    if former:
        fence(client, former - _members(client, group), FENCING_TIMEOUT_MS)


def last_committers(client: Mapping[str, str], group: str, partitions: Sequence[TopicPartition]) -> set[str]:
    """Read what was committed last without waiting for a pending commit (that may be the very one to end): so does a
    consumer that reads uncommitted records. It never joins. An AdminClient has no group of its own, and librdkafka 2.16
    dies of a null pointer in it when the group's coordinator has moved (rd_kafka_handle_OffsetFetch)."""
    asking = {"group.id": group, "isolation.level": "read_uncommitted", "enable.auto.commit": False}
    reader = Consumer({**client, **asking, "log.thread.name": False}, logger=log)
    wanted = [TopicPartition(tp.topic, tp.partition) for tp in partitions]
    return {Label.read(tp.metadata).owner for tp in committed_offsets(reader, wanted, REQUEST_SECONDS) if tp.metadata}


def committed_offsets(consumer: Consumer, partitions: list[TopicPartition], seconds: float) -> list[TopicPartition]:
    """With their metadata. A partition whose offset is not to be had must not look like one that has none."""
    committed = consumer.committed(partitions, seconds)
    for tp in committed:
        if tp.error is not None:
            raise KafkaException(tp.error)
    return committed


def _members(client: Mapping[str, str], group: str) -> set[str]:
    """Transactional ids of the live members; a worker's id is its group's name and its instance id."""
    admin = AdminClient(dict(client), logger=log)
    answer = admin.describe_consumer_groups([group], request_timeout=REQUEST_SECONDS)
    return {f"{group}.{member.group_instance_id}" for member in answer[group].result().members}
