"""A process is known by pid and start time; what is read comes from the system."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cauce.errors import CauceError
from infra.processes import Process, Spawner, State, leashed, wait_until


def test_a_reused_pid_is_not_taken_for_ours() -> None:
    us = Process.of(os.getpid())
    assert us.alive
    stranger = Process(us.pid, "another time")
    assert not stranger.alive
    stranger.send(signal.SIGKILL)  # would end this test run if it were sent


def test_a_process_is_seen_paused_going_on_and_dead() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        process = Process.of(child.pid)
        assert process.state() is State.READY
        process.send(signal.SIGSTOP)
        wait_until(lambda: process.state() is State.PAUSED, seconds=60, otherwise="never seen paused")
        process.send(signal.SIGCONT)
        wait_until(lambda: process.state() is State.READY, seconds=60, otherwise="never seen going on")
        child.kill()
        wait_until(lambda: process.state() is State.DEAD, seconds=60, otherwise="a zombie counts as dead")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_leashed_process_ends_with_its_parent() -> None:
    code = (
        "import signal, subprocess; from infra.processes import leashed\n"
        "child = subprocess.Popen(leashed(['sleep', '60'])); print(child.pid, flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = Process.of(int(parent.stdout.readline()))
        assert child.alive
        parent.kill()
    wait_until(lambda: not child.alive, seconds=60, otherwise="the child outlived its parent")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_leash_whose_holder_is_gone_runs_nothing() -> None:
    command = leashed(["echo", "ran"])
    command[4] = "1"  # as if our pid had been another's: the parent is not the one that asked
    assert subprocess.run(command, capture_output=True, check=False).stdout == b""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_closing_a_spawner_ends_what_nobody_stopped(tmp_path: Path) -> None:
    spawner = Spawner()
    with (tmp_path / "output").open("wb") as output:
        child = spawner.spawn(["sleep", "60"], cwd=tmp_path, output=output)
    process = Process.of(child.pid)
    wait_until(lambda: _runs(process, "sleep"), seconds=60, otherwise="the leash never became the command")
    spawner.close()
    assert child.wait(60) == -signal.SIGKILL


def _runs(process: Process, program: str) -> bool:
    return process.alive and Path(f"/proc/{process.pid}/comm").read_text().strip() == program


def test_a_wait_ends_with_its_message() -> None:
    with pytest.raises(CauceError, match="never came"):
        wait_until(lambda: False, seconds=0, otherwise="it never came")
