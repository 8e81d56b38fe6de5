"""`faust -A streams worker` on real Kafka: it makes its topics, counts batches, says how it is, and stops in order."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from cauce.topics import BATCHES, TALLIES, TALLY_CHANGELOG, TOPICS, Topic
from infra.cluster import Cluster
from infra.ports import Ports
from infra.processes import wait_until
from infra.worker import WorkerProcess

pytestmark = pytest.mark.kafka
PARTITIONS = 3

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def new_worker(kafka: Cluster, prefix: str, tmp_path: Path) -> Iterator[StartWorker]:
    """A factory of workers of this test; whatever it made is gone at the end."""
    made: list[WorkerProcess] = []
    ports = Ports(tmp_path / "ports")

    def new(worker_id: str = "w0", **variables: str) -> WorkerProcess:
        worker = WorkerProcess(
            worker_id,
            int(variables.pop("port", ports.take())),
            tmp_path / f"{worker_id}.log",
            {
                "CAUCE_BOOTSTRAP": kafka.bootstrap,
                "CAUCE_HOME": str(tmp_path),
                "CAUCE_TOPIC_PREFIX": prefix,
                "CAUCE_PARTITIONS": str(PARTITIONS),
                **variables,
            },
        )
        made.append(worker)
        return worker

    yield new
    for worker in made:
        worker.kill()
    ports.release()


def send(kafka: Cluster, prefix: str, key: str, batches: int, rows: int = 10) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
    for _ in range(batches):
        producer.produce(prefix + BATCHES.name, key=key, value=b"rows", headers={"rows": str(rows).encode()})
    assert producer.flush(30) == 0


def read(kafka: Cluster, topic: str, *, until: Callable[[list[tuple[str, dict[str, int]]]], bool]) -> None:
    """Read the topic, committed records only, until what was read satisfies the test."""
    reading = {"group.id": topic, "isolation.level": "read_committed", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, **reading})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: list[tuple[str, dict[str, int]]] = []

    def enough() -> bool:
        for message in consumer.consume(500, 0.1):
            assert message.error() is None
            found.append(((message.key() or b"").decode(), json.loads(message.value() or b"null")))
        return until(found)

    try:
        wait_until(enough, seconds=30, otherwise=f"{topic} did not get there: {found[-5:]}")
    finally:
        consumer.close()


def test_topics_are_made_as_declared(kafka: Cluster, prefix: str, new_worker: StartWorker) -> None:
    with new_worker():
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        found = admin.list_topics(timeout=10).topics
        for topic in TOPICS:
            partitions = found[prefix + topic.name].partitions
            assert len(partitions) == PARTITIONS
            assert {len(partition.replicas) for partition in partitions.values()} == {3}
            assert settings_of(admin, prefix, topic) == {**topic.config(), "min.insync.replicas": "2"}


def settings_of(admin: AdminClient, prefix: str, topic: Topic) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, prefix + topic.name)
    entries = admin.describe_configs([resource])[resource].result()
    return {name: entries[name].value for name in {**topic.config(), "min.insync.replicas": ""}}


def test_batches_are_counted_and_the_worker_tells(kafka: Cluster, prefix: str, new_worker: StartWorker) -> None:
    with new_worker() as worker:
        send(kafka, prefix, "ada/ratings.csv", batches=50)
        send(kafka, prefix, "bruno/credits.csv", batches=20, rows=3)
        read(kafka, prefix + TALLIES.name, until=lambda found: len(found) == 70)
        read(
            kafka,
            prefix + TALLY_CHANGELOG.name,
            until=lambda found: (
                dict(found)
                == {
                    "ada/ratings.csv": {"batches": 50, "rows": 500},
                    "bruno/credits.csv": {"batches": 20, "rows": 60},
                }
            ),
        )
        assert worker.page("/livez") == (200, "alive")
        assert worker.page("/readyz") == (200, "ready")
        metrics = dict(line.split(" ") for line in worker.page("/metrics")[1].splitlines() if not line.startswith("#"))
        assert float(metrics["cauce_commits_total"]) >= 1
        assert float(metrics["cauce_partitions"]) == PARTITIONS
        wait_until(
            lambda: "cauce_lag_records 0.0" in worker.page("/metrics")[1], seconds=10, otherwise="lag never got to 0"
        )


def test_sigterm_under_load_commits_and_exits_0(kafka: Cluster, prefix: str, new_worker: StartWorker) -> None:
    worker = new_worker()
    with worker:
        send(kafka, prefix, "ada/ratings.csv", batches=5000)
        read(kafka, prefix + TALLIES.name, until=lambda found: len(found) > 100)
        asked = time.monotonic()
        assert worker.stop() == 0
        assert time.monotonic() - asked < 10
    with worker:
        read(kafka, prefix + TALLIES.name, until=lambda found: len(found) >= 5000)
        read(kafka, prefix + TALLIES.name, until=lambda found: sequence(found) == list(range(1, 5001)))


def sequence(found: list[tuple[str, dict[str, int]]]) -> list[int]:
    return [value["batches"] for _, value in found]


def test_a_restart_with_its_store_restores_only_the_tail(kafka: Cluster, prefix: str, new_worker: StartWorker) -> None:
    worker = new_worker()
    with worker:
        send(kafka, prefix, "ada/ratings.csv", batches=300)
        read(kafka, prefix + TALLIES.name, until=lambda found: len(found) == 300)
    with worker:
        assert restored(worker) == [0, 0]


def restored(worker: WorkerProcess) -> list[int]:
    lines = (line for line in worker.log_file.read_text().splitlines() if '"tables restored"' in line)
    return [json.loads(line)["records"] for line in lines]


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"CAUCE_BOOTSRAP": "x"}, "did you mean CAUCE_BOOTSTRAP"),
        ({"CAUCE_PARTITIONS": "0"}, "CAUCE_PARTITIONS"),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_exit_code_2(
    new_worker: StartWorker, variables: dict[str, str], says: str
) -> None:
    worker = new_worker(**variables)
    worker.start()
    wait_until(lambda: not worker.alive, seconds=30, otherwise="it runs on")
    assert worker.exit_code() == 2
    said = worker.log_file.read_text()
    assert says in said
    assert "Traceback" not in said


def test_a_taken_port_is_one_sentence_and_exit_code_2(new_worker: StartWorker) -> None:
    with new_worker("first") as first:
        second = new_worker("second", port=str(first.port))
        second.start()
        wait_until(lambda: not second.alive, seconds=30, otherwise="it runs on")
        assert second.exit_code() == 2
        assert "CAUCE_WORKER_PORT" in second.log_file.read_text()
        assert first.page("/readyz")[0] == 200


def test_other_numbers_of_partitions_are_refused(new_worker: StartWorker) -> None:
    with new_worker():
        pass
    worker = new_worker("other", CAUCE_PARTITIONS="5")
    worker.start()
    wait_until(lambda: not worker.alive, seconds=30, otherwise="it runs on")
    assert worker.exit_code() == 2
    assert f"has {PARTITIONS} partitions, wanted are 5" in worker.log_file.read_text()
