"""A record that ends every worker that reads it is set aside: its session is told why, all others get their answers."""

import csv
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cauce.handling import KILLED
from infra.cluster import Cluster
from infra.generate.datasets import GENERATORS
from infra.oracle.datasets import ORACLES
from infra.oracle.sentiment import Sentiment
from producer_client.api import Session
from streams.suspects import CRASHES, KILLS
from tests.harness.poisoned import TITLE, Poison
from tests.harness.stack import MAY_RETURN, Stack, answers, session

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.timeout(300)]

HANG_MS = 5000  # what an event may take at most, and a commit: with 1500 a busy machine ended workers that did not hang


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    GENERATORS["movies"](folder, 3000, 8, lambda file, rows, done: None)
    return folder


@pytest.fixture(scope="module")
def poisoned(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with one film more."""
    folder = tmp_path_factory.mktemp("poisoned")
    for path in films.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    with (folder / "movies_metadata.csv").open(encoding="utf-8", newline="") as file:
        first = next(row for row in csv.DictReader(file) if all(row[name] for name in ("id", "title", "overview")))
    with (folder / "movies_metadata.csv").open("a", encoding="utf-8", newline="") as file:
        csv.DictWriter(file, first).writerow({**first, "title": TITLE})
    return folder


def failures(opened: Session) -> dict[str, str]:
    """Why there is no answer, by query, once all have ended."""
    return {each.query: each.reason or "" for each in opened.watch() if each.state == "failed"}


@pytest.mark.parametrize(
    ("poison", "deaths", "last"),
    [
        ("crash", CRASHES, "Segmentation fault"),
        ("hang", CRASHES, "EventTooLong"),
        pytest.param("kill", KILLS, KILLED, marks=pytest.mark.again),  # who is behind it is harder to tell
    ],
)
def test_a_record_that_ends_workers_fails_its_own_session_only(
    poison: Poison, deaths: int, last: str, films: Path, poisoned: Path, kafka: Cluster, prefix: str, tmp_path: Path
) -> None:
    how = {"POISON": poison} | ({"CAUCE_TRANSACTION_TIMEOUT_MS": str(HANG_MS)} if poison == "hang" else {})
    may_return = (*MAY_RETURN, -signal.SIGSEGV)
    with (
        Stack(
            kafka, prefix, tmp_path, app="tests.harness.poisoned", of_workers=how, may_return=may_return, gateways=1
        ) as stack,
        session(stack, "movies") as bad,
        session(stack, "movies") as good,
        ThreadPoolExecutor(2) as uploading,
    ):
        for done in [uploading.submit(bad.upload, poisoned), uploading.submit(good.upload, films)]:
            done.result()
        assert answers(good, tmp_path / "good") == ORACLES["movies"].answer(films, "us", Sentiment()).files
        told = failures(bad)
        assert set(told) == set(bad.queries), "every query reads the films"
        assert all(f"ended the worker {deaths} times, alone (last: {last}" in reason for reason in told.values()), told
        assert stack.restarts >= deaths
        with session(stack, "movies") as later:
            later.upload(films)
            assert answers(later, tmp_path / "later") == ORACLES["movies"].answer(films, "us", Sentiment()).files
