"""Runs a command as the one holder of a slot: `occupy.py LOCK_FILE COMMAND ARGS...`.

Invariant: the lock is the kernel's and is held as long as the command lives, whoever started it and whoever watches it
now; so a slot never has two holders. The file says who holds it: pid and start time. After the exec nothing of this
file is left; the pid stays the same.
"""

import fcntl
import os
import sys
import time

PATIENCE_SECONDS = 1.0  # who only looks whether the slot is free holds its lock for microseconds
OWN_LOCK = "SLOT_LOCK"  # the variable that has the descriptor of the lock
TAKEN = 75  # EX_TEMPFAIL: somebody else has the slot


def main() -> None:
    file, command = sys.argv[1], sys.argv[2:]
    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not _take(lock):
        if time.monotonic() > deadline:
            sys.exit(TAKEN)
        time.sleep(0.005)
    say_who(lock)
    os.set_inheritable(lock, True)
    os.environ[OWN_LOCK] = str(lock)  # for one that leaves the slot before it ends
    os.execvp(command[0], command)  # noqa: S606  (no shell is what we want)


def say_who(lock: int) -> None:
    """We hold the slot: pid and start time, into its file."""
    os.truncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()} {_started_at()}\n".encode(), 0)


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _started_at() -> str:
    """As infra/processes.py reads it; empty where the system has no such file, and the reader looks for itself."""
    try:
        with open("/proc/self/stat", encoding="ascii") as file:  # noqa: PTH123  (this program starts fast: no pathlib)
            stat = file.read()
    except OSError:
        return ""
    return stat[stat.rindex(")") + 2 :].split()[19]


if __name__ == "__main__":
    main()
