"""What strangers did for an hour leaves no memory behind: sessions, odd requests, uploads that were killed."""

import contextlib
import itertools
import socket
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest

from tests.integration.gateway.conftest import NewReplica
from tests.integration.gateway.reading import ratings
from tests.integration.gateway.replica import BYTES, TRUST, TUS, Replica, Visit, described

pytestmark = [pytest.mark.kafka, pytest.mark.strangers, pytest.mark.timeout(900)]

MIB = 1 << 20
FIRST_SESSIONS = 20
SESSIONS = 1300
ODD_REQUESTS = 6000
KILLED_UPLOADS = 20
MAY_GROW = 40 * 1_000_000
SETTLE_SECONDS = 5.0
AT_ONCE = 8  # clients
# An hour in a few minutes: nobody waits for a rate, producers are given back soon, what is over goes at once.
SETTINGS = {
    "CAUCE_MAX_SESSIONS": "5000",
    "CAUCE_NEW_SESSIONS_PER_SECOND": "100000",
    "CAUCE_SESSION_REQUESTS_PER_SECOND": "100000",
    "CAUCE_UPLOAD_IDLE_SECONDS": "1",
    "CAUCE_SESSION_TTL_SECONDS": "600",
}


def at_once(calls: Iterable[Callable[[], object]]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for future in [threads.submit(call) for call in calls]:
            future.result()


def visit_and_leave(replica: Replica, number: int) -> None:
    """A session as it should be: a file, a look, the end. One in four goes without a word."""
    visit = replica.open()
    data = ratings(50)
    answer = visit.patch(visit.create("ratings.csv", len(data)), 0, data)
    assert answer.status_code == 204, answer.text
    visit.show()
    if number % 4:
        assert visit.ask("DELETE", "").status_code == 204


def be_odd(replica: Replica, visit: Visit, number: int) -> None:
    """One request that nobody should send, of a different kind each time."""
    http = httpx.Client(base_url=replica.url, timeout=60, verify=TRUST)
    long = "x" * (30 << 10)
    asked: list[Callable[[], object]] = [
        lambda: http.get(f"/no/such/path/{number}"),
        lambda: http.request("BREW", f"/sessions/{number}"),
        lambda: http.get(visit.path, headers={"Authorization": f"Bearer {number:032x}.1.0123456789abcdef"}),
        lambda: http.get("/livez", headers={"X-Long": long + str(number)}),
        lambda: http.post("/sessions", content=b'{"dataset": "%d"' % number),
        lambda: http.post("/sessions", json={"dataset": f"none-{number}", "odd": long}),
        lambda: visit.ask("POST", "uploads", {**TUS, "Upload-Length": "-1", **described(f"{number}.csv")}),
        lambda: visit.ask("PATCH", f"uploads/none-{number}", {**BYTES, "Upload-Offset": "0"}, b"x" * 1000),
        lambda: visit.ask("HEAD", f"uploads/{number}", TUS),
        lambda: visit.ask("GET", f"answers/none-{number}"),
        lambda: listen_a_moment(replica, visit),
        lambda: half_a_request(replica, number),
    ]
    with http, contextlib.suppress(httpx.TransportError):
        asked[number % len(asked)]()


def listen_a_moment(replica: Replica, visit: Visit) -> None:
    with httpx.stream(
        "GET", f"{replica.url}{visit.path}/events", headers=visit.auth, timeout=60, verify=TRUST
    ) as events:
        next(events.iter_raw(), b"")


def half_a_request(replica: Replica, number: int) -> None:
    with socket.create_connection(("127.0.0.1", replica.port), timeout=60) as wire:
        wire.sendall(b"POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\n" + b"{" * (number % 30))


def kill_an_upload(replica: Replica) -> None:
    """A file that is sent without a pause until its connection is cut, in the middle of a block."""
    visit, length = replica.open(), 64 * MIB
    location = visit.create("ratings.csv", length)
    fields = {**visit.auth, **BYTES, "Upload-Offset": "0", "Content-Length": str(length), "Host": "x"}
    head = f"PATCH {location} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    data = ratings(200_000)
    with socket.create_connection(("127.0.0.1", replica.port), timeout=60) as wire:
        wire.sendall(head.encode() + b"\r\n" + data)
        body = itertools.cycle(data.splitlines(keepends=True)[1:])
        wire.sendall(b"".join(itertools.islice(body, 100_000)) + b"1,2")


def settled(replica: Replica) -> int:
    """The memory that stays, once producers were given back and nobody asks."""
    time.sleep(SETTLE_SECONDS)
    return replica.resident_bytes()


def test_hostile_hours_leave_no_memory_behind(new_replica: NewReplica) -> None:
    with new_replica(**SETTINGS) as replica:
        at_once(partial(visit_and_leave, replica, number) for number in range(FIRST_SESSIONS))
        first = settled(replica)
        print(f"after {FIRST_SESSIONS} sessions: {first / 1e6:.0f} MB")
        at_once(partial(visit_and_leave, replica, number) for number in range(SESSIONS))
        print(f"after {SESSIONS} more: {replica.resident_bytes() / 1e6:.0f} MB")
        odd = [replica.open() for _ in range(AT_ONCE)]
        at_once(partial(be_odd, replica, odd[number % AT_ONCE], number) for number in range(ODD_REQUESTS))
        print(f"after {ODD_REQUESTS} odd requests: {replica.resident_bytes() / 1e6:.0f} MB")
        at_once(partial(kill_an_upload, replica) for _ in range(KILLED_UPLOADS))
        print(f"after {KILLED_UPLOADS} killed uploads: {replica.resident_bytes() / 1e6:.0f} MB")
        last = settled(replica)
        print(f"in the end: {last / 1e6:.0f} MB")
        assert last - first <= MAY_GROW
