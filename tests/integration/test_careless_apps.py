"""Ordinary agents that catch every error, or leave tasks behind: no event commits without its effects."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from cauce.process import EXIT_CONFIG, EXIT_FAILED
from cauce.provision import WantedTopic, ensure_topics
from cauce.settings import Settings
from infra.cluster import Cluster
from infra.ports import Ports
from infra.processes import wait_until
from infra.service import WorkerProcess

pytestmark = pytest.mark.kafka


@pytest.fixture
def worker(kafka: Cluster, prefix: str, tmp_path: Path) -> Iterator[WorkerProcess]:
    ensure_topics({"bootstrap.servers": kafka.bootstrap}, [WantedTopic(prefix + n, 1, {}) for n in ("in", "out")], None)
    ports = Ports(Settings.load().cache / "ports")  # the locks are for all runs on this machine
    variables = {
        "CAUCE_BOOTSTRAP": kafka.bootstrap,
        "CAUCE_HOME": str(tmp_path),
        "CAUCE_TOPIC_PREFIX": prefix,
        "CAUCE_PARTITIONS": "1",
    }
    worker = WorkerProcess("w0", ports.take(), tmp_path / "worker.log", variables, app="tests.harness.careless")
    yield worker
    worker.kill()
    ports.release()
    print(worker.log_file.read_text()[-2000:])


def send(kafka: Cluster, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, key=b"k", value=value, partition=0)
    assert producer.flush(60) == 0


@pytest.mark.parametrize(
    ("value", "code", "says"),
    [
        (b"nowhere", EXIT_FAILED, "Unknown partition"),
        (b"too late", EXIT_CONFIG, "its event has ended already"),
        (b"cancelled", EXIT_FAILED, "CancelledError"),  # no Exception: the agent did not catch it, and Faust goes on
        (b"exit", EXIT_FAILED, "SystemExit"),
    ],
)
def test_an_effect_that_would_be_lost_ends_the_worker(
    value: bytes, code: int, says: str, kafka: Cluster, prefix: str, worker: WorkerProcess
) -> None:
    with worker:
        send(kafka, prefix + "in", value)
        assert worker.wait_for_end() == code
    assert says in worker.log_file.read_text()
    if value != b"too late":  # whose event had ended
        assert committed(kafka, prefix) <= 0


@pytest.mark.parametrize(("value", "code"), [(b"crash", EXIT_FAILED), (b"misconfigured", EXIT_CONFIG)])
def test_a_task_that_raises_ends_the_worker_with_a_code_that_says_what_to_do(
    value: bytes, code: int, kafka: Cluster, prefix: str, worker: WorkerProcess
) -> None:
    with worker:
        send(kafka, prefix + "in", value)
        assert worker.wait_for_end() == code
    assert committed(kafka, prefix) == 1, "the agent was done with the event"


def test_a_start_that_fails_is_tried_again(worker: WorkerProcess, tmp_path: Path) -> None:
    (tmp_path / "unplugged").touch()
    worker.start()
    assert worker.wait_for_end() == EXIT_FAILED
    assert "no such device" in worker.log_file.read_text()


def committed(kafka: Cluster, prefix: str) -> int:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": f"{prefix}careless"})
    (place,) = consumer.committed([TopicPartition(prefix + "in", 0)], timeout=30)
    consumer.close()
    return place.offset


def test_a_record_that_is_too_large_is_its_senders_to_deal_with(
    kafka: Cluster, prefix: str, worker: WorkerProcess
) -> None:
    reading = {"group.id": prefix, "isolation.level": "read_committed", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, **reading})
    consumer.assign([TopicPartition(prefix + "out", 0, 0)])
    found: list[bytes | None] = []

    def came() -> bool:
        found.extend(message.value() for message in consumer.consume(10, 0.1) if message.error() is None)
        return bool(found)

    with worker:
        send(kafka, prefix + "in", b"too large", b"fits")
        wait_until(came, seconds=60, otherwise="nothing came")
    consumer.close()
    assert found == [b"fits"]
    assert '"caught"' in worker.log_file.read_text()
