"""What a supervisor answers over HTTP, looked up when asked: /metrics for Prometheus, /overview for the gateways' page.

Invariant: /overview is for who has the home's secret; what is on /metrics, anybody on this machine may know.
"""

import contextlib
import functools
import json
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cauce.errors import CauceError
from cauce.tokens import OPERATOR, BadToken, Tokens
from infra.overview import overview
from infra.services import secret_of
from infra.state import Running

MOST_CONNECTIONS: Final = 128  # a thread each
CONNECTION_SECONDS: Final = 15.0  # a look at a cluster where every process hangs takes about four
FRESH_SECONDS: Final = 0.9  # gateways ask about once a second each; a look costs every process two requests


class Now(Collector):
    def __init__(self, home: Path) -> None:
        self._home = home

    def collect(self) -> Iterator[Metric]:
        running = Running.read(self._home)
        members = running.members if running else ()
        up = GaugeMetricFamily("cauce_process_up", "1 while a process holds the slot", labels=["role", "index"])
        restarts = CounterMetricFamily("cauce_process_restarts", "started again", labels=["role", "index"])
        looping = GaugeMetricFamily("cauce_process_in_trouble", "1: crash loop, or given up", labels=["role", "index"])
        for member in members:
            labels = [member.role, str(member.index)]
            up.add_metric(labels, float(member.slot.is_held))
            restarts.add_metric(labels, member.record.restarts)
            looping.add_metric(labels, float(member.record.note is not None))
        yield from (up, restarts, looping)


class Pages:
    """A WSGI app."""

    def __init__(self, home: Path) -> None:
        registry = CollectorRegistry()
        registry.register(Now(home))
        self._home = home
        self._metrics: Any = make_wsgi_app(registry)
        self._lock = threading.Lock()
        self._looked_at = 0.0
        self._text = b""

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/overview":
            found: Iterable[bytes] = self._metrics(environ, start_response)
            return found
        status, text = self._overview(environ.get("HTTP_AUTHORIZATION", ""))
        start_response(status, [("Content-Type", "application/json"), ("Cache-Control", "no-store")])
        return [text]

    def _overview(self, authorization: str) -> tuple[str, bytes]:
        try:
            holder = Tokens(secret_of(self._home).encode()).check(authorization, time.time())
            if holder != OPERATOR:
                return "403 Forbidden", b'{"detail": "the token is for a session; this is for the operator"}'
            with self._lock:
                if time.monotonic() - self._looked_at > FRESH_SECONDS:
                    self._text, self._looked_at = json.dumps(overview(self._home)).encode(), time.monotonic()
                return "200 OK", self._text
        except BadToken as error:
            return "401 Unauthorized", json.dumps({"detail": str(error)}).encode()
        except CauceError as error:
            return "503 Service Unavailable", json.dumps({"detail": str(error)}).encode()


class Threads(ThreadingMixIn, WSGIServer):
    """A thread for each connection; of too many the oldest goes, and none stays long. Who has just come is served."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._since: dict[socket.socket, float] = {}  # oldest first
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._since[request] = time.monotonic()
        self._end_the_oldest()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Called by the server twice a second, and after each connection."""
        super().service_actions()
        self._end_the_oldest()

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._since.pop(request, None)
        super().shutdown_request(request)

    def _end_the_oldest(self) -> None:
        with self._lock:
            too_many = len(self._since) - MOST_CONNECTIONS
            overdue = time.monotonic() - CONNECTION_SECONDS
            for place, (request, since) in enumerate(self._since.items()):
                if place >= too_many and since > overdue:
                    return
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)  # its thread sees the end, and forgets it


class Silent(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Nothing: its lines would have a form of their own."""


@functools.cache
def serve(home: Path, port: int) -> None:
    """Once a process."""
    server = make_server("127.0.0.1", port, Pages(home), Threads, Silent)
    threading.Thread(target=server.serve_forever, name="pages", daemon=True).start()
