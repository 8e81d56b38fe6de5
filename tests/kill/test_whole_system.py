"""`cauce up` as an operator runs it: brokers lost, disks full, everything restarted in turn, while a client uploads."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from infra import events, keeper
from infra.generate.datasets import GENERATORS
from infra.oracle.datasets import ORACLES
from infra.processes import Process, wait_until
from infra.services import Shape
from producer_client.api import Client
from tests.harness.disk import small_disk
from tests.harness.stack import At, answers

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.timeout(400)]

SHAPE = Shape(brokers=3, workers=2, gateways=2, partitions=4, supervisors=2)
BACK_SECONDS = 120.0  # a busy machine
ROWS = 20_000


@pytest.fixture(scope="module")
def coffee(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coffee")
    GENERATORS["coffee"](folder, ROWS, 3, lambda file, rows, done: None)
    return folder


@pytest.fixture(scope="module")
def expected(coffee: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = ORACLES["coffee"].answer(coffee, "us", lambda text: "POSITIVE").files
    return files


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("whole") / "home"
    keeper.detach(folder, SHAPE)
    yield folder
    keeper.down(folder)


def processes(home: Path, role: str) -> list[dict[str, Any]]:
    return [row for row in keeper.status(home)["processes"] if row["role"] == role]


def wait_ready(home: Path) -> None:
    def are_ready() -> bool:
        return all(row["state"] == "ready" for row in keeper.status(home)["processes"])

    wait_until(are_ready, seconds=BACK_SECONDS, otherwise=f"not all are ready: {keeper.status(home)}")


class Uploading(threading.Thread):
    """A client at work; `at` happens when it is half through the largest file."""

    def __init__(self, home: Path, folder: Path, into: Path, act: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        largest = max(folder.rglob("*.csv"), key=lambda path: path.stat().st_size)
        name, length = largest.relative_to(folder).as_posix(), largest.stat().st_size
        self.middle = At(name, length // 2, act)
        self._gateways: list[str] = keeper.status(home)["gateways"]
        self._folder, self._into = folder, into
        self.found: dict[str, bytes] | BaseException = {}
        self.start()

    def run(self) -> None:
        try:
            with Client(self._gateways, watcher=self.middle) as client, client.open("coffee") as opened:
                opened.upload(self._folder)
                self.found = answers(opened, self._into)
        except BaseException as error:  # noqa: BLE001  (compared by who waits for us)
            self.found = error

    def answers(self) -> dict[str, bytes] | BaseException:
        self.join(BACK_SECONDS * 2)
        assert not self.is_alive(), "the client waits without end"
        assert self.middle.done, "without the fault there is no verdict"
        return self.found


def test_two_brokers_of_three_away_stop_everything_and_lose_nothing(
    home: Path, coffee: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    """Supervisors are stopped meanwhile, or they would bring the brokers back at once."""
    wait_ready(home)
    supervisors = [Process.of(row["pid"]) for row in processes(home, "supervisor")]

    def lose_two() -> None:
        for supervisor in supervisors:
            supervisor.send(signal.SIGSTOP)
        for row in processes(home, "broker")[:2]:
            os.kill(row["pid"], signal.SIGKILL)

    uploading = Uploading(home, coffee, tmp_path, lose_two)

    def is_told() -> bool:
        return any("2 of 3 brokers are away" in trouble for trouble in keeper.status(home)["troubles"])

    try:
        wait_until(is_told, seconds=BACK_SECONDS, otherwise="`cauce status` does not say it")
        assert uploading.is_alive(), "it cannot have been answered"
    finally:
        for supervisor in supervisors:
            supervisor.send(signal.SIGCONT)
    assert uploading.answers() == expected
    wait_ready(home)
    assert not keeper.status(home)["troubles"]


def test_everything_restarted_in_turn_is_no_error_to_a_client(
    home: Path, coffee: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    wait_ready(home)
    go, began = threading.Event(), datetime.now(UTC).isoformat()
    uploading = Uploading(home, coffee, tmp_path, go.set)
    assert go.wait(BACK_SECONDS), "the upload never got so far"
    for role in ("worker", "gateway"):
        for row in processes(home, role):
            before = Process.of(row["pid"])
            before.send(signal.SIGTERM)
            wait_until(lambda before=before: not before.alive, seconds=12, otherwise=f"{row} took over ten seconds")  # type: ignore[misc]
            wait_ready(home)
    assert uploading.answers() == expected
    ended = [each.detail for each in events.read(home) if each.what == "ended" and each.at >= began]
    assert len(ended) == SHAPE.workers + SHAPE.gateways
    # of what an earlier leader has started, nobody sees the exit code
    assert set(ended) <= {"exit code 0", "how is not known"}


def test_a_brokers_full_disk_is_told_and_all_goes_on_once_there_is_room(
    coffee: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    filler = home / "brokers" / "filler"

    def fill() -> None:
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 12))

    with small_disk(home / "brokers", 400):
        keeper.detach(home, Shape(brokers=1, workers=1, gateways=1, partitions=2, supervisors=1))
        try:
            uploading = Uploading(home, coffee, tmp_path / "out", fill)

            def is_told() -> bool:
                troubles = keeper.status(home)["troubles"]
                return any("brokers are away" in each for each in troubles) and any(
                    "make room" in each for each in troubles
                )

            wait_until(is_told, seconds=BACK_SECONDS, otherwise="`cauce status` does not say it")
            assert uploading.is_alive()
            filler.unlink()
            assert uploading.answers() == expected
            wait_ready(home)
        finally:
            keeper.down(home)
