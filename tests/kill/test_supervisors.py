"""`cauce up` under a hostile hand: every role is killed or paused and comes back; nothing runs twice or is left."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra import events, keeper
from infra.chaos import LOG_FILE, Chaos
from infra.leadership import Leadership
from infra.processes import Process, wait_until
from infra.services import Shape
from infra.slots import SPARE, Slot

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
SHAPE = Shape(brokers=1, workers=1, gateways=1, partitions=2, supervisors=2)
BACK_SECONDS = 120.0  # a busy machine

Place = tuple[str, int]


@pytest.fixture(scope="module")
def one_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("supervisors") / "home"
    yield folder
    keeper.down(folder)


@pytest.fixture
def home(one_home: Path) -> Path:
    """With all of it running, whatever the test before did."""
    if not keeper.runs(one_home):
        keeper.detach(one_home, SHAPE)
    wait_all_ready(one_home)
    return one_home


def rows(home: Path) -> dict[Place, dict[str, Any]]:
    return {(row["role"], row["index"]): row for row in keeper.status(home)["processes"]}


def pids(home: Path) -> dict[Place, int]:
    return {place: row["pid"] for place, row in rows(home).items()}


def hit(home: Path, place: Place, sign: signal.Signals) -> Process:
    victim = Process.of(pids(home)[place])
    victim.send(sign)
    return victim


def wait_all_ready(home: Path, *gone: Process) -> None:
    def are_back() -> bool:
        now = rows(home)
        return len(now) == 5 and all(
            row["state"] == "ready" and row["pid"] not in {process.pid for process in gone} for row in now.values()
        )

    wait_until(are_back, seconds=BACK_SECONDS, otherwise=f"not all are back: {rows(home)}")
    assert not any(process.alive for process in gone)


def leader_of(home: Path) -> Place:
    leader = Leadership(home).leader()
    assert leader is not None
    return next(place for place, pid in pids(home).items() if pid == leader.pid)


def kill_all_supervisors(home: Path) -> None:
    """Stopped first, so that none can revive another."""
    for sign in (signal.SIGSTOP, signal.SIGKILL):
        for index in range(SHAPE.supervisors):
            os.kill(pids(home)["supervisor", index], sign)
    wait_until(lambda: not keeper.runs(home), seconds=BACK_SECONDS, otherwise="a supervisor is left")


def test_every_role_comes_back_and_a_new_leader_restarts_nothing(home: Path) -> None:
    first = leader_of(home)
    before = pids(home)

    killed = hit(home, first, signal.SIGKILL)
    wait_all_ready(home, killed)
    second = leader_of(home)
    assert second != first
    after = pids(home)
    assert {place for place in before if before[place] != after[place]} == {first}

    paused = hit(home, second, signal.SIGSTOP)
    wait_until(lambda: not paused.alive, seconds=BACK_SECONDS, otherwise="a paused leader was not ended")
    wait_all_ready(home, paused)
    assert leader_of(home) == first

    worker = hit(home, ("worker", 0), signal.SIGSTOP)
    gateway = hit(home, ("gateway", 0), signal.SIGKILL)
    wait_all_ready(home, worker, gateway)
    assert "it is paused for 5 s" in [each.detail for each in events.read(home) if each.role == "worker"]

    broker = hit(home, ("broker", 0), signal.SIGKILL)
    wait_all_ready(home, broker)
    now = rows(home)
    assert now["broker", 0]["restarts"] > 0
    assert now["broker", 0]["address"] == keeper.status(home)["bootstrap"]

    def is_timed() -> bool:  # the leader looks at its brokers in turns, and may be later than we are
        told = [each.seconds for each in events.read(home) if (each.role, each.what) == ("broker", "ready")]
        return (told[-1] or 0.0) > 0

    wait_until(is_timed, seconds=BACK_SECONDS, otherwise="nobody says how long the broker was away")
    everything = [Process.of(pid) for pid in pids(home).values()]

    hit(home, leader_of(home), signal.SIGTERM)
    wait_until(
        lambda: not any(each.alive for each in everything), seconds=BACK_SECONDS, otherwise="SIGTERM left something"
    )
    wait_until(lambda: not keeper.runs(home), seconds=BACK_SECONDS, otherwise="a supervisor is left")
    assert keeper.status(home)["processes"] == []


def test_a_worker_in_waiting_takes_the_place_of_one_that_is_killed_or_paused(home: Path) -> None:
    waiting = Slot(home, SPARE, 0, port=0)
    for sign in (signal.SIGKILL, signal.SIGSTOP):
        wait_until(lambda: waiting.is_held, seconds=BACK_SECONDS, otherwise="nobody is in waiting")
        spare, restarts = waiting.process, rows(home)["worker", 0]["restarts"]
        assert spare is not None
        wait_until(spare.waits_for_a_lock, seconds=BACK_SECONDS, otherwise="it never waits")
        gone = hit(home, ("worker", 0), sign)
        wait_until(lambda gone=gone: not gone.alive, seconds=BACK_SECONDS, otherwise="it was not ended")  # type: ignore[misc]
        wait_all_ready(home, gone)
        assert pids(home)["worker", 0] == spare.pid
        wait_until(  # it may be ready before the leader's next turn
            lambda before=restarts: rows(home)["worker", 0]["restarts"] == before + 1,  # type: ignore[misc]
            seconds=BACK_SECONDS,
            otherwise="the leader does not count it as one restart",
        )
    told = [each.detail for each in events.read(home) if each.role == "worker"]
    assert {"signal SIGKILL", "was ready to take its place"} <= set(told)
    wait_until(lambda: waiting.is_held, seconds=BACK_SECONDS, otherwise="nobody is in waiting")
    spare = waiting.process
    keeper.down(home)
    assert spare is not None
    assert not spare.alive


def test_without_supervisors_the_rest_runs_on_and_is_adopted_or_ended(home: Path) -> None:
    before = pids(home)
    kill_all_supervisors(home)
    (trouble,) = keeper.status(home)["troubles"]
    assert "no supervisor is left" in trouble
    assert pids(home) == before

    keeper.detach(home, SHAPE)
    wait_all_ready(home)
    after = pids(home)
    assert {place[0] for place in before if before[place] != after[place]} == {"supervisor"}

    kill_all_supervisors(home)
    left = [Process.of(pid) for place, pid in after.items() if place[0] != "supervisor"]
    assert "had died" in keeper.down(home)
    assert not any(each.alive for each in left)
    assert keeper.down(home) == f"nothing is running in {home}"


# ---- chaos


def cauce(home: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "infra", *arguments, "--home", str(home)]


def logged_blows(home: Path) -> list[dict[str, Any]]:
    """Of all tests on this home so far."""
    log = home / LOG_FILE
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_chaos_hits_at_random_within_its_rails_and_times_what_comes_back(home: Path) -> None:
    before, earlier = pids(home), len(logged_blows(home))
    wish = ("--every", "1", "--for", "4s", "--kill", "workers,gateways,brokers", "--signal", "KILL,TERM", "--seed", "3")
    ran = subprocess.run(
        cauce(home, "chaos", *wish), cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    blows = logged_blows(home)[earlier:]
    assert {blow["role"] for blow in blows} <= {"worker", "gateway"}  # the one broker is not to be lost
    assert blows
    for blow in blows:
        assert not blow["is_lost"]
        assert 0 < blow["ready_seconds"] <= blow["progress_seconds"]
        assert f"SIG{blow['sign']} {blow['role']} {blow['index']}, pid {blow['pid']}" in ran.stdout
    assert pids(home)["broker", 0] == before["broker", 0]
    assert not Chaos(home, print).targets(["broker"])


def test_chaos_asks_whom_to_hit(home: Path) -> None:
    before = pids(home)["gateway", 0]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        cauce(home, "chaos", "--kill", "gateways"), cwd=ROOT, stdin=theirs, stdout=subprocess.PIPE, text=True
    ) as asking:
        os.write(ours, b"7\n0\nkill\nq\n")
        said, _ = asking.communicate(timeout=300)
    os.close(ours)
    os.close(theirs)
    assert asking.returncode == 0
    assert "there is no 7 in the list" in said
    assert f"SIGKILL gateway 0, pid {before}, ready after" in said
    assert pids(home)["gateway", 0] != before
