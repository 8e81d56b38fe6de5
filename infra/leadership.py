"""Which supervisor leads: the one that holds a lock of the kernel, and that beats.

Invariant: at most one supervisor leads at any moment. A leader that is killed loses the lock at once. One that is
paused or hangs keeps the lock, so it is killed first (by pid and start time, and the kernel frees the lock): it can
never come back and go on. Nothing here needs Kafka, a network or two clocks that agree.
"""

import fcntl
import logging
import os
import signal
import threading
import time
from pathlib import Path
from typing import Final

from infra.processes import Process

log = logging.getLogger(__name__)

FILE: Final = "leader"
BEAT_SECONDS: Final = 0.25
SILENT_SECONDS: Final = 2.0  # eight beats: a busy machine delays a few, not all
HUNG_SECONDS: Final = 60.0  # nothing a leader does between two turns takes as long


class Leadership:
    """Taken with `try_take` by who has the file to itself, or handed down by who started us (`handed`)."""

    def __init__(self, home: Path, handed: int | None = None) -> None:
        self._path = home / FILE
        self._lock = handed
        self._turned_at = time.monotonic()
        self._beating: threading.Thread | None = None
        self._beat_seen: tuple[int, float] | None = None  # the last beat, and since when there is no other
        self._looked_at = time.monotonic()

    @property
    def is_ours(self) -> bool:
        return self._lock is not None

    def try_take(self) -> bool:
        lock = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        return True

    def hand_down(self) -> int:
        """The lock, for a child to inherit; ours until `leave`."""
        assert self._lock is not None, "not ours to give"
        os.set_inheritable(self._lock, True)
        return self._lock

    def leave(self) -> None:
        """The lock goes when the last process that has it lets go of it."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def begin(self) -> None:
        """Say who leads, and beat from now on, as long as `turn` is called."""
        assert self._lock is not None, "not ours"
        os.set_inheritable(self._lock, False)  # what we start must not hold it
        process = Process.of(os.getpid())
        os.truncate(self._lock, 0)
        os.pwrite(self._lock, f"{process.pid} {process.started_at}\n".encode(), 0)
        self.turn()
        self._beating = threading.Thread(target=self._beat, name="beat", daemon=True)
        self._beating.start()

    def turn(self) -> None:
        self._turned_at = time.monotonic()

    def _beat(self) -> None:
        while self._lock is not None and time.monotonic() - self._turned_at < HUNG_SECONDS:
            os.utime(self._path)  # takes no room: a full disk ends no leader
            time.sleep(BEAT_SECONDS)

    def leader(self) -> Process | None:
        """Who said last that it leads."""
        try:
            pid, _, started_at = self._path.read_text(encoding="ascii").strip().partition(" ")
        except FileNotFoundError:
            return None
        return Process(int(pid), started_at) if pid and started_at else None

    def end_silent_leader(self) -> Process | None:
        """Kill a leader that has not beaten for too long; whom, if so. Called again and again by who would follow."""
        now, beat = time.monotonic(), self._path.stat().st_mtime_ns
        we_slept = now - self._looked_at > SILENT_SECONDS / 2  # we were paused, too: what we remember says nothing
        self._looked_at = now
        if we_slept or self._beat_seen is None or self._beat_seen[0] != beat:
            self._beat_seen = beat, now
            return None
        leader = self.leader()
        if now - self._beat_seen[1] < SILENT_SECONDS or leader is None or not leader.alive:
            return None
        log.warning("the leader is silent and is killed", extra={"pid": leader.pid})
        leader.send(signal.SIGKILL)
        self._beat_seen = None
        return leader
