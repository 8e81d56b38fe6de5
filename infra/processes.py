"""What is true of a process right now, read from the system and not from memory.

Invariant: a process is known by pid and start time together, so a pid that the system gave to someone else is never
taken for ours, and never signalled.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from cauce.errors import CauceError

POLL_SECONDS = 0.05  # a wait notices within this time; 20 looks a second cost nothing
ON_LINUX: bool = sys.platform == "linux"
LEASH = Path(__file__).with_name("leash.py")


class State(StrEnum):
    """starting → ready ⇄ paused; each of them → dead, which is final for this pid."""

    STARTING = "starting"  # lives, does not accept connections yet
    READY = "ready"  # its port accepts
    PAUSED = "paused"  # stopped by a signal; the kernel still accepts connections for it
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Process:
    """One process for good: another one with the same pid compares different."""

    pid: int
    started_at: str  # as the system words it: clock ticks since boot, or a date

    @classmethod
    def of(cls, pid: int) -> "Process":
        """Remember a process that we have just started."""
        seen = _look(pid)
        return cls(pid, seen[1] if seen else "never seen alive")

    def letter(self) -> str | None:
        """The system's one-letter state, None once it is gone (a zombie is gone: it runs no code and holds no file)."""
        seen = _look(self.pid)
        return seen[0] if seen and seen[1] == self.started_at and seen[0] not in "ZX" else None

    @property
    def alive(self) -> bool:
        return self.letter() is not None

    def waits_for_a_lock(self) -> bool:
        """Linux says so: `2: -> FLOCK ADVISORY WRITE 4711 …`. Elsewhere nobody knows."""
        try:
            lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        except OSError:
            return False
        return any(words[1] == "->" and str(self.pid) in words for words in map(str.split, lines))

    def send(self, sign: signal.Signals) -> None:
        """Signal it, unless it is gone already."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sign)

    def state(self, port: int | None = None) -> State:
        match self.letter():
            case None:
                return State.DEAD
            case "T" | "t":
                return State.PAUSED
            case _:
                return State.READY if port is None or accepts(port) else State.STARTING


class Spawner:
    """Starts processes that end with us, however we end (Linux). Any thread may ask; one lasting thread does it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="spawner")

    def spawn(self, command: Sequence[str], *, cwd: Path, output: IO[bytes]) -> "subprocess.Popen[bytes]":
        return self._thread.submit(
            subprocess.Popen,
            leashed(command),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for us: we stop the brokers in order
        ).result()

    def close(self) -> None:
        """End the thread, and with it whatever it started and nobody stopped."""
        self._thread.shutdown(wait=True)


def leashed(command: Sequence[str]) -> list[str]:
    """The command that runs `command` and ends with this process."""
    return [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), *command]


def how_it_ended(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def accepts(port: int) -> bool:
    """Whether something listens on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition: Callable[[], bool], *, seconds: float, otherwise: str) -> None:
    """Look until it is true; past the deadline raise with `otherwise` as the message."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise CauceError(otherwise)
        time.sleep(POLL_SECONDS)


def _look(pid: int) -> tuple[str, str] | None:
    """State letter and start time, or None if there is no such process."""
    if ON_LINUX:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = stat[stat.rindex(")") + 2 :].split()  # the name before it may hold blanks and brackets
        return fields[0], fields[19]  # fields 3 and 22 of proc(5)
    answer = subprocess.run(["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    letter, _, started_at = answer.stdout.strip().partition(" ")
    return (letter[:1], started_at.strip()) if letter else None
