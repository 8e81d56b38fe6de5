"""Ports on 127.0.0.1 that no two clusters of this machine take at the same moment, and that brokers can come back to.

Invariant: a port is ours while we hold the lock on its file, from before the broker binds it until the cluster ends.
The range lies below the ports that systems hand out to outgoing connections (from 32768 on): otherwise any client could
take the port of a broker that is down for a second.
"""

import fcntl
import random
import socket
from pathlib import Path
from typing import IO

from cauce.errors import ConfigError

RANGE = range(20_000, 32_000)


class Ports:
    """The ports that one cluster holds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: dict[int, IO[str]] = {}

    def take(self, wish: int | None = None) -> int:
        """The port wished for if it is free, else another one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        candidates = random.sample(RANGE, len(RANGE))  # at random, so that two clusters seldom try the same one
        for port in candidates if wish is None else [wish, *candidates]:
            if self._lock(port):
                return port
        raise ConfigError(f"no free port on 127.0.0.1 between {RANGE.start} and {RANGE.stop}; end other programs first")

    def hold(self, port: int) -> None:
        """A port that a process of ours listens on already: nobody else may take it while that one is down."""
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = (self._folder / str(port)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()  # between two leaders another cluster was quicker; it matters when our process comes back
        else:
            self._locks[port] = lock

    def release(self) -> None:
        for lock in self._locks.values():
            lock.close()
        self._locks.clear()

    def _lock(self, port: int) -> bool:
        lock = (self._folder / str(port)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        if not is_free(port):
            lock.close()
            return False
        self._locks[port] = lock
        return True


def is_free(port: int) -> bool:
    """Whether a server could bind it now (a connection that is only fading out does not count, as in Java)."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
