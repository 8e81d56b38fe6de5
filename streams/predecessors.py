"""Workers that owned our partitions before us and are gone: their open transactions are ended before we restore.

An open transaction of a worker that never returns holds back every reader of what it wrote. Offsets are committed with
the transactional.id of the owner as metadata, so the next owner knows whom to fence.
"""

import logging
from collections.abc import Mapping, Sequence

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from streams.transaction import fence

log = logging.getLogger(__name__)

REQUEST_SECONDS = 15.0
FENCING_TIMEOUT_MS = 10_000


def end_transactions_of_the_gone(
    client: Mapping[str, str], group: str, own_id: str, partitions: Sequence[TopicPartition]
) -> None:
    """Fence the last committers of these partitions, unless they are us or still members of the group."""
    admin = AdminClient(dict(client), logger=log)
    former = _last_committers(admin, group, partitions) - {own_id}
    if former:
        fence(client, former - _members(admin, group), FENCING_TIMEOUT_MS)


def _last_committers(admin: AdminClient, group: str, partitions: Sequence[TopicPartition]) -> set[str]:
    """Read what was committed last without waiting for a pending commit: that may be the very one to end."""
    request = ConsumerGroupTopicPartitions(group, [TopicPartition(tp.topic, tp.partition) for tp in partitions])
    answer = admin.list_consumer_group_offsets([request], require_stable=False, request_timeout=REQUEST_SECONDS)
    return {tp.metadata for tp in answer[group].result().topic_partitions if tp.metadata}


def _members(admin: AdminClient, group: str) -> set[str]:
    """Transactional ids of the live members; a worker's id is its group's name and its instance id."""
    answer = admin.describe_consumer_groups([group], request_timeout=REQUEST_SECONDS)
    return {f"{group}.{member.group_instance_id}" for member in answer[group].result().members}
