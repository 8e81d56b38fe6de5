"""What Faust offers, on the engine and under kills: each output has every input exactly once."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from cauce.provision import WantedTopic, ensure_topics
from cauce.settings import Settings
from infra.cluster import Cluster
from infra.ports import Ports
from infra.processes import wait_until
from infra.service import WorkerProcess

pytestmark = [pytest.mark.kafka, pytest.mark.kill]
PARTITIONS = 2
RECORDS = 1500
PATIENCE_SECONDS = 60
EXACT = ("first", "second", "both", "actors", "sunk", "soon", "taken")


@pytest.fixture
def worker(kafka: Cluster, prefix: str, tmp_path: Path) -> Iterator[WorkerProcess]:
    topics = [WantedTopic(prefix + name, PARTITIONS, {}) for name in ("in", "more", "stuck", "ticks", *EXACT)]
    ensure_topics({"bootstrap.servers": kafka.bootstrap}, topics, None)
    ports = Ports(Settings.load().cache / "ports")  # the locks are for all runs on this machine
    variables = {
        "CAUCE_BOOTSTRAP": kafka.bootstrap,
        "CAUCE_HOME": str(tmp_path),
        "CAUCE_TOPIC_PREFIX": prefix,
        "CAUCE_PARTITIONS": str(PARTITIONS),
        "CAUCE_CHECKPOINT_MS": "100",
        "CAUCE_STUCK_SECONDS": "1.5",
    }
    worker = WorkerProcess("w0", ports.take(), tmp_path / "worker.log", variables, app="tests.harness.features")
    yield worker
    worker.kill()
    ports.release()
    print(worker.log_file.read_text()[-2000:])


def send(kafka: Cluster, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
    for number in numbers:
        producer.produce(topic, key=b"%d" % (number % 7), value=b"%d" % number)
    assert producer.flush(30) == 0


class Outputs:
    """What read_committed readers of all outputs have seen so far."""

    def __init__(self, kafka: Cluster, prefix: str) -> None:
        reading = {"group.id": prefix, "isolation.level": "read_committed", "enable.auto.commit": False}
        self._consumer = Consumer({"bootstrap.servers": kafka.bootstrap, **reading})
        self._prefix = prefix
        self.seen: dict[str, Counter[int]] = {name: Counter() for name in EXACT}
        self.ticks = 0
        self._consumer.assign(
            [TopicPartition(prefix + name, number, 0) for name in (*EXACT, "ticks") for number in range(PARTITIONS)]
        )

    def have(self, count: int) -> bool:
        for message in self._consumer.consume(1000, 0.1):
            assert message.error() is None
            name = (message.topic() or "").removeprefix(self._prefix)
            if name == "ticks":
                self.ticks += 1
            else:
                self.seen[name][int(message.value() or b"")] += 1
        return all(seen.total() >= count for seen in self.seen.values())

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def outputs(kafka: Cluster, prefix: str, worker: WorkerProcess) -> Iterator[Outputs]:
    outputs = Outputs(kafka, prefix)
    yield outputs
    outputs.close()


def test_every_feature_is_exact_under_kills(
    kafka: Cluster, prefix: str, worker: WorkerProcess, outputs: Outputs
) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    worker.start()
    for kill in range(3):
        send(kafka, prefix + "more", range(RECORDS))
        send(kafka, prefix + "in", range(kill * RECORDS // 3, (kill + 1) * RECORDS // 3))
        progress = kill * RECORDS // 3 + chance.randrange(1, RECORDS // 3)
        wait_until(
            lambda at=progress: outputs.have(at),  # type: ignore[misc]
            seconds=PATIENCE_SECONDS,
            otherwise="no progress",
        )
        worker.kill()
        worker.start()
    wait_until(
        lambda: outputs.have(RECORDS),
        seconds=PATIENCE_SECONDS,
        otherwise=str({n: s.total() for n, s in outputs.seen.items()}),
    )
    worker.wait_ready()
    assert worker.stop() == 0
    outputs.have(RECORDS)
    for name, seen in outputs.seen.items():
        wrong = {number: times for number, times in seen.items() if times != 1}
        assert (len(seen), wrong) == (RECORDS, {}), f"{name}: lost {RECORDS - len(seen)}, not once {wrong}"
    assert outputs.ticks > 0
    assert '"told of partitions"' in worker.log_file.read_text()


def test_a_worker_that_has_silently_stopped_is_not_ready(kafka: Cluster, prefix: str, worker: WorkerProcess) -> None:
    with worker:
        send(kafka, prefix + "stuck", range(3))
        wait_until(lambda: worker.page("/readyz")[0] == 503, seconds=20, otherwise="it says ready and does nothing")
        assert "records wait" in worker.page("/readyz")[1]
        assert worker.page("/livez")[0] == 200
        worker.kill()
