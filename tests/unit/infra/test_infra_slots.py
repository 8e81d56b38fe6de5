"""Slots, leadership and tending, with small real processes in place of brokers and workers."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra import events, tending
from infra.events import Events
from infra.health import Doctor
from infra.leadership import Leadership
from infra.processes import Process, State, wait_until
from infra.slots import Order, Slot, ask_to_stop
from infra.tending import Record, Tended

LISTEN = "import socket, sys, time; s = socket.create_server(('127.0.0.1', 0)); time.sleep(600)"


def order(home: Path, *command: str) -> Order:
    return Order(command or (sys.executable, "-c", LISTEN), dict(os.environ), home, home / "log")


@pytest.fixture
def slots(tmp_path: Path) -> Iterator[list[Slot]]:
    made: list[Slot] = []
    yield made
    for slot in made:
        slot.kill()


def slot_of(home: Path, made: list[Slot], *command: str, role: str = "broker") -> Slot:
    made.append(Slot(home, role, len(made), 1, lambda: order(home, *command)))
    return made[-1]


def wait_held(slot: Slot) -> Process:
    wait_until(lambda: slot.is_held and slot.process is not None, seconds=60, otherwise="never held")
    process = slot.process
    assert process is not None
    return process


def test_a_slot_has_one_holder_and_any_looker_knows_it(tmp_path: Path, slots: list[Slot]) -> None:
    slot = slot_of(tmp_path, slots)
    assert (slot.is_held, slot.process, slot.state) == (False, None, State.DEAD)
    slot.start()
    holder = wait_held(slot)
    other = Slot(tmp_path, "broker", 0, 1, lambda: order(tmp_path))
    assert (other.is_held, other.process, other.exit_code()) == (True, holder, None)
    other.start()
    wait_until(lambda: not other.is_starting, seconds=60, otherwise="a second one runs in the slot")
    assert slot.process == holder
    assert holder.alive
    other.kill()
    assert not slot.is_held
    wait_until(lambda: slot.exit_code() == -signal.SIGKILL, seconds=60, otherwise="its end was not seen")


def test_many_lookers_never_keep_a_process_from_its_slot(tmp_path: Path, slots: list[Slot]) -> None:
    slot, leaving = slot_of(tmp_path, slots), threading.Event()

    def look() -> None:
        while not leaving.is_set():
            Slot(tmp_path, "broker", 0, 1).is_held  # noqa: B018  (the look is what matters)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    (tmp_path / "slots").mkdir()
    (tmp_path / "slots" / "broker-0").touch()
    for looker in lookers:
        looker.start()
    try:
        slot.start()
        wait_held(slot)
    finally:
        leaving.set()
        for looker in lookers:
            looker.join()


def test_who_does_not_stop_is_killed_and_a_paused_one_can_stop(tmp_path: Path, slots: list[Slot]) -> None:
    deaf = slot_of(
        tmp_path, slots, sys.executable, "-c",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)",
    )  # fmt: skip
    paused = slot_of(tmp_path, slots)
    for slot in slots:
        slot.start()
        wait_held(slot)
    wait_until(lambda: (tmp_path / "log").read_text() != "", seconds=60, otherwise="it never got deaf")
    paused.send(signal.SIGSTOP)
    ask_to_stop(slots, seconds=1)
    assert not any(slot.is_held for slot in slots)
    assert (deaf.exit_code(), paused.exit_code()) == (-signal.SIGKILL, -signal.SIGTERM)


# ---- leadership

FOLLOW = """
import sys, time
from pathlib import Path
from infra.leadership import Leadership
us = Leadership(Path(sys.argv[1]))
while not us.try_take():
    us.end_silent_leader()
    time.sleep(0.05)
us.begin()
print("leads", flush=True)
while True:
    us.turn()
    time.sleep(0.05)
"""


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP])
def test_the_next_leads_when_the_leader_is_killed_or_paused(sign: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FOLLOW, str(tmp_path)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second,
    ):
        try:
            wait_until(lambda: Leadership(tmp_path).leader() is not None, seconds=60, otherwise="nobody leads")
            leader = Leadership(tmp_path).leader()
            assert leader is not None
            wait_until(lambda: leader.alive, seconds=60, otherwise="not said yet who")
            heir = second if leader.pid == first.pid else first
            leader.send(sign)
            assert heir.stdout is not None
            assert heir.stdout.readline() == "leads\n"
            wait_until(lambda: not leader.alive, seconds=60, otherwise="two of them lead")
            assert Leadership(tmp_path).leader() == Process.of(heir.pid)
        finally:
            first.kill()
            second.kill()


def test_a_leader_that_beats_is_left_alone_by_one_that_was_paused_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing seen for a long time says nothing if nobody looked."""
    clock = [0.0]
    (tmp_path / "leader").write_text(f"{os.getpid()} {Process.of(os.getpid()).started_at}\n")
    monkeypatch.setattr("infra.leadership.time.monotonic", lambda: clock[0])
    follower = Leadership(tmp_path)
    for now in (0.1, 0.2, 100.0, 100.1):  # with a long sleep between; a verdict would kill this very process
        clock[0] = now
        assert follower.end_silent_leader() is None


def test_leadership_is_handed_down_without_a_moment_in_between(tmp_path: Path) -> None:
    ours = Leadership(tmp_path)
    assert ours.try_take()
    lock = ours.hand_down()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock]) as child:
        ours.leave()
        assert not Leadership(tmp_path).try_take()
        child.communicate(b"\n")
    again = Leadership(tmp_path)
    assert again.try_take()
    again.leave()


# ---- tending


def told(home: Path) -> list[str]:
    return [event.what for event in events.read(home)]


def turn_until(tended: Tended, what: str, home: Path) -> None:
    def turned() -> bool:
        tended.tend()
        return what in told(home)

    wait_until(turned, seconds=60, otherwise=f"never {what}: {told(home)}")


@pytest.fixture
def doctor() -> Iterator[Doctor]:
    made = Doctor(1)
    yield made
    made.close()


def test_who_falls_again_and_again_is_started_more_seldom_and_that_is_shown(
    tmp_path: Path, slots: list[Slot], doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tending, "FIRST_PAUSE_SECONDS", 0.01)
    slot = slot_of(tmp_path, slots, sys.executable, "-c", "import sys; sys.exit(3)")
    tended = Tended(slot, Record("broker", 0, 1), doctor, Events(tmp_path))
    turn_until(tended, "crash loop", tmp_path)
    assert tended.record.quick_falls == tending.LOOPS
    assert tended.record.note is not None
    assert "last by exit code 3" in tended.record.note
    assert not tended.record.given_up


def test_who_asks_for_a_change_is_not_started_again(tmp_path: Path, slots: list[Slot], doctor: Doctor) -> None:
    slot = slot_of(tmp_path, slots, sys.executable, "-c", "import sys; sys.exit(2)", role="worker")
    tended = Tended(slot, Record("worker", 0, 1), doctor, Events(tmp_path))
    turn_until(tended, "given up", tmp_path)
    for _ in range(10):
        tended.tend()
    assert told(tmp_path).count("started") == 1


def test_a_fall_for_want_of_brokers_is_not_held_against_it(tmp_path: Path, slots: list[Slot], doctor: Doctor) -> None:
    slot = slot_of(tmp_path, slots, sys.executable, "-c", "import sys; sys.exit(70)", role="worker")
    tended = Tended(slot, Record("worker", 0, 1), doctor, Events(tmp_path))

    def fell_often() -> bool:
        tended.tend(is_blameless=True)
        return told(tmp_path).count("ended") > tending.LOOPS

    wait_until(fell_often, seconds=60, otherwise="not started again")
    assert (tended.record.quick_falls, tended.record.note) == (0, None)


def test_one_that_is_paused_is_killed_before_the_next_starts(
    tmp_path: Path, slots: list[Slot], doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tending, "PAUSED_SECONDS", 0.2)
    slot = slot_of(tmp_path, slots)
    tended = Tended(slot, Record("broker", 0, 1), doctor, Events(tmp_path))
    turn_until(tended, "started", tmp_path)
    first = wait_held(slot)
    slot.send(signal.SIGSTOP)
    turn_until(tended, "killed", tmp_path)
    assert not first.alive

    def revived() -> bool:
        tended.tend()
        return slot.is_held and slot.process not in {None, first}

    wait_until(revived, seconds=60, otherwise="not started again")


def test_a_new_leader_adopts_what_runs_and_notices_what_fell_before(
    tmp_path: Path, slots: list[Slot], doctor: Doctor
) -> None:
    alive, fallen = slot_of(tmp_path, slots), slot_of(tmp_path, slots)
    for slot in slots:
        slot.start()
        wait_held(slot)
    before = alive.process
    fallen.kill()
    anew = [Slot(tmp_path, "broker", index, 1, lambda: order(tmp_path)) for index in range(2)]
    slots += anew
    for slot in anew:
        Tended(slot, Record("broker", slot.index, 1), doctor, Events(tmp_path)).tend()
    assert alive.process == before
    assert [(event.index, event.what) for event in events.read(tmp_path)] == [(1, "ended"), (1, "started")]
