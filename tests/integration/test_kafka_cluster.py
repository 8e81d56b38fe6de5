"""The embedded cluster: data stays, brokers come back on their port, what is taken is said."""

import socket
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its __init__ re-exports it

from cauce.errors import BrokerUnavailable, CauceError, ConfigError
from cauce.provision import WantedTopic, ensure_topics, wait_known_everywhere
from infra.cluster import Cluster
from infra.processes import State, wait_until

pytestmark = pytest.mark.kafka


def create(cluster: Cluster, topic: str, partitions: int = 1, replication: int = -1) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, replication)])[topic].result(30)
    wait_known_everywhere({"bootstrap.servers": cluster.bootstrap}, [topic])


def send(cluster: Cluster, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def read(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": f"{topic}-reader", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    values: list[bytes] = []

    def enough() -> bool:
        record = consumer.poll(0.2)
        if record is not None and not record.error():
            value = record.value()
            assert value is not None
            values.append(value)
        return len(values) >= count

    try:
        wait_until(enough, seconds=60, otherwise=f"{topic}: never got {count} records")
    finally:
        consumer.close()
    return values


def test_a_topic_has_three_copies_unless_told_otherwise(kafka: Cluster, prefix: str) -> None:
    create(kafka, prefix + "copied")
    partition = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10).topics[prefix + "copied"]
    assert sorted(partition.partitions[0].replicas) == [0, 1, 2]


def test_more_copies_than_brokers_that_are_there_may_be_had_later(kafka: Cluster, prefix: str) -> None:
    """While one of three is away a worker ends with that, to be started again; two copies would be so for good."""
    wanted = [WantedTopic(prefix + "copied", 1, {})]
    with pytest.raises(BrokerUnavailable, match="fewer brokers than the 4 copies"):
        ensure_topics({"bootstrap.servers": kafka.bootstrap}, wanted, replication=4)


def test_a_topic_that_nobody_made_is_an_error(kafka: Cluster, prefix: str) -> None:
    found = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(prefix + "never-made", timeout=10)
    assert found.topics[prefix + "never-made"].error is not None


def test_a_broker_that_was_stopped_comes_back_with_its_data(kafka: Cluster, prefix: str) -> None:
    topic = prefix + "kept"
    create(kafka, topic)
    send(kafka, topic, b"before")
    broker = kafka.broker(1)
    port, pid = broker.port, broker.pid
    kafka.stop_broker(1)
    try:
        assert not broker.alive
        send(kafka, topic, b"meanwhile")
    finally:
        kafka.start_broker(1)
        kafka.wait_in_sync()
    assert broker.state is State.READY
    assert (broker.port, broker.pid != pid) == (port, True)
    assert read(kafka, topic, 2) == [b"before", b"meanwhile"]


def test_what_a_killed_broker_has_unpacked_does_not_pile_up(kafka: Cluster, prefix: str) -> None:
    create(kafka, prefix + "packed")
    topics = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10).topics
    leader = topics[prefix + "packed"].partitions[0].leader
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "compression.type": "lz4", "linger.ms": 100})
    for _ in range(100):
        producer.produce(prefix + "packed", bytes(1000))
    assert producer.flush(30) == 0
    temporary = kafka.broker(leader).folder / "tmp"
    unpacked = set(temporary.iterdir())
    kafka.kill(leader)
    try:
        assert any(file.name.startswith("liblz4") for file in unpacked), unpacked
    finally:
        kafka.start_broker(leader)
        kafka.wait_in_sync()
    assert unpacked.isdisjoint(temporary.iterdir())


def test_a_paused_broker_is_seen_as_paused(kafka: Cluster) -> None:
    kafka.pause(2)
    try:
        wait_until(lambda: kafka.broker(2).state is State.PAUSED, seconds=60, otherwise="never seen paused")
    finally:
        kafka.resume(2)
        kafka.wait_ready()
        kafka.wait_in_sync()
    assert kafka.broker(2).state is State.READY


def test_a_cluster_stopped_and_started_again_has_its_data_and_ports(tmp_path: Path) -> None:
    with Cluster(tmp_path / "home with ñ, and blanks", brokers=1) as cluster:
        create(cluster, "kept")
        send(cluster, "kept", b"one")
        before = cluster.bootstrap
    with pytest.raises(ConfigError, match="use --brokers 1"):
        Cluster(cluster.home, brokers=3).start()
    cluster = Cluster(cluster.home, brokers=1)
    try:
        cluster.start()
        assert cluster.bootstrap == before
        assert read(cluster, "kept", 1) == [b"one"]
        _restart_on_a_taken_port(cluster)
    finally:
        cluster.stop(seconds=0)


def _restart_on_a_taken_port(cluster: Cluster) -> None:
    cluster.kill(0)
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", cluster.broker(0).port))
        stranger.listen()
        with pytest.raises(ConfigError, match=f"taken its port {cluster.broker(0).port}"):
            cluster.start_broker(0)
    cluster.start_broker(0)


def test_a_broker_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(CauceError, match=r"broker 0 ended by exit code 1 .*[Hh]eap"):
        Cluster(tmp_path, brokers=1, heap="1m").start()
