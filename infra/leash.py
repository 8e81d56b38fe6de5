"""Runs a command that cannot outlive the process that asked for it: `leash.py PARENT_PID COMMAND ARGS...`.

Invariant: after the exec nothing of this file is left, neither process nor memory; the pid stays the same. The kernel
sends SIGKILL when the *thread* that spawned us ends, so `processes.Spawner` keeps one thread as long as its children.
It is a program of its own, not a preexec_fn: code between fork and exec can deadlock a process that has threads.
"""

import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # from linux/prctl.h


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  (only Linux has the call)

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the call above: nobody is left to send the signal
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606  (no shell is what we want)


if __name__ == "__main__":
    main()
