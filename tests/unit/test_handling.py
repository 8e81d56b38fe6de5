"""What was in hand is known after a death; a file that cannot be trusted says nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cauce.handling import KILLED, NO_DEATH, SIZE, SLOTS, SLOTS_AT, Death, Handling

OWNER = "app.w0"


def reopened(folder: Path, owner: str = OWNER) -> Death:
    return Handling(folder, owner).last


def test_what_is_in_hand_is_known_to_the_next_process(tmp_path: Path) -> None:
    handling = Handling(tmp_path, OWNER)
    assert handling.last == NO_DEATH
    done = handling.begin("rows-0 and more", 6)
    handling.end(done)
    handling.begin("rows-0", 7)
    handling.begin_alone("rows-1", 2**40)
    assert reopened(tmp_path) == Death(frozenset({("rows-0", 7), ("rows-1", 2**40)}), ("rows-1", 2**40), KILLED, False)
    assert reopened(tmp_path) == Death(
        frozenset(), None, KILLED, False, before=frozenset({("rows-0", 7), ("rows-1", 2**40)})
    ), "each process has a file of its own"


def test_a_kill_makes_suspects_only_of_what_was_in_hand_twice_in_a_row(tmp_path: Path) -> None:
    a, b, c = ("rows-0", 7), ("rows-0", 8), ("rows-1", 7)
    for suspects, in_hand in (((), (a, b)), ((), (a, c)), ((a,), (c,)), ((c,), ()), ((), (c,)), ((), ())):
        handling = Handling(tmp_path, OWNER)
        assert handling.last.suspects == set(suspects)
        for item in in_hand:
            handling.begin(*item)


def test_a_death_by_the_fault_of_what_is_in_hand_makes_suspects_of_all_of_it(tmp_path: Path) -> None:
    handling = Handling(tmp_path, OWNER)
    handling.begin("rows-0", 7)
    handling.begin("rows-0", 8)
    handling.blame("ValueError: no")
    assert reopened(tmp_path).suspects == {("rows-0", 7), ("rows-0", 8)}


def test_whoever_is_not_quite_dead_writes_into_its_own_file(tmp_path: Path) -> None:
    zombie = Handling(tmp_path, OWNER)
    Handling(tmp_path, OWNER)
    zombie.begin("rows-0", 7)
    assert not reopened(tmp_path)


def test_blame_is_certain_and_pardon_clears(tmp_path: Path) -> None:
    handling = Handling(tmp_path, OWNER)
    handling.begin("rows-0", 7)
    handling.blame("ValueError: no\nsuch thing " + "x" * 600)
    death = reopened(tmp_path)
    assert death.is_certain
    assert death.how.startswith("ValueError: no such thing xxx")
    handling = Handling(tmp_path, OWNER)
    handling.begin("rows-0", 7)
    handling.pardon()
    assert not reopened(tmp_path)


def test_more_than_there_is_room_for_is_not_noted(tmp_path: Path) -> None:
    handling = Handling(tmp_path, OWNER)
    slots = [handling.begin("rows-0", at) for at in range(SLOTS + 5)]
    for slot in slots:
        handling.end(slot)
    assert not reopened(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:100],
        lambda data: os.urandom(SIZE),
        lambda data: bytes(SIZE),
        lambda data: data[:SLOTS_AT] + b"\xff" * (SIZE - SLOTS_AT),
    ],
    ids=["empty", "torn", "garbage", "zeros", "slots"],
)
def test_a_damaged_file_says_nothing(damage: object, tmp_path: Path) -> None:
    handling = Handling(tmp_path, OWNER)
    handling.begin("rows-0", 7)
    file = tmp_path / "in-hand"
    file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
    assert reopened(tmp_path) == NO_DEATH


def test_a_file_of_another_app_says_nothing(tmp_path: Path) -> None:
    handling = Handling(tmp_path, "other.w0")
    handling.begin("rows-0", 7)
    assert reopened(tmp_path) == NO_DEATH


def test_out_of_memory_is_told_from_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cauce.handling.oom_kills", lambda: 3)
    handling = Handling(tmp_path, OWNER)
    handling.begin_alone("rows-0", 7)
    monkeypatch.setattr("cauce.handling.oom_kills", lambda: 4)
    death = reopened(tmp_path)
    assert (death.how, death.is_certain) == ("out of memory", True)


PROCESS = """
import ctypes, os, signal, sys
from pathlib import Path
from cauce.handling import Handling
handling = Handling(Path(sys.argv[1]), "app.w0")
handling.catch_crashes()
handling.begin_alone("rows-0", 7)
ctypes.string_at(0) if sys.argv[2] == "crash" else os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("end", "code", "how", "is_certain"),
    [("crash", -signal.SIGSEGV, "Segmentation fault", True), ("kill", -signal.SIGKILL, KILLED, False)],
)
def test_a_crash_in_native_code_is_told_from_a_kill(
    end: str, code: int, how: str, is_certain: bool, tmp_path: Path
) -> None:
    assert subprocess.run([sys.executable, "-c", PROCESS, tmp_path, end], check=False).returncode == code
    assert reopened(tmp_path) == Death(frozenset({("rows-0", 7)}), ("rows-0", 7), how, is_certain)
    assert not reopened(tmp_path), "a crash is told once"
