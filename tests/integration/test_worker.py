"""`faust -A streams worker` on real Kafka: it makes its topics, answers, says how it is, stops in order."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from cauce.messages import About, ClientId, encode
from cauce.settings import Settings
from cauce.topics import ANSWERS, INPUTS, STATE_CHANGELOG, TOPICS, Topic
from infra.cluster import Cluster
from infra.ports import Ports
from infra.processes import wait_until
from infra.service import WorkerProcess
from queries.movies import MOVIES_DATASET, RATINGS

pytestmark = pytest.mark.kafka
PARTITIONS = 3
TOPICS_READ = len(INPUTS) + 1  # and the partials

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def new_worker(kafka: Cluster, prefix: str, tmp_path: Path) -> Iterator[StartWorker]:
    """A factory of workers of this test; whatever it made is gone at the end."""
    made: list[WorkerProcess] = []
    ports = Ports(Settings.load().cache / "ports")  # the locks are for all runs on this machine

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


class Client:
    """Sends batches as a gateway would: one film that everybody rates with a single half star."""

    def __init__(self, kafka: Cluster, prefix: str, name: str = "ada") -> None:
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
        self._prefix = prefix
        self._about = About("batch", ClientId(name), "movies", "ratings")
        film = {"movie_id": 1, "title": "Nueve reinas", "year": 2000, "overview": "Two con men.", "genres": ["Crime"]}
        places = {"countries": ["Argentina"], "languages": ["English"], "budget": "1", "revenue": "2"}
        self._film = pa.Table.from_pylist([film | places], schema=MOVIES_DATASET.file("movies").schema)

    def rate(self, batches: int, rows: int = 10) -> None:
        ratings = pa.table({"movie_id": [1] * rows, "half_stars": [1] * rows}, schema=RATINGS.schema)
        for _ in range(batches):
            self._send(replace(self._about, rows=rows), encode(RATINGS.packed(ratings)), 0)
        assert self._producer.flush(30) == 0

    def end(self) -> None:
        self._send(replace(self._about, subject="movies"), encode(self._film), 0)
        for file in MOVIES_DATASET.files:
            for partition in range(PARTITIONS):
                self._send(replace(self._about, kind="end", subject=file.kind), b"{}", partition)
        assert self._producer.flush(30) == 0

    def _send(self, about: About, value: bytes, partition: int) -> None:
        topic = self._prefix + about.subject
        self._producer.produce(topic, value, about.client_id, partition, headers=dict(about.headers()))


def read(kafka: Cluster, topic: str, *, until: Callable[[list[Any]], bool]) -> None:
    """Read the topic, committed records only, until what was read satisfies the test."""
    reading = {"group.id": topic, "isolation.level": "read_committed", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, **reading})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: list[Any] = []

    def enough() -> bool:
        for message in consumer.consume(500, 0.1):
            assert message.error() is None
            found.append(message.value())
        return until(found)

    try:
        wait_until(enough, seconds=60, otherwise=f"{topic} did not get there: {found[-5:]}")
    finally:
        consumer.close()


def answers(kafka: Cluster, prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}

    def all_there(values: list[Any]) -> bool:
        told = map(json.loads, values)
        found.update((answer["query"], answer["csv"]) for answer in told if answer["state"] != "counted")
        return len(found) == len(MOVIES_DATASET.queries)

    read(kafka, prefix + ANSWERS.name, until=all_there)
    return found


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


def test_batches_are_folded_answered_and_the_worker_tells(kafka: Cluster, prefix: str, new_worker: StartWorker) -> None:
    with new_worker() as worker:
        ada = Client(kafka, prefix)
        ada.rate(batches=20)
        ada.end()
        found = answers(kafka, prefix)
        assert found["movies-q3"].splitlines()[1:] == ["highest,1,Nueve reinas,0.5", "lowest,1,Nueve reinas,0.5"]
        assert found["movies-q1"] == "id,title,genres\n"
        assert worker.page("/livez") == (200, "alive")
        assert worker.page("/readyz") == (200, "ready")
        metrics = dict(line.split(" ") for line in worker.page("/metrics")[1].splitlines() if not line.startswith("#"))
        assert float(metrics["cauce_commits_total"]) >= 1
        assert float(metrics["cauce_partitions"]) == PARTITIONS * TOPICS_READ
        wait_until(
            lambda: "cauce_lag_records 0.0" in worker.page("/metrics")[1], seconds=60, otherwise="lag never got to 0"
        )


def test_sigterm_under_load_commits_and_exits_0(kafka: Cluster, prefix: str, new_worker: StartWorker) -> None:
    """The last rating is a five: the mean tells how many there were before it."""
    worker, batches, rows = new_worker(), 3000, 10
    with worker:
        ada = Client(kafka, prefix)
        ada.rate(batches, rows)
        read(kafka, prefix + STATE_CHANGELOG.name, until=lambda found: len(found) >= 4)
        asked = time.monotonic()
        assert worker.stop() == 0
        assert time.monotonic() - asked < 10
    with worker:
        five = pa.table({"movie_id": [1], "half_stars": [10]}, schema=RATINGS.schema)
        ada._send(replace(ada._about, rows=1), encode(RATINGS.packed(five)), 0)
        ada.end()
        mean = (batches * rows * 1 + 10) / 2 / (batches * rows + 1)
        assert answers(kafka, prefix)["movies-q3"].splitlines()[1] == f"highest,1,Nueve reinas,{mean!r}"


def test_a_restart_with_its_store_restores_only_the_tail(kafka: Cluster, prefix: str, new_worker: StartWorker) -> None:
    worker = new_worker()
    with worker:
        Client(kafka, prefix).rate(batches=300)
        wait_until(
            lambda: "cauce_lag_records 0.0" in worker.page("/metrics")[1], seconds=60, otherwise="lag never got to 0"
        )
        read(kafka, prefix + STATE_CHANGELOG.name, until=lambda found: len(found) >= 2)
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
    assert worker.wait_for_end() == 2
    said = worker.log_file.read_text()
    assert says in said
    assert "Traceback" not in said


def test_a_taken_port_is_one_sentence_and_exit_code_2(new_worker: StartWorker) -> None:
    with new_worker("first") as first:
        second = new_worker("second", port=str(first.port))
        second.start()
        assert second.wait_for_end() == 2
        assert "CAUCE_WORKER_PORT" in second.log_file.read_text()
        assert first.page("/readyz")[0] == 200


def test_other_numbers_of_partitions_are_refused(new_worker: StartWorker) -> None:
    with new_worker():
        pass
    worker = new_worker("other", CAUCE_PARTITIONS="5")
    worker.start()
    assert worker.wait_for_end() == 2
    assert f"has {PARTITIONS} partitions, wanted are 5" in worker.log_file.read_text()
