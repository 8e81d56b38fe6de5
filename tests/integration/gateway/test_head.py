"""A HEAD tells an offset that a PATCH can follow at once, whatever older requests still hold of the upload."""

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle
from urllib.parse import urlsplit

import httpx
import pytest

from infra.cluster import Cluster
from infra.ports import Ports
from infra.processes import wait_until
from tests.integration.gateway.conftest import PARTITIONS, NewReplica
from tests.integration.gateway.reading import Topics, expected, ratings, same_rows
from tests.integration.gateway.replica import BYTES, TUS, Replica, Visit

pytestmark = pytest.mark.kafka

DATA = ratings(20_000)
BIG = ratings(400_000)
SILENCE_SECONDS = 0.05


class OldPatch(threading.Thread):
    """A PATCH from offset 0 that sends until it is told to stop, and never ends its body."""

    def __init__(self, visit: Visit, location: str, data: bytes) -> None:
        super().__init__(daemon=True)
        self._data = data
        self._told_to_stop = threading.Event()
        address = urlsplit(visit.url)
        assert address.hostname is not None
        self._wire = socket.create_connection((address.hostname, address.port or 80), timeout=60)
        headers = {**visit.auth, **BYTES, "Host": "x", "Upload-Offset": "0", "Content-Length": str(len(data))}
        lines = [f"PATCH {location} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        self._wire.sendall("\r\n".join([*lines, "", ""]).encode())
        self.start()

    def run(self) -> None:
        try:
            for at in range(0, len(self._data) // 2, 2_000):
                self._wire.sendall(self._data[at : at + 2_000])
                if self._told_to_stop.wait(0.005):
                    return
        except OSError:  # told to give way, and hung up on
            return

    def fall_silent(self) -> None:
        self._told_to_stop.set()
        self.join(30)

    def close(self) -> None:
        self.fall_silent()
        self._wire.close()


def streams(old: OldPatch) -> None:
    pass


def is_silent(old: OldPatch) -> None:
    old.fall_silent()
    threading.Event().wait(SILENCE_SECONDS)  # what it means to be silent


def has_just_closed(old: OldPatch) -> None:
    old.close()


STATES: dict[str, Callable[[OldPatch], None]] = {
    "streams": streams,
    "is silent": is_silent,
    "has just closed": has_just_closed,
}


def resume_beside_an_old_patch(first: Replica, here: Replica, become: Callable[[OldPatch], None]) -> int:
    """How the PATCH that follows a HEAD at once is answered."""
    visit = first.open()
    location = visit.create("ratings.csv", len(DATA))
    old = OldPatch(visit, location, DATA)
    try:
        wait_until(lambda: visit.committed(location) > 0, seconds=60, otherwise="nothing was committed")
        become(old)
        resumed = visit.at(here)
        offset = resumed.offset(location)
        return resumed.patch(location, offset, DATA[offset : offset + 10_000]).status_code
    finally:
        old.close()


@pytest.fixture(scope="module")
def two(
    broker: Cluster, ports: Ports, tmp_path_factory: pytest.TempPathFactory, shared_prefix: str
) -> Iterator[tuple[Replica, Replica]]:
    """Two gateways for all tests of this file; each test has a session of its own."""
    folder = tmp_path_factory.mktemp("gateways")
    settings = {
        "CAUCE_BOOTSTRAP": broker.bootstrap,
        "CAUCE_TOPIC_PREFIX": shared_prefix,
        "CAUCE_PARTITIONS": str(PARTITIONS),
        "CAUCE_HOME": str(folder),
    }
    with (
        Replica(ports.take(), folder / "first.log", settings) as first,
        Replica(ports.take(), folder / "second.log", settings) as second,
    ):
        yield first, second


def matrix(two: tuple[Replica, Replica], tries: int) -> dict[str, list[int]]:
    first, second = two
    return {
        f"the old one {state}, {where}": [resume_beside_an_old_patch(first, here, become) for _ in range(tries)]
        for state, become in STATES.items()
        for where, here in (("the same gateway", first), ("the other gateway", second))
    }


def test_a_patch_follows_a_head_at_once(two: tuple[Replica, Replica]) -> None:
    answered = matrix(two, tries=1)
    assert answered == {cell: [204] for cell in answered}


@pytest.mark.strangers
def test_48_patches_follow_a_head_at_once(two: tuple[Replica, Replica]) -> None:
    answered = matrix(two, tries=8)
    assert answered == {cell: [204] * 8 for cell in answered}


# ---- any number of HEADs only slows an upload down

PIECE_BYTES, PIECE_SECONDS = 20_000, 0.01  # a client with 2 MB a second at most
HEADS_SECONDS = 0.1


class Careful(threading.Thread):
    """A client that sends a file at a moderate pace, asks HEAD whenever it is told to give way, and goes on at once."""

    def __init__(self, visit: Visit, location: str, data: bytes) -> None:
        super().__init__(daemon=True)
        self._visit, self._location, self._data = visit, location, data
        self.took_seconds = 0.0  # set once all of it was taken
        self.patches = 0
        self.start()

    def run(self) -> None:
        began_at = time.monotonic()
        offset = 0
        with httpx.Client(timeout=60, headers=self._visit.auth, base_url=self._visit.url) as client:
            while offset < len(self._data):
                self.patches += 1
                headers = {**BYTES, "Upload-Offset": str(offset)}
                with contextlib.suppress(httpx.TransportError):  # the gateway hung up on bytes that it does not want
                    answer = client.patch(self._location, headers=headers, content=self._pieces(offset))
                    assert answer.status_code in (204, 409, 423), answer.text
                offset = int(client.head(self._location, headers=TUS).headers["Upload-Offset"])
        self.took_seconds = time.monotonic() - began_at

    def _pieces(self, offset: int) -> Iterator[bytes]:
        for at in range(offset, len(self._data), PIECE_BYTES):
            yield self._data[at : at + PIECE_BYTES]
            threading.Event().wait(PIECE_SECONDS)

    def finish(self) -> float:
        self.join(120)
        assert self.took_seconds, "it never got to the end"
        return self.took_seconds


class Heads(threading.Thread):
    """Ten HEADs a second, none of which waits for the one before, at these gateways in turn."""

    def __init__(self, visits: Sequence[Visit], location: str) -> None:
        super().__init__(daemon=True)
        self._visits, self._location = visits, location
        self._enough = threading.Event()
        self.asked: list[Future[httpx.Response]] = []
        self.start()

    def run(self) -> None:
        headers = {**self._visits[0].auth, **TUS}
        with httpx.Client(timeout=60, headers=headers) as client, ThreadPoolExecutor(64) as pool:
            for visit in cycle(self._visits):
                self.asked.append(pool.submit(client.head, visit.url + self._location))
                if self._enough.wait(HEADS_SECONDS):
                    return

    def finish(self) -> Counter[int]:
        self._enough.set()
        self.join(60)
        return Counter(future.result().status_code for future in self.asked)


def seconds_beside_heads(
    topics: Topics, writers: Sequence[Replica], heads_at: Sequence[Replica], data: bytes
) -> tuple[float, float]:
    """How long an upload takes alone, and beside ten HEADs a second; with more writers they all send the same file."""
    alone = writers[0].open()
    alone_seconds = Careful(alone, alone.create("ratings.csv", len(data)), data).finish()
    visit = writers[0].open()
    location = visit.create("ratings.csv", len(data))
    clients = [Careful(visit.at(replica), location, data) for replica in writers]
    heads = Heads([visit.at(replica) for replica in heads_at], location)
    seconds = max(client.finish() for client in clients)
    statuses = heads.finish()
    patches = [client.patches for client in clients]
    print(f"alone {alone_seconds:.1f} s, beside HEADs {seconds:.1f} s, {patches} PATCHes, HEADs {statuses}")
    assert set(statuses) == {200}
    assert max(patches) > 1, "nobody was interrupted"
    assert same_rows(topics.rows("ratings", visit.client_id), expected("ratings", data))
    return alone_seconds, seconds


def test_an_upload_ends_beside_ten_heads_a_second(two: tuple[Replica, Replica], shared_topics: Topics) -> None:
    alone, beside = seconds_beside_heads(shared_topics, two[:1], two, ratings(120_000))
    assert beside < 3 * alone


@pytest.mark.strangers
@pytest.mark.parametrize("heads_at", [(0,), (1,), (0, 1)], ids=["same", "other", "both"])
def test_a_longer_upload_ends_beside_ten_heads_a_second(
    two: tuple[Replica, Replica], shared_topics: Topics, heads_at: tuple[int, ...]
) -> None:
    alone, beside = seconds_beside_heads(shared_topics, two[:1], [two[at] for at in heads_at], BIG)
    assert beside < 3 * alone


@pytest.mark.strangers
@pytest.mark.parametrize("writers", [(0, 0), (0, 1)], ids=["one gateway", "two gateways"])
def test_two_writers_of_one_file_get_to_its_end_beside_ten_heads_a_second(
    two: tuple[Replica, Replica], shared_topics: Topics, writers: tuple[int, ...]
) -> None:
    seconds_beside_heads(shared_topics, [two[at] for at in writers], two, BIG)


def test_a_head_needs_no_seat_of_the_live_uploads(new_replica: NewReplica) -> None:
    with new_replica(CAUCE_LIVE_UPLOADS="1") as replica:
        busy, other = replica.open(), replica.open()
        waiting = other.create("ratings.csv", len(DATA))
        location = busy.create("ratings.csv", len(DATA))
        old = OldPatch(busy, location, DATA)
        try:
            wait_until(lambda: busy.committed(location) > 0, seconds=60, otherwise="nothing was committed")
            assert other.offset(waiting) == 0
            assert "cauce_gateway_live_uploads 1.0" in replica.page("/metrics")[1]
            assert other.patch(waiting, 0, DATA).status_code == 503  # that one is still at work
        finally:
            old.close()
