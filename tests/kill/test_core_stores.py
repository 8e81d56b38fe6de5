"""Disks that are full, files that are damaged or somebody else's: said in the log, and the counts stay exact."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.clock import HOUR, WrongClock, needs_faketime
from tests.harness.disk import small_disk
from tests.harness.fleet import Fleet, wait_for
from tests.harness.load import Load
from tests.harness.plan import Plan
from tests.harness.truth import EXACT, Truth

pytestmark = [pytest.mark.kafka, pytest.mark.kill]

RECORDS = 400
MOVED_ASIDE = "store moved aside, restoring from its changelog"


def overwrite(file: Path) -> None:
    """Keep the size, lose the content."""
    size = file.stat().st_size
    file.write_bytes(os.urandom(size))


def damage_manifest(table: Path) -> None:
    for file in (table / "0").glob("MANIFEST-*"):
        overwrite(file)


def damage_values(table: Path) -> None:
    """Found only when a block is read, and not at the opening of the store."""
    files = list((table / "0").glob("*.sst"))
    assert files, "the store has no files of values: the test would damage nothing"
    for file in files:
        content = bytearray(file.read_bytes())
        content[: len(content) // 2] = os.urandom(len(content) // 2)
        file.write_bytes(content)


def swap_partitions(table: Path) -> None:
    """Each store is somebody else's now."""
    (table / "0").rename(table / "x")
    (table / "1").rename(table / "0")
    (table / "x").rename(table / "1")


@pytest.mark.parametrize(
    "harm", [damage_manifest, pytest.param(damage_values, marks=pytest.mark.again), swap_partitions]
)
def test_a_store_that_cannot_be_trusted_is_restored(
    harm: Callable[[Path], None], fleet: Fleet, truth: Truth, load: Load
) -> None:
    load.send(RECORDS)
    fleet.start("w0")
    truth.wait_seen(RECORDS)
    fleet.stop()
    harm(fleet.plan.data / "w0" / "tables" / "counts")
    load.send(RECORDS)
    fleet.start("w0")
    truth.wait_seen(2 * RECORDS, tend=fleet.tend)
    assert any(worker.said(MOVED_ASIDE) for worker in fleet.all), "moved aside without a word"
    fleet.stop()
    assert truth.check(2 * RECORDS) == EXACT


@needs_faketime
@pytest.mark.strangers
def test_the_age_of_a_store_is_the_brokers_word_whatever_the_clock_of_the_worker(
    plan: Plan, truth: Truth, load: Load, tmp_path: Path
) -> None:
    """A store that is behind for longer than tombstones are kept (here: two seconds) may have missed deletes."""
    slow, fast = (WrongClock(tmp_path / name, off) for name, off in (("slow", -20 * HOUR), ("fast", 20 * HOUR)))
    with Fleet(replace(plan, stale_seconds=2)) as fleet:
        load.send(RECORDS)
        fleet.start("w0")
        truth.wait_seen(RECORDS)
        fleet.stop()
        fleet.start("w1")
        for number in range(2, 5):
            load.send(RECORDS)
            truth.wait_seen(number * RECORDS)
            time.sleep(1)  # the store of w0 grows old: the one thing here that only time does
        fleet.stop()
        behind = fleet.start("w0", variables=slow.variables)
        load.send(RECORDS)
        truth.wait_seen(5 * RECORDS, tend=lambda: fleet.tend("w0"))
        assert any("behind its changelog" in line["reason"] for line in behind.said(MOVED_ASIDE)), behind.tail()
        fleet.stop()
        at_the_end = fleet.start("w0", variables=fast.variables)
        load.send(RECORDS)
        truth.wait_seen(6 * RECORDS, tend=lambda: fleet.tend("w0"))
        assert at_the_end.said(MOVED_ASIDE) == [], "it missed nothing"
        fleet.stop()
        assert truth.check(6 * RECORDS) == EXACT


@pytest.fixture
def disk(plan: Plan) -> Iterator[Path]:
    """Under the data folder of w0."""
    with small_disk(plan.data / "w0", 48) as folder:
        yield folder


def free(disk: Path) -> int:
    return shutil.disk_usage(disk).free


def test_a_full_disk_ends_the_worker_and_room_brings_it_back(
    disk: Path, fleet: Fleet, truth: Truth, load: Load
) -> None:
    """A store that cannot be written is behind Kafka, as after a kill: the restart reads what is missing."""
    fillers = [disk / "most", disk / "rest"]
    fillers[0].write_bytes(bytes(free(disk) - (1 << 20)))  # too little for the store to reserve room in advance
    worker = fleet.start("w0")
    worker.wait_ready()
    fillers[1].write_bytes(bytes(free(disk) - (16 << 10)))
    while worker.code is None:
        load.send(100)
        wait_for(lambda: worker.code is not None or truth.look() == load.sent, 60, "neither ended nor went on")
        assert load.sent < 20_000, f"the disk never filled: {shutil.disk_usage(disk)}"
    assert "No space left" in worker.tail(40)
    again = fleet.start("w0")  # as full as before: it cannot
    assert again.wait_end(60) != 0
    for filler in fillers:
        filler.unlink()
    load.send(RECORDS)
    fleet.start("w0")
    truth.wait_seen(load.sent)
    fleet.stop()
    assert truth.check(load.sent) == EXACT
