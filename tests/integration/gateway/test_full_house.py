"""Where all places for sessions are taken: who gives way, who never does, and that Retry-After comes true.

All traffic is of 127.0.0.1, so the addresses come from X-Forwarded-For, as a trusted proxy on this machine writes it.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from infra.processes import wait_until
from tests.integration.gateway.conftest import NewReplica
from tests.integration.gateway.replica import Replica, Visit
from tests.integration.gateway.test_refusals_http import problem

pytestmark = pytest.mark.kafka
PROXY = {"CAUCE_TRUSTED_PROXIES": "127.0.0.1/32"}


def ask(replica: Replica, address: str, client: httpx.Client | None = None) -> httpx.Response:
    """A new session for somebody behind the proxy; an empty address is of this machine."""
    headers = {"X-Forwarded-For": f"127.0.0.1, {address}"} if address else {}
    post = client.post if client else httpx.post
    return post(f"{replica.url}/sessions", json={"dataset": "movies"}, headers=headers, timeout=30)


def opened(replica: Replica, address: str) -> Visit:
    answer = ask(replica, address)
    assert answer.status_code == 201, answer.text
    visit = Visit(replica.url, answer.json())
    assert is_open(visit)  # and the gateway has read it: what it counts is what it read
    return visit


def is_open(visit: Visit) -> bool:
    status = visit.ask("GET", "").status_code
    assert status in (200, 404)
    return status == 200


def wait_as_told(answer: httpx.Response, most: int) -> None:
    said = problem(answer, 503, "busy")
    assert "CAUCE_MAX_SESSIONS" in said["detail"]
    seconds = int(answer.headers["Retry-After"])
    assert 1 <= seconds <= most
    time.sleep(seconds)


def test_an_empty_session_gives_way_when_it_is_not_young_and_one_with_an_upload_never(new_replica: NewReplica) -> None:
    with new_replica(CAUCE_MAX_SESSIONS="3", CAUCE_YOUNG_SESSION_SECONDS="1.5", **PROXY) as replica:
        here, used = opened(replica, ""), opened(replica, "203.0.113.7")
        used.create("ratings.csv", 100)
        empty = opened(replica, "203.0.113.7")
        refused = ask(replica, "198.51.100.9")  # all are young, or may not be ended
        assert is_open(empty)
        wait_as_told(refused, most=2)
        newcomer = opened(replica, "198.51.100.9")
        assert not is_open(empty)
        assert ask(replica, "192.0.2.1").status_code == 503  # the newcomer is young, the others stay
        assert is_open(here)
        assert is_open(used)
        assert is_open(newcomer)


def test_an_empty_session_ends_soon_and_its_place_is_free_and_an_address_has_a_rate(new_replica: NewReplica) -> None:
    settings = {"CAUCE_MAX_SESSIONS": "2", "CAUCE_EMPTY_SESSION_SECONDS": "2", "CAUCE_YOUNG_SESSION_SECONDS": "0.1"}
    with new_replica(**settings, CAUCE_ADDRESS_SESSIONS_PER_SECOND="0.01", **PROXY) as replica:
        used, empty = opened(replica, "203.0.113.7"), opened(replica, "")
        used.create("ratings.csv", 100)
        said = problem(ask(replica, "203.0.113.7"), 429, "too-often")
        assert "CAUCE_ADDRESS_SESSIONS_PER_SECOND" in said["detail"]
        assert empty.opened["expires_at"] < time.time() + 2
        refused = ask(replica, "198.51.100.9")  # what is empty is of this machine: it does not give way, it ends
        wait_as_told(refused, most=2)
        opened(replica, "192.0.2.1")
        assert not is_open(empty)
        assert is_open(used)


class Hostile(threading.Thread):
    """Opens sessions without end, at every gateway, and uploads nothing."""

    def __init__(self, gateways: list[Replica], address: str) -> None:
        super().__init__(daemon=True)
        self.answers: Counter[int] = Counter()
        self._gateways = gateways
        self._address = address
        self._stop_it = threading.Event()

    def run(self) -> None:
        with httpx.Client() as client:  # one connection to each, or it would not be quick
            while not self._stop_it.is_set():
                for gateway in self._gateways:
                    self.answers[ask(gateway, self._address, client).status_code] += 1

    def stop(self) -> None:
        self._stop_it.set()
        self.join(60)


@contextmanager
def hammered(gateways: list[Replica], *addresses: str) -> Iterator[list[Hostile]]:
    """All places are taken, and those who took them ask for more."""
    hostile = [Hostile(gateways, address) for address in addresses]
    for each in hostile:
        each.start()
    try:
        is_full = lambda: all(each.answers[503] for each in hostile)  # noqa: E731
        wait_until(is_full, seconds=150, otherwise="the house is not full")
        yield hostile
    finally:
        for each in hostile:
            each.stop()


def test_who_opens_sessions_without_end_does_not_shut_the_door_for_others(new_replica: NewReplica) -> None:
    settings = {"CAUCE_MAX_SESSIONS": "10", "CAUCE_YOUNG_SESSION_SECONDS": "2", **PROXY}
    with (
        new_replica(**settings) as first,
        new_replica(**settings) as second,
        hammered([first, second], "203.0.113.7", "203.0.113.8"),
    ):
        answer = ask(second, "198.51.100.9")
        if answer.status_code == 503:
            wait_as_told(answer, most=2)
            answer = ask(second, "198.51.100.9")
        assert answer.status_code == 201, answer.text
        ada = Visit(second.url, answer.json())
        assert is_open(ada.at(first))


@pytest.mark.strangers
@pytest.mark.timeout(300)
def test_a_thousand_sessions_of_a_few_addresses_shut_the_door_for_nobody_else(new_replica: NewReplica) -> None:
    settings = {"CAUCE_ADDRESS_SESSIONS_PER_SECOND": "100", "CAUCE_NEW_SESSIONS_PER_SECOND": "500", **PROXY}
    with new_replica(**settings) as first, new_replica(**settings) as second:
        began = time.monotonic()
        with hammered([first, second], *(f"203.0.113.{each}" for each in range(8))) as hostile:
            full_after = time.monotonic() - began
            waits = []
            for each in range(20):
                since = time.monotonic()
                while (answer := ask(second, f"198.51.100.{each}")).status_code != 201:
                    assert answer.status_code == 503, answer.text
                    time.sleep(int(answer.headers["Retry-After"]))
                waits.append(time.monotonic() - since)
            counts = sum((each.answers for each in hostile), Counter())
        print(f"full after {full_after:.1f} s; {dict(counts)}; waits {[round(wait, 2) for wait in waits]}")
        assert max(waits) < 60
        assert max(waits[1:]) < 10, "once the first ones are not young any more"
