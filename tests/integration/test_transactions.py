"""The transactional producer against real Kafka: what it says when it is fenced, and when its queue is full."""

import threading
import time

import pytest
from confluent_kafka import Consumer, TopicPartition
from faust.types import TP

from cauce.errors import Fenced
from cauce.provision import WantedTopic, ensure_topics
from infra.cluster import Cluster
from streams import transaction
from streams.transaction import Transaction, producer_config

pytestmark = pytest.mark.kafka

TIMEOUT_MS = 20_000


@pytest.fixture
def topic(kafka: Cluster, prefix: str) -> str:
    ensure_topics({"bootstrap.servers": kafka.bootstrap}, [WantedTopic(prefix + "out", 1, {})], None)
    return prefix + "out"


def new(kafka: Cluster, prefix: str) -> Transaction:
    made = Transaction({"bootstrap.servers": kafka.bootstrap}, f"{prefix}w0", TIMEOUT_MS, lambda tp: "")
    made.initialise()
    return made


def test_whoever_learns_of_the_fence_by_sending_says_that_it_is_fenced(kafka: Cluster, prefix: str, topic: str) -> None:
    """The library tells a sender of "fatal error" and no more; a zombie that comes back in the middle of an event."""
    zombie = new(kafka, prefix)
    zombie.begin()
    zombie.produce(topic, b"k", b"v", lambda error, message: None)
    zombie.flush()
    heir = new(kafka, prefix)
    with pytest.raises(Fenced, match=f"record for {topic}"):
        send_on_and_on(zombie, topic)
    zombie.close()
    heir.close()


def send_on_and_on(sender: Transaction, topic: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        told = threading.Event()
        sender.produce(topic, b"k", b"v", lambda error, message, told=told: told.set())  # type: ignore[misc]
        told.wait(0.1)  # not for ever: reports end with the fence


def test_more_than_the_queue_holds_waits_for_room(
    kafka: Cluster, prefix: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        transaction,
        "producer_config",
        lambda *arguments: producer_config(*arguments) | {"queue.buffering.max.messages": 10},
    )
    sender = new(kafka, prefix)
    asking = {"bootstrap.servers": kafka.bootstrap, "group.id": prefix, "enable.auto.commit": False}
    consumer = Consumer({**asking, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    acknowledged: list[object] = []
    sender.begin()
    for _ in range(500):
        sender.produce(topic, b"k", b"v", lambda error, message: acknowledged.append(error))
    sender.flush()
    sender.send_offsets({TP(topic, 0): 0}, consumer.consumer_group_metadata())
    sender.commit()
    assert acknowledged == [None] * 500
    assert consumer.committed([TopicPartition(topic, 0)], 30)[0].offset == 0
    sender.close()
    consumer.close()
