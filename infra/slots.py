"""A slot: the place of one broker, worker, gateway or supervisor, which one process at a time can hold.

Invariant: who holds it is asked of the kernel (a lock that dies with the process), never remembered. A supervisor that
has just come to lead knows as much as the one before it, and starts nothing twice.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.processes import POLL_SECONDS, Process, State, wait_until

FOLDER: Final = "slots"
SPARE: Final = "spare"  # the role of a worker in waiting
OCCUPY: Final = Path(__file__).with_name("occupy.py")
GONE_SECONDS: Final = 10.0  # SIGKILL works at once; a busy disk may hold a process a little longer


@dataclass(frozen=True, slots=True)
class Order:
    """How to start what belongs in a slot."""

    command: Sequence[str]
    environment: dict[str, str]
    folder: Path
    log_file: Path


class Slot:
    """One of HOME/slots. `order` is asked for only when there is something to start."""

    def __init__(self, home: Path, role: str, index: int, port: int, order: Callable[[], Order] | None = None) -> None:
        self.role = role
        self.index = index
        self.port = port
        self.name = f"{role}-{index}"
        self.file = home / FOLDER / self.name
        self._order = order
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> Process | None:
        """Who holds it, or held it last; None if nobody ever did."""
        try:
            pid, _, started_at = self.file.read_text(encoding="ascii").strip().partition(" ")
        except FileNotFoundError:
            return None
        if not pid:
            return None
        return Process(int(pid), started_at) if started_at else Process.of(int(pid))

    @property
    def is_held(self) -> bool:
        """Whether a process, ours or not, has the slot now; also while it has not said yet who it is."""
        try:
            lock = os.open(self.file, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(lock)

    @property
    def is_starting(self) -> bool:
        """Started by us, and not yet the holder."""
        return self._child is not None and self._child.poll() is None

    @property
    def state(self) -> State:
        process = self.process if self.is_held else None
        return process.state(self.port) if process else State.DEAD

    def start(self, *inherited: int) -> None:
        """Start a holder, with these descriptors of ours; it has the slot a moment later, if nobody was quicker."""
        assert self._order is not None, "a slot that is only looked at"
        order = self._order()
        order.log_file.parent.mkdir(parents=True, exist_ok=True)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with order.log_file.open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(OCCUPY), str(self.file), *order.command],
                cwd=order.folder,
                env=order.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=inherited,
                start_new_session=True,  # Ctrl-C is for those who asked for the cluster
            )

    def send(self, sign: signal.Signals) -> None:
        """Signal the holder, if there is one."""
        if self.is_held and (process := self.process) is not None:
            process.send(sign)

    def exit_code(self, process: Process | None = None) -> int | None:
        """Of that holder, or the last one, if we started it and it has ended; what another supervisor started ends
        unseen."""
        process = process or self.process
        if self._child is None or process is None or process.pid != self._child.pid:
            return None
        return self._child.poll()

    def let_go(self) -> None:
        """What we started goes on without us: not a child that was forgotten."""
        if self._child is not None:
            self._child.returncode = self._child.poll() or 0

    def hand_over(self, other: "Slot") -> None:
        """If what we started holds the other slot by now, it is that one's child."""
        holder = other.process
        if self._child is not None and holder is not None and holder.pid == self._child.pid:
            other._child, self._child = self._child, None

    def forget(self) -> None:
        """As if nobody had ever held it; only while nobody does, and by who leads."""
        self.file.unlink(missing_ok=True)

    def kill(self) -> None:
        """SIGKILL, also of one that is paused; returns when it has the slot no more."""
        process = self.process
        self.send(signal.SIGKILL)
        if self._child is not None:  # it may not hold the slot yet, and lets go of it a moment before it is gone
            self._child.kill()
            self._child.wait(GONE_SECONDS)
        self.wait_free(GONE_SECONDS, process)

    def wait_free(self, seconds: float, process: Process | None) -> None:
        """Until that process has it no more: another may have been waiting for it."""
        wait_until(
            lambda: not self.is_held or self.process != process,
            seconds=seconds,
            otherwise=f"{self.name} (pid {process.pid if process else '?'}) does not end",
        )


def ask_to_stop(slots: Sequence[Slot], seconds: float, enough: Callable[[Sequence[Slot]], bool] | None = None) -> None:
    """SIGTERM to all at once, and SIGKILL to who is left after so long, or when those that are left are `enough`."""
    for slot in slots:
        slot.send(signal.SIGTERM)
        slot.send(signal.SIGCONT)  # one that is paused sees the other signal now
    deadline = time.monotonic() + seconds
    while (left := [slot for slot in slots if slot.is_held]) and time.monotonic() < deadline:
        if enough is not None and enough(left):
            break
        time.sleep(POLL_SECONDS)
    for slot in slots:
        slot.kill()
