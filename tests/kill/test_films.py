"""Films end to end on real processes: whoever is killed, and whenever, the answers are the oracle's bytes."""

import random
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from infra.cluster import Cluster
from infra.generate.movies import generate
from infra.oracle.movies import answer
from infra.oracle.sentiment import Sentiment
from infra.service import ServiceProcess
from tests.harness.stack import At, Stack, answers, session

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.timeout(300)]

ROWS = 60_000


label_of = cache(Sentiment())


def films(folder: Path, rows: int, seed: int) -> dict[str, bytes]:
    """New files in the folder, and the answers that a careful pass over them gives."""
    folder.mkdir(parents=True, exist_ok=True)
    generate(folder, rows, seed)
    return answer(folder, "us", label_of).files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("films")


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, bytes]:
    return films(folder, ROWS, seed=11)


@pytest.mark.parametrize(("workers", "partitions"), [(1, 1), (3, 8)])
def test_answers_do_not_depend_on_the_shape_of_the_cluster(
    workers: int, partitions: int, kafka: Cluster, prefix: str, tmp_path: Path, folder: Path, expected: dict[str, bytes]
) -> None:
    with Stack(kafka, prefix, tmp_path, workers=workers, gateways=1, partitions=partitions) as stack:
        with session(stack) as opened:
            opened.upload(folder)
            assert answers(opened, tmp_path / "out") == expected
        assert stack.restarts == 0


@pytest.mark.parametrize(("victims", "at"), [("workers", 0.4), ("gateways", 0.0), ("gateways", 0.9)])
def test_a_kill_during_the_upload_changes_no_byte(
    victims: str, at: float, kafka: Cluster, prefix: str, tmp_path: Path, folder: Path, expected: dict[str, bytes]
) -> None:
    length = (folder / "ratings.csv").stat().st_size
    with Stack(kafka, prefix, tmp_path) as stack:
        kills = At("ratings.csv", int(length * at), kill_all(getattr(stack, victims)))
        with session(stack, kills) as opened:
            opened.upload(folder)
            assert kills.done, "without the kill there is no verdict"
            assert answers(opened, tmp_path / "out") == expected
        assert stack.restarts >= 2


def test_a_kill_of_the_workers_during_the_fold_changes_no_byte(
    kafka: Cluster, prefix: str, tmp_path: Path, folder: Path, expected: dict[str, bytes]
) -> None:
    """Once when all rows are in Kafka, and again when the first answer is there."""
    with Stack(kafka, prefix, tmp_path) as stack, session(stack) as opened:
        opened.upload(folder)
        stack.workers[0].kill()
        found = {}
        for query, path in opened.answers(tmp_path):
            found[path.name] = path.read_bytes()
            if len(found) == 1:
                kill_all(stack.workers)()
            assert query in opened.queries
        assert found == expected
        assert stack.restarts >= 3


def test_a_gateway_that_falls_silent_is_fenced_when_another_goes_on(
    kafka: Cluster, prefix: str, tmp_path: Path, folder: Path, expected: dict[str, bytes]
) -> None:
    length = (folder / "ratings.csv").stat().st_size
    with Stack(kafka, prefix, tmp_path) as stack:
        silent = stack.gateways[0]
        stops = At("ratings.csv", length // 2, lambda: silent.send(signal.SIGSTOP))
        with session(stack, stops) as opened:
            opened.upload(folder)
            assert stops.done
            silent.send(signal.SIGCONT)
            assert answers(opened, tmp_path / "out") == expected


def test_ten_clients_at_once_each_get_their_own_answers(kafka: Cluster, prefix: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    wanted = {seed: films(tmp_path / f"in-{seed}", 5000, seed) for seed in range(10)}

    def client(seed: int) -> dict[str, bytes]:
        with session(stack) as opened:
            opened.upload(tmp_path / f"in-{seed}")
            return answers(opened, tmp_path / f"out-{seed}")

    with Stack(kafka, prefix, tmp_path) as stack, ThreadPoolExecutor(10) as clients:
        found = {seed: clients.submit(client, seed) for seed in wanted}
        for services in (stack.workers, stack.gateways):
            chance.choice(services).kill()
        assert {seed: future.result() for seed, future in found.items()} == wanted


def kill_all(services: Sequence[ServiceProcess]) -> Callable[[], None]:
    def kill() -> None:
        for service in services:
            service.send(signal.SIGKILL)

    return kill
