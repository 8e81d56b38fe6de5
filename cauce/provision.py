"""Creating topics on purpose: with a number of partitions, a replication that fits the cluster, and their settings."""

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from cauce.errors import BrokerUnavailable, CauceError, ConfigError
from cauce.settings import Settings
from cauce.topics import TOPICS

log = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 30.0
KNOCK_SECONDS: Final = 2.0  # how soon a wrong password shows
UNTRUSTED: Final = "certificate verify failed"
ONE_BROKER_SECONDS: Final = 2.0  # one that does not answer in this time is gone, or about to be
PROPAGATION_SECONDS: Final = 15.0  # a new topic reaches the brokers one by one, usually within a second
LOOK_SECONDS: Final = 0.05
# What must hold of a topic that exists, too; the rest an operator may have chosen otherwise.
HELD: Final = frozenset({"message.timestamp.type"})
REPLICAS: Final = 3  # survives the loss of one broker without stopping


@dataclass(frozen=True, slots=True)
class WantedTopic:
    name: str
    partitions: int
    config: Mapping[str, str]


def ensure_topics(client: Mapping[str, str], wanted: Sequence[WantedTopic], replication: int | None) -> None:
    """Create what is missing, and put right what must hold of the rest. Another number of partitions than wanted is an
    error: state and input would not meet."""
    door = Door(client)
    admin, metadata = door.admin, door.open()
    copies = replication or min(REPLICAS, len(metadata.brokers))
    in_sync = {"min.insync.replicas": str(min(2, copies))}
    missing = [topic for topic in wanted if topic.name not in metadata.topics]
    new = [NewTopic(topic.name, topic.partitions, copies, config={**in_sync, **topic.config}) for topic in missing]
    futures = admin.create_topics(new, operation_timeout=REQUEST_SECONDS) if new else {}
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() == KafkaError.INVALID_REPLICATION_FACTOR:
                raise BrokerUnavailable(
                    f"topic {name}: there are fewer brokers than the {copies} copies that it is to have; start those "
                    "that are away, or set CAUCE_REPLICATION lower"
                ) from None
            if reason.code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another worker was faster
                raise ConfigError(f"topic {name}: {reason.str()}") from None
    for topic in wanted:
        found = metadata.topics.get(topic.name)
        if found is not None and len(found.partitions) != topic.partitions:
            raise ConfigError(
                f"topic {topic.name} has {len(found.partitions)} partitions, wanted are {topic.partitions}; "
                "set the number to what the topic has, or use another topic prefix"
            )
    hold(admin, [topic for topic in wanted if topic.name in metadata.topics])


def hold(admin: AdminClient, topics: Sequence[WantedTopic]) -> None:
    """Alters the settings in HELD of topics that exist where they are not as wanted."""
    wanted = {topic.name: {name: topic.config[name] for name in HELD & topic.config.keys()} for topic in topics}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name, settings in wanted.items() if settings]
    if not resources:
        return
    wrong: dict[str, dict[str, str]] = {}
    for resource, future in admin.describe_configs(resources, request_timeout=REQUEST_SECONDS).items():
        try:
            found = future.result()
        except KafkaException as error:
            raise refused(error, resource.name, wanted[resource.name], "DescribeConfigs") from None
        settings = {name: value for name, value in wanted[resource.name].items() if found[name].value != value}
        if settings:
            wrong[resource.name] = settings
    for name, settings in wrong.items():
        entries = [ConfigEntry(each, to, incremental_operation=AlterConfigOpType.SET) for each, to in settings.items()]
        change = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        (future,) = admin.incremental_alter_configs([change], request_timeout=REQUEST_SECONDS).values()
        try:
            future.result()
        except KafkaException as error:
            raise refused(error, name, settings, "AlterConfigs") from None
        log.warning("topic altered", extra={"topic": name, **settings})


def refused(error: KafkaException, topic: str, settings: Mapping[str, str], right: str) -> CauceError:
    """Returns what to tell an operator: to grant the right, or to make the change."""
    reason, change = error.args[0], ",".join(f"{name}={value}" for name, value in settings.items())
    if reason.code() not in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
        return BrokerUnavailable(f"topic {topic}: its settings are not to be had: {reason.str()}; try again")
    return ConfigError(
        f"topic {topic} must have {change}, and we may not see to it; grant {right}, or let an administrator run: "
        f"cauce kafka configs --alter --entity-type topics --entity-name {topic} --add-config {change}"
    )


class Door:
    """The first words with Kafka: in, or one sentence why not. The library itself would knock for ever."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._where = client["bootstrap.servers"]
        self._refusals: list[KafkaError] = []
        watched: dict[str, Any] = {**client, "error_cb": self._refusals.append}
        self.admin = AdminClient(watched, logger=log)

    def open(self) -> ClusterMetadata:
        deadline = time.monotonic() + REQUEST_SECONDS
        while True:
            try:
                return self.admin.list_topics(timeout=KNOCK_SECONDS)
            except KafkaException as error:
                self.admin.poll(0)
                self._check()
                if time.monotonic() > deadline:
                    reason = (self._refusals or error.args)[-1].str()
                    raise BrokerUnavailable(
                        f"Kafka at {self._where}: {reason}; is it running? `cauce up` starts one"
                    ) from None

    def _check(self) -> None:
        """Whether we are turned away for good: it will not help to wait."""
        for error in self._refusals:
            if error.code() == KafkaError._AUTHENTICATION:
                advice = "set CAUCE_KAFKA_SASL_USERNAME, CAUCE_KAFKA_SASL_PASSWORD and CAUCE_KAFKA_SASL_MECHANISM right"
            elif error.code() == KafkaError._SSL and UNTRUSTED in error.str():
                advice = "set CAUCE_KAFKA_SSL_CA to the authority that signed the brokers' certificates"
            else:
                continue
            raise ConfigError(f"Kafka at {self._where} does not let us in: {error.str()}; {advice}")


def ensure_our_topics(settings: Settings) -> None:
    """All that cauce/topics.py declares."""
    wanted = [WantedTopic(settings.topic_prefix + topic.name, settings.partitions, topic.config()) for topic in TOPICS]
    ensure_topics(settings.kafka_client(), wanted, settings.replication)


def wait_known_everywhere(client: Mapping[str, str], topics: Collection[str]) -> None:
    """Until every broker knows these topics. The leader of a group asks any of them what there is to share out, and
    shares out no more: a topic that this one has not heard of yet would be read by nobody until the next rebalance."""
    deadline, told = time.monotonic() + PROPAGATION_SECONDS, False
    brokers = AdminClient(dict(client), logger=log).list_topics(timeout=REQUEST_SECONDS).brokers.values()
    for address in [f"{broker.host}:{broker.port}" for broker in brokers]:
        while missing := set(topics) - _known_by({**client, "bootstrap.servers": address}, topics):
            name = min(missing)
            if time.monotonic() > deadline:
                raise ConfigError(f"topic {name} does not exist; create it, or check the name and the prefix")
            if not told:
                told = True
                log.warning("topic not known yet, waiting for it", extra={"topic": name, "broker": address})
            time.sleep(LOOK_SECONDS)


def _known_by(client: Mapping[str, str], topics: Collection[str]) -> set[str]:
    """What the one broker that this client is told of knows; of one that does not answer, nothing is expected."""
    try:
        found = AdminClient({**client, "log_level": 0}).list_topics(timeout=ONE_BROKER_SECONDS).topics
    except KafkaException:
        return set(topics)
    return {name for name, topic in found.items() if topic.error is None}
