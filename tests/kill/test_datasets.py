"""Three datasets end to end on real processes: whoever is killed, and whenever, the answers are the oracle's bytes."""

import random
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from infra.cluster import Cluster
from infra.generate.datasets import GENERATORS
from infra.oracle.datasets import ORACLES
from infra.oracle.sentiment import Sentiment
from infra.service import ServiceProcess
from producer_client.gateways import Timing
from tests.harness.stack import At, Stack, answers, session

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.timeout(300)]

KILL_EVERY_SECONDS = 6.0  # a worker needs about three to go on
MOST_KILLS = 5
ROWS = {"movies": 60_000, "flights": 20_000, "coffee": 20_000}


label_of = cache(Sentiment())


@dataclass(frozen=True)
class Case:
    """Files in a folder, and the answers that a careful pass over them gives."""

    dataset: str
    folder: Path
    expected: dict[str, bytes]
    largest: str  # the name of its upload
    length: int


def made(dataset: str, folder: Path, rows: int, seed: int) -> Case:
    folder.mkdir(parents=True, exist_ok=True)
    GENERATORS[dataset](folder, rows, seed, lambda file, all_rows, done: None)
    largest = max(folder.rglob("*.csv"), key=lambda path: path.stat().st_size)
    return Case(
        dataset,
        folder,
        ORACLES[dataset].answer(folder, "us", label_of).files,
        largest.relative_to(folder).as_posix(),
        largest.stat().st_size,
    )


@pytest.fixture(scope="module")
def case_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    return cache(lambda dataset: made(dataset, tmp_path_factory.mktemp(dataset), ROWS[dataset], seed=11))


CaseOf = Callable[[str], Case]


@pytest.mark.parametrize(("dataset", "workers", "partitions"), [("movies", 1, 1), ("flights", 3, 8)])
def test_answers_do_not_depend_on_the_shape_of_the_cluster(
    dataset: str, workers: int, partitions: int, kafka: Cluster, prefix: str, tmp_path: Path, case_of: CaseOf
) -> None:
    case = case_of(dataset)
    with Stack(kafka, prefix, tmp_path, workers=workers, gateways=1, partitions=partitions) as stack:
        with session(stack, dataset) as opened:
            opened.upload(case.folder)
            assert answers(opened, tmp_path / "out") == case.expected
        assert stack.restarts == 0


@pytest.mark.parametrize(
    ("dataset", "victims", "at"),
    [
        ("movies", "gateways", 0.0),
        ("flights", "workers", 0.5),
        pytest.param("coffee", "gateways", 0.5, marks=pytest.mark.again),
    ],
)
def test_a_kill_during_the_upload_changes_no_byte(
    dataset: str, victims: str, at: float, kafka: Cluster, prefix: str, tmp_path: Path, case_of: CaseOf
) -> None:
    case = case_of(dataset)
    with Stack(kafka, prefix, tmp_path) as stack:
        kills = At(case.largest, int(case.length * at), kill_all(getattr(stack, victims)))
        with session(stack, dataset, kills) as opened:
            opened.upload(case.folder)
            assert kills.done, "without the kill there is no verdict"
            assert answers(opened, tmp_path / "out") == case.expected
        assert stack.restarts >= 2


@pytest.mark.parametrize(
    "dataset", ["movies", *(pytest.param(name, marks=pytest.mark.again) for name in ("flights", "coffee"))]
)
def test_a_kill_of_the_workers_during_the_fold_changes_no_byte(
    dataset: str, kafka: Cluster, prefix: str, tmp_path: Path, case_of: CaseOf
) -> None:
    """Once when all rows are in Kafka, and again when the first answer is there."""
    case = case_of(dataset)
    with Stack(kafka, prefix, tmp_path) as stack, session(stack, dataset) as opened:
        opened.upload(case.folder)
        stack.workers[0].kill()
        found = {}
        for query, path in opened.answers(tmp_path):
            found[path.name] = path.read_bytes()
            if len(found) == 1:
                kill_all(stack.workers)()
            assert query in opened.queries
        assert found == case.expected
        assert stack.restarts >= 1


# No supervisor ends the silent gateway here, so two requests wait for it in turn: 60 s each by default.
IMPATIENT = Timing(transfer=12.0)


def test_a_gateway_that_falls_silent_is_fenced_when_another_goes_on(
    kafka: Cluster, prefix: str, tmp_path: Path, case_of: CaseOf
) -> None:
    case = case_of("movies")
    with Stack(kafka, prefix, tmp_path) as stack:
        silent = stack.gateways[0]
        stops = At(case.largest, case.length // 2, lambda: silent.send(signal.SIGSTOP))
        with session(stack, "movies", stops, IMPATIENT) as opened:
            opened.upload(case.folder)
            assert stops.done
            silent.send(signal.SIGCONT)
            assert answers(opened, tmp_path / "out") == case.expected


def test_ten_clients_on_three_datasets_each_get_their_own_answers(kafka: Cluster, prefix: str, tmp_path: Path) -> None:
    """All at once, while workers are being killed."""
    chance = random.Random(7)
    datasets = [list(ROWS)[seed % len(ROWS)] for seed in range(10)]
    cases = [made(dataset, tmp_path / f"in-{seed}", 5000, seed) for seed, dataset in enumerate(datasets)]

    def client(number: int) -> dict[str, bytes]:
        with session(stack, cases[number].dataset) as opened:
            opened.upload(cases[number].folder)
            return answers(opened, tmp_path / f"out-{number}")

    with Stack(kafka, prefix, tmp_path) as stack, ThreadPoolExecutor(len(cases)) as clients:
        running = [clients.submit(client, number) for number in range(len(cases))]
        stack.gateways[0].kill()
        kills = 0
        while wait(running, timeout=KILL_EVERY_SECONDS).not_done and kills < MOST_KILLS:
            chance.choice(stack.workers).send(signal.SIGKILL)
            kills += 1
        assert kills, "without a kill there is no verdict"
        assert [future.result() for future in running] == [case.expected for case in cases]


CHOICES = [
    ("movies", "q2"),
    ("movies", "q3,q4"),
    ("movies", "q1,q5"),
    ("flights", "q2"),
    ("flights", "q1,q4"),
    ("coffee", "q2,q4"),
]


def test_clients_that_ask_for_different_queries_get_those_whoever_is_killed(
    kafka: Cluster, prefix: str, tmp_path: Path
) -> None:
    """All at once; a gateway dies at the start, both workers when the first answer is there."""
    folders = {dataset: tmp_path / dataset for dataset in ROWS}
    cases = {dataset: made(dataset, folder, 4000, 5) for dataset, folder in folders.items()}
    killed = threading.Event()

    def client(number: int) -> dict[str, bytes]:
        dataset, queries = CHOICES[number]
        with session(stack, dataset, queries=queries.split(",")) as opened:
            opened.upload(cases[dataset].folder)
            found = {}
            for _, path in opened.answers(tmp_path / f"out-{number}"):
                found[path.name] = path.read_bytes()
                if not killed.is_set():
                    killed.set()
                    kill_all(stack.workers)()
            return found

    with Stack(kafka, prefix, tmp_path) as stack, ThreadPoolExecutor(len(CHOICES)) as clients:
        for number in range(len(CHOICES)):
            (tmp_path / f"out-{number}").mkdir()
        running = [clients.submit(client, number) for number in range(len(CHOICES))]
        stack.gateways[0].kill()
        got = [future.result() for future in running]
        assert killed.is_set()
    for (dataset, queries), found in zip(CHOICES, got, strict=True):
        names = [f"{dataset}-{query}.csv" for query in queries.split(",")]
        assert found == {name: cases[dataset].expected[name] for name in names}
    assert stack.restarts >= 2


def kill_all(services: Sequence[ServiceProcess]) -> Callable[[], None]:
    def kill() -> None:
        for service in services:
            service.send(signal.SIGKILL)

    return kill
