"""One of three brokers is killed under a transactional producer: it goes on, nothing is lost, nothing is doubled."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its __init__ re-exports it

from infra.broker import Broker
from infra.cluster import Cluster
from infra.processes import wait_until

PARTITIONS = 3  # each broker leads one, so whichever is killed takes a leader with it
TRANSACTIONS, RECORDS = 40, 25
LOADING = re.compile(r"Loading transaction metadata from (\S+) at epoch (\d+)")
ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.kafka, pytest.mark.kill]


@pytest.mark.parametrize("role", ["controller", pytest.param("follower", marks=pytest.mark.again)])
def test_a_killed_broker_neither_loses_nor_doubles_a_record(role: str, kafka: Cluster, prefix: str) -> None:
    topic = prefix + "numbers"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    leader = active_controller(kafka)
    victim = leader if role == "controller" else (leader + 1) % 3
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(30)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": prefix + "writer"})
    producer.init_transactions(60)
    try:
        for number in range(TRANSACTIONS):
            producer.begin_transaction()
            for record in range(RECORDS):
                producer.produce(topic, str(number * RECORDS + record).encode(), partition=record % PARTITIONS)
            if number == TRANSACTIONS // 2:
                kafka.kill(victim)  # records of this transaction are on their way
            producer.commit_transaction(120)
    finally:
        if not kafka.broker(victim).alive:
            kafka.start_broker(victim)
        kafka.wait_in_sync()
    assert sorted(committed(kafka, topic)) == list(range(TRANSACTIONS * RECORDS))


@pytest.mark.parametrize("dead", [2, pytest.param(3, marks=pytest.mark.again)])
def test_brokers_that_died_do_not_lead_as_if_nothing_had_happened(dead: int, kafka: Cluster, prefix: str) -> None:
    """They would be the coordinators that they were, with what nobody else has noted: a transaction was committed in
    some partitions and aborted in others. Without two of three, nobody can tell the cluster that they are dead."""
    make_coordinators(kafka, prefix)
    victims = kafka.brokers[:dead]
    before = {broker.id: loaded(broker) for broker in victims}
    for broker in victims:
        broker.kill()
    kafka.start_broker(*(broker.id for broker in victims))
    kafka.wait_in_sync()
    for broker in victims:
        assert_leads_anew(broker, before[broker.id])


@pytest.mark.again
def test_a_broker_that_died_comes_back_beside_one_that_only_looks_alive(kafka: Cluster, prefix: str) -> None:
    """Paused, it accepts connections and has no vote: without the one that died, nobody can give anybody up."""
    make_coordinators(kafka, prefix)
    victim, paused = kafka.brokers[:2]
    before = loaded(victim)
    paused.pause()
    try:
        victim.kill()
        kafka.start_broker(victim.id)
    finally:
        paused.resume()
    kafka.wait_in_sync()
    assert_leads_anew(victim, before)


def make_coordinators(kafka: Cluster, prefix: str) -> None:
    """Of transactions: every broker is one for some."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(prefix + "numbers", PARTITIONS, 3)])[prefix + "numbers"].result(30)
    Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": prefix + "writer"}).init_transactions(60)
    kafka.wait_in_sync()


def assert_leads_anew(broker: Broker, before: list[tuple[str, str]]) -> None:
    assert before, "it led nothing that it could lead again"
    after = loaded(broker)[len(before) :]
    assert set(before).isdisjoint(after), f"broker {broker.id} led again as its former self: {before}, {after}"
    assert "starts although" not in broker.output_file.read_text("utf-8"), "its patience ended before it was given up"


def loaded(broker: Broker) -> list[tuple[str, str]]:
    """Every term as a coordinator of transactions that this broker began: of which partition, in which epoch."""
    return LOADING.findall(broker.log_file.read_text("utf-8"))


def active_controller(kafka: Cluster) -> int:
    """Who leads the metadata quorum, asked of Kafka's own tool: clients are told any broker's id instead."""
    command = [sys.executable, "-m", "infra", "kafka", "metadata-quorum", "describe", "--status"]
    environment = {**os.environ, "CAUCE_BOOTSTRAP": kafka.bootstrap}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    (leader,) = re.findall(r"^LeaderId:\s+(\d+)\s*$", ran.stdout, re.MULTILINE)
    return int(leader)


def committed(kafka: Cluster, topic: str) -> list[int]:
    """Every number a read_committed reader sees, up to the end of every partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": f"{topic}-reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    partitions = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)]
    numbers: list[int] = []

    def at_the_end() -> bool:
        for record in consumer.consume(1000, 0.2):
            assert record.error() is None
            value = record.value()
            assert value is not None
            numbers.append(int(value))
        ends = [consumer.get_watermark_offsets(partition, timeout=10)[1] for partition in partitions]
        return [position.offset for position in consumer.position(partitions)] == ends

    try:
        consumer.assign(partitions)
        wait_until(
            at_the_end, seconds=60, otherwise=f"{topic}: the end was never reached; {len(numbers)} records so far"
        )
    finally:
        consumer.close()
    return numbers
