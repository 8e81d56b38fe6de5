"""Waits for a slot: `python -m infra.spare SLOT_FILE MODULE,MODULE COMMAND ARGS...`. Starting Python and importing is
half of a worker's restart; here it is done ahead, and then the command, a Python program, runs in this process.

Invariant: the slot's lock is the kernel's. It is ours at the moment at which the worker that had it is gone, however it
went, and never before; so there are no two workers of one name, and nobody has to notice the end of the first.
"""

import fcntl
import importlib
import os
import runpy
import sys

from infra.occupy import OWN_LOCK, say_who


def main(slot_file: str, modules: str, *command: str) -> None:
    for module in modules.split(","):
        importlib.import_module(module)
    lock = os.open(slot_file, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    say_who(lock)
    os.close(int(os.environ.pop(OWN_LOCK)))  # the place in waiting is free for the next one
    sys.argv = list(command)
    runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
