"""A worker in waiting: `python -m streams.spare SLOT_FILE`. Starting Python and importing is half of a worker's
restart; here it is done ahead.

Invariant: the slot's lock is the kernel's. It is ours at the moment at which the worker that had it is gone, however it
went, and never before; so there are no two workers of one name, and nobody has to notice the end of the first.
"""

import fcntl
import importlib
import os
import sys
from typing import Final

AHEAD: Final = ("faust.cli.faust", "faust.cli.worker", "faust.web.drivers.aiohttp", "streams.wiring")
OWN_LOCK: Final = "SLOT_LOCK"  # set by infra/occupy.py: the descriptor of the lock on our own slot


def main(slot_file: str) -> None:
    for module in AHEAD:
        importlib.import_module(module)
    wait_for(slot_file)
    if own := os.environ.pop(OWN_LOCK, ""):
        os.close(int(own))  # the place in waiting is free for the next one
    sys.argv = ["faust", "-A", "streams", "worker"]
    from faust.cli.faust import cli  # noqa: PLC0415 imported ahead, above

    sys.exit(cli())


def wait_for(slot_file: str) -> None:
    """Become the holder of the slot, and say so in the way of infra/occupy.py."""
    lock = os.open(slot_file, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with open("/proc/self/stat", encoding="ascii") as file:  # noqa: PTH123 one line, as infra/occupy.py
        stat = file.read()
    os.truncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()} {stat[stat.rindex(')') + 2 :].split()[19]}\n".encode(), 0)


if __name__ == "__main__":
    main(sys.argv[1])
