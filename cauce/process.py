"""What every process of ours has in common: exit codes that mean something, and an end that comes in time.

0: stopped, all work committed. 2: the operator has to change something. 70: failed, start it again.
"""

import ctypes
import gc
import os
import resource
import socket
import threading
from typing import Final

from cauce.errors import ConfigError, Unsupported

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of malloc.h
COLLECT_EVERY: Final = (20_000, 20, 20)  # allocations; 700, 10, 10 by default
EXIT_CONFIG: Final = 2
EXIT_FAILED: Final = 70  # EX_SOFTWARE: restart me, I go on from the last commit
STUCK: Final = "no commit for"  # how /readyz of a worker begins that makes no progress: supervisors read it
MOST_FILES: Final = 1 << 16  # one address can open so many connections to one port
STOPPING_SECONDS: Final = 9.0  # supervisors and orchestrators kill after ten


def save_memory() -> None:
    """Tell glibc to reuse blocks of the size of a batch: it would return each to the kernel and fault it in again, a
    quarter of a worker's time with records of 256 KiB. And to have few arenas, with Arrow in them, too, rather than one
    for each thread: that kept 100 MB and more of what nobody used."""
    import pyarrow as pa  # noqa: PLC0415 not every process of ours needs it

    pa.set_memory_pool(pa.system_memory_pool())
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, 32 << 20)
        libc.mallopt(M_TRIM_THRESHOLD, 64 << 20)
        libc.mallopt(M_ARENA_MAX, 2)
    # Rows of text are many small objects without a cycle: to look for one every 700 took a fifth of their parsing, and
    # a fifteenth of a worker's time. What was imported by now stays for good, and is not looked at again.
    gc.set_threshold(*COLLECT_EVERY)
    gc.freeze()


def give_memory_back() -> None:
    """Returns to the kernel what nobody uses any more. For a time of rest: what is taken next is faulted in again."""
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def raise_open_files() -> int:
    """Asks for as many open files as the operator allows, since shells and init systems give 1,024 to begin with.
    Returns how many there may be now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def exit_code(error: BaseException) -> int:
    return EXIT_CONFIG if isinstance(error, ConfigError | Unsupported) else EXIT_FAILED


def end_within(seconds: float, code: int) -> None:
    """Whatever still runs by then: what matters is in Kafka."""
    watchdog = threading.Timer(seconds, os._exit, [code])
    watchdog.daemon = True
    watchdog.start()


def refuse_taken_port(host: str, port: int, variable: str) -> None:
    """Say it before anything has started; later, a group may have been joined or a topic made."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"{host}:{port}: {error.strerror}; every process of a machine needs its own {variable}"
            ) from None
