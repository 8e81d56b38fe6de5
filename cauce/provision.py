"""Creating topics on purpose: with a number of partitions, a replication that fits the cluster, and their settings."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from cauce.errors import BrokerUnavailable, ConfigError

log = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 30.0
REPLICAS: Final = 3  # survives the loss of one broker without stopping


@dataclass(frozen=True, slots=True)
class WantedTopic:
    name: str
    partitions: int
    config: Mapping[str, str]


def ensure_topics(client: Mapping[str, str], wanted: Sequence[WantedTopic], replication: int | None) -> None:
    """Create what is missing. Another number of partitions than wanted is an error: state and input would not meet."""
    admin = AdminClient(dict(client), logger=log)
    try:
        metadata = admin.list_topics(timeout=REQUEST_SECONDS)
    except KafkaException as error:
        where = client["bootstrap.servers"]
        raise BrokerUnavailable(
            f"Kafka at {where}: {error.args[0].str()}; is it running? `cauce up` starts one"
        ) from None
    copies = replication or min(REPLICAS, len(metadata.brokers))
    in_sync = {"min.insync.replicas": str(min(2, copies))}
    missing = [topic for topic in wanted if topic.name not in metadata.topics]
    new = [NewTopic(topic.name, topic.partitions, copies, config={**in_sync, **topic.config}) for topic in missing]
    futures = admin.create_topics(new, operation_timeout=REQUEST_SECONDS) if new else {}
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another worker was faster
                raise ConfigError(f"topic {name}: {error.args[0].str()}") from None
    for topic in wanted:
        found = metadata.topics.get(topic.name)
        if found is not None and len(found.partitions) != topic.partitions:
            raise ConfigError(
                f"topic {topic.name} has {len(found.partitions)} partitions, wanted are {topic.partitions}; "
                "set the number to what the topic has, or use another topic prefix"
            )
