"""Bytes that end a gateway are refused after a few crashes; an innocent upload that was in hand goes on."""

import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from gateway.hazards import CRASHES
from tests.harness.poisoned_gateway import MARK
from tests.integration.gateway.conftest import NewReplica
from tests.integration.gateway.reading import Topics, expected, ratings, same_rows
from tests.integration.gateway.replica import Replica, Visit

pytestmark = [pytest.mark.kafka, pytest.mark.kill]

DATA = ratings(2_000)
HALF = DATA.index(b"\n", len(DATA) // 2) + 1
POISONED = DATA[:HALF] + MARK + b"\n" + DATA[HALF:]


def test_bytes_that_end_a_gateway_are_refused_and_others_go_on(new_replica: NewReplica, topics: Topics) -> None:
    gateway = new_replica()
    gateway._command = [sys.executable, "-m", "tests.harness.poisoned_gateway"]
    with gateway:
        bad, good = gateway.open(), gateway.open()
        poisoned, innocent = bad.create("ratings.csv", len(POISONED)), good.create("ratings.csv", len(DATA))
        assert bad.patch(poisoned, 0, POISONED[:HALF]).status_code == 204
        crashes = 0
        while not send_both(gateway, (bad, poisoned), (good, innocent)):
            crashes += 1
            assert gateway.wait_for_end() == -signal.SIGSEGV
            gateway.start()
            gateway.wait_ready()
        assert CRASHES <= crashes <= CRASHES + 1, "the first time it may have been the other one"
        answer = bad.patch(poisoned, bad.offset(poisoned), POISONED[HALF:])
        assert answer.status_code == 422
        assert f"ended the gateway {CRASHES} times, alone (last: Segmentation fault)" in answer.json()["detail"]
        assert bad.offset(poisoned) == HALF
        assert same_rows(topics.rows("ratings", good.client_id), expected("ratings", DATA))


def send_both(gateway: Replica, bad: tuple[Visit, str], good: tuple[Visit, str]) -> bool:
    """Both at once, as clients do who try again; whether the gateway lives."""

    def send(visit: Visit, location: str, data: bytes) -> bool:
        try:
            reached = visit.offset(location)
            return reached == len(data) or visit.patch(location, reached, data[reached:]).status_code in (204, 422)
        except httpx.TransportError:
            return False

    with ThreadPoolExecutor(2) as clients:
        sent = [clients.submit(send, *bad, POISONED), clients.submit(send, *good, DATA)]
        return all(each.result() for each in sent)
