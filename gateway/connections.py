"""How many connections a gateway takes, how long a silent one stays, and how many there are now.

Invariant: connections never take the last descriptors. What is left is for Kafka: at the limit nothing more is
accepted, new connections wait in the kernel, and what was begun goes on.
"""

import logging
import os
import resource
import socket
import threading
import time
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from cauce.process import EXIT_FAILED

log = logging.getLogger(__name__)

# The kernel keeps so many that wait to be accepted, or net.core.somaxconn if that is less (4096 by default).
BACKLOG: Final = 4096
# For the head of a request, and for an idle connection to begin the next one: granian has one timer for both. httpx and
# Node let go of an idle connection after 5 s, and must be first: a POST that meets a closing one cannot be sent again.
HEAD_SECONDS: Final = 7
KEEP_ALIVE_SECONDS: Final = 5  # what clients are told, in `Keep-Alive`
# Files of a process at rest, with a reader and a writer of Kafka; and of each live upload: sockets to brokers, pipes.
OWN_FILES: Final = 160
UPLOAD_FILES: Final = 16
HEALTH_CONNECTIONS: Final = 128
# A handshake may take 10 s: those that were begun in time have ended by then, and nothing else will free a descriptor.
NO_FILES_SECONDS: Final = 12
# Prometheus asks every few seconds; 4,000 connections take 55 ms to be counted.
COUNTED_SECONDS: Final = 2.0


def connections_within(open_files: int, wanted: int, live_uploads: int) -> int:
    """Returns how many connections there may be at once, where so many files may be open."""
    left = open_files - OWN_FILES - UPLOAD_FILES * live_uploads - HEALTH_CONNECTIONS
    if left >= wanted:
        return wanted
    allowed = max(left, 1)
    log.warning(
        "fewer connections than CAUCE_GATEWAY_CONNECTIONS; raise the hard limit of open files (ulimit -Hn)",
        extra={"wanted": wanted, "allowed": allowed, "open_files": open_files},
    )
    return allowed


def end_when_files_run_out() -> None:
    """Starts a thread that ends the process when it could open no file for a while.

    Connections over HTTP are counted and stay below that. Handshakes of TLS are not: granian's listener would then try
    to accept without a pause for ever, and time no handshake out."""
    threading.Thread(target=_end_when_files_run_out, name="files", daemon=True).start()


def _end_when_files_run_out() -> None:
    failed_for = 0
    while failed_for < NO_FILES_SECONDS:
        time.sleep(1)
        failed_for = 0 if _can_open() else failed_for + 1
    log.error(
        "no file could be opened for a while; to be started again, with more of them allowed (ulimit -Hn)",
        extra={"seconds": NO_FILES_SECONDS, "allowed": resource.getrlimit(resource.RLIMIT_NOFILE)[0]},
    )
    os._exit(EXIT_FAILED)


def _can_open() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True


def new_server(app: FastAPI, host: str, port: int, connections: int, **options: Any) -> Server:
    """Returns a server that takes so many connections at once, on the event loop that runs it."""
    return Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGINL,  # start-up is ours: its errors are to be seen, and to have an exit code
        http=HTTPModes.http1,  # with TLS, browsers would choose 2, and what we know of slow clients was tried on 1.1
        http1_settings=HTTP1Settings(header_read_timeout=HEAD_SECONDS * 1000),
        websockets=False,
        backlog=BACKLOG,
        backpressure=connections,  # what granian calls the connections that it has at once; the backlog, unless told
        **options,
    )


class OpenConnections:
    """Counts the connections to a port. Granian tells nobody: our own sockets are looked at, which takes 14 µs each, so
    who asks again soon gets the same number: anybody may ask for metrics, and the event loop waits meanwhile."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._count, self._counted_at = 0, float("-inf")

    def __call__(self) -> int:
        if time.monotonic() - self._counted_at >= COUNTED_SECONDS:
            self._count = sum(_is_connection(int(file.name), self._port) for file in _open_files())
            self._counted_at = time.monotonic()
        return self._count


def _open_files() -> list[Path]:
    try:
        return list(Path("/proc/self/fd").iterdir())
    except FileNotFoundError:
        return []  # no Linux


def _is_connection(file: int, port: int) -> bool:
    try:
        borrowed = socket.socket(fileno=file)
    except OSError:
        return False  # no socket, or closed by now
    try:
        if borrowed.type != socket.SOCK_STREAM or borrowed.family not in {socket.AF_INET, socket.AF_INET6}:
            return False
        borrowed.getpeername()  # one that listens has no peer
        return bool(borrowed.getsockname()[1] == port)
    except OSError:
        return False
    finally:
        borrowed.detach()
