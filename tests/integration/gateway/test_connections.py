"""Strangers who only hold connections: everybody else is served meanwhile, and all is well after them."""

import contextlib
import resource
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from cauce.process import EXIT_CONFIG, EXIT_FAILED
from infra.cluster import Cluster
from infra.ports import Ports
from infra.processes import wait_until
from infra.scrape import gauges
from infra.service import page
from tests.harness.locks import Certificates
from tests.integration.gateway.conftest import PARTITIONS, NewReplica
from tests.integration.gateway.reading import ratings
from tests.integration.gateway.replica import Replica

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

LISTENERS = 16  # event streams that a session may have
LIMIT = 64  # connections of a gateway that is to be filled
HEAD_SECONDS = 7.0  # after which a connection ends that says nothing
A_SECOND = 1.0


@contextlib.contextmanager
def silent(port: int, count: int, says: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections that send these bytes, which are no request, and wait."""
    with contextlib.ExitStack() as held:
        wires = [held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)) for _ in range(count)]
        for wire in wires:
            with contextlib.suppress(ConnectionError):
                wire.sendall(says)
        yield wires


@contextlib.contextmanager
def listening(replica: Replica, streams: int) -> Iterator[None]:
    """So many event streams, of as many sessions as that takes; each has had its first bytes."""
    with contextlib.ExitStack() as held:
        for first in range(0, streams, LISTENERS):
            visit = replica.open()
            for _ in range(min(LISTENERS, streams - first)):
                wire = held.enter_context(socket.create_connection(("127.0.0.1", replica.port), timeout=30))
                token = visit.auth["Authorization"]
                wire.sendall(f"GET {visit.path}/events HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n\r\n".encode())
                assert wire.recv(100).startswith(b"HTTP/1.1 200 ")
        yield


@pytest.fixture(scope="module")
def small_replica(
    broker: Cluster, ports: Ports, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Replica, int]]:
    """A gateway that takes few connections, and the port of its health pages."""
    health, folder = ports.take(), tmp_path_factory.mktemp("small")
    settings = {
        "CAUCE_BOOTSTRAP": broker.bootstrap,
        "CAUCE_TOPIC_PREFIX": "connections-",
        "CAUCE_PARTITIONS": str(PARTITIONS),
        "CAUCE_HOME": str(folder),
        "CAUCE_GATEWAY_CONNECTIONS": str(LIMIT),
        "CAUCE_GATEWAY_HEALTH_PORT": str(health),
    }
    with Replica(ports.take(), folder / "gateway.log", settings) as replica:
        yield replica, health


def seconds_of_livez(port: int, seconds: float = 30.0) -> float:
    began = time.monotonic()
    assert page(port, "/livez", seconds)[0] == 200
    return time.monotonic() - began


def stays_well(replica: Replica, seconds: float) -> None:
    """Every look within a second, again and again."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert seconds_of_livez(replica.port) < A_SECOND
        time.sleep(0.1)


def uploads_a_file(replica: Replica) -> None:
    visit, data = replica.open(), ratings(10)
    assert visit.patch(visit.create("ratings.csv", len(data)), 0, data).status_code == 204


def test_two_hundred_silent_sockets_and_a_hundred_streams_delay_nobody(shared_replica: Replica) -> None:
    with silent(shared_replica.port, 200), listening(shared_replica, 144):
        stays_well(shared_replica, 1.0)
        assert gauges(shared_replica.port)["cauce_gateway_connections"] >= 344
        uploads_a_file(shared_replica)


@pytest.mark.strangers
def test_a_silent_socket_is_closed_soon_and_an_idle_connection_later_than_clients_let_go_of_it(
    shared_replica: Replica,
) -> None:
    """httpx and Node drop an idle connection after 5 s: were the gateway the first, a POST would meet a closed one."""
    with silent(shared_replica.port, 2) as (mute, idle):
        idle.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"keep-alive: timeout=5\r\n" in idle.recv(1000).lower()
        began = time.monotonic()
        assert mute.recv(1) == b""
        assert idle.recv(1) == b""
        assert 5.5 < time.monotonic() - began < HEAD_SECONDS + 5


def test_at_the_limit_the_health_port_answers_and_new_connections_wait_their_turn(
    small_replica: tuple[Replica, int],
) -> None:
    replica, health = small_replica
    with silent(replica.port, LIMIT + 10):
        wait_until(
            lambda: gauges(health)["cauce_gateway_connections"] == LIMIT, seconds=5, otherwise="not all were taken"
        )
        assert page(replica.port, "/livez", 0.5)[0] == 0, "this test would say nothing"
        assert seconds_of_livez(health) < A_SECOND
        assert page(health, "/readyz") == (200, "ready")
        assert page(health, "/sessions")[0] == 404, "only health is told there"
        assert page(health, "/livez/")[0] == 404, "and nothing is redirected to where the client says"
        assert seconds_of_livez(replica.port) < HEAD_SECONDS + 3
    uploads_a_file(replica)


def test_event_streams_have_half_of_the_connections(small_replica: tuple[Replica, int]) -> None:
    replica, _ = small_replica
    with listening(replica, LIMIT // 2):
        answer = replica.open().ask("GET", "events")
        assert answer.status_code == 429, answer.text
        assert "CAUCE_GATEWAY_CONNECTIONS" in answer.json()["detail"]
        assert int(answer.headers["Retry-After"]) >= 1
        uploads_a_file(replica)


def test_a_port_is_not_shared_with_the_health_pages(new_replica: NewReplica, ports: Ports) -> None:
    port = str(ports.take())
    replica = new_replica(CAUCE_GATEWAY_PORT=port, CAUCE_GATEWAY_HEALTH_PORT=port)
    replica.start()
    assert replica.wait_for_end() == EXIT_CONFIG
    assert "CAUCE_GATEWAY_HEALTH_PORT" in replica.log_file.read_text()


@pytest.mark.strangers
def test_fifteen_hundred_silent_sockets_delay_nobody(new_replica: NewReplica) -> None:
    with new_replica() as replica:
        for _ in range(2):  # who was dropped comes again
            with silent(replica.port, 1500):
                stays_well(replica, 5.0)
                uploads_a_file(replica)
        wait_until(lambda: gauges(replica.port)["cauce_gateway_connections"] < 10, seconds=20, otherwise="they stay")


@pytest.mark.strangers
def test_half_a_head_is_no_way_to_stay(new_replica: NewReplica) -> None:
    """Bytes that come now and then do not put off the end of those that take too long."""
    with new_replica() as replica, silent(replica.port, 1500, b"GET /livez HTTP/1.1\r\n") as wires:
        began = time.monotonic()
        while time.monotonic() - began < HEAD_SECONDS - 2:
            for wire in wires:
                with contextlib.suppress(ConnectionError):
                    wire.sendall(b"X: y\r\n")
            assert seconds_of_livez(replica.port) < A_SECOND
        for wire in wires:
            with contextlib.suppress(ConnectionError):
                wire.recv(1000)
        assert time.monotonic() - began < HEAD_SECONDS + 8


@pytest.mark.strangers
def test_the_limit_as_it_is_shipped_is_reached_and_all_is_well_after_it(new_replica: NewReplica, ports: Ports) -> None:
    health = ports.take()
    with new_replica(CAUCE_GATEWAY_HEALTH_PORT=str(health)) as replica:
        for _ in range(2):
            with silent(replica.port, 4100):
                assert seconds_of_livez(health) < A_SECOND
                assert seconds_of_livez(replica.port) < HEAD_SECONDS + 8
        stays_well(replica, 2.0)
        uploads_a_file(replica)


@contextlib.contextmanager
def over_tls(new_replica: NewReplica, health: int, folder: Path) -> Iterator[tuple[Replica, Callable[[], None]]]:
    """A gateway that speaks HTTPS, and a look at it that fails where it takes longer than a second."""
    folder.mkdir()
    certificates = Certificates(folder)
    replica = new_replica(
        CAUCE_GATEWAY_HEALTH_PORT=str(health),
        CAUCE_GATEWAY_TLS_CERTIFICATE=str(certificates.certificate),
        CAUCE_GATEWAY_TLS_KEY=str(certificates.key),
    )
    replica.start()
    wait_until(lambda: page(health, "/readyz")[0] == 200, seconds=60, otherwise="it is not ready")
    trust = ssl.create_default_context(cafile=certificates.ca)

    def look() -> None:
        url = f"https://127.0.0.1:{replica.port}/livez"
        assert httpx.get(url, verify=trust, timeout=A_SECOND).status_code == 200
        assert seconds_of_livez(health) < A_SECOND

    yield replica, look


@pytest.mark.strangers
@pytest.mark.parametrize("says", [b"", bytes.fromhex("1603010200010001fc0303")], ids=["nothing", "half a hello"])
def test_slow_handshakes_of_tls_delay_nobody(
    says: bytes, new_replica: NewReplica, ports: Ports, tmp_path: Path
) -> None:
    with over_tls(new_replica, ports.take(), tmp_path / "tls") as (replica, look):
        with silent(replica.port, 1500, says):
            until = time.monotonic() + 5
            while time.monotonic() < until:
                look()
                time.sleep(0.1)
        look()


@pytest.mark.strangers
def test_handshakes_that_take_every_descriptor_end_the_gateway_and_the_next_one_is_well(
    new_replica: NewReplica, ports: Ports, tmp_path: Path
) -> None:
    """Nobody counts them, and granian's listener does not come back from it: a supervisor has to start another one."""
    with over_tls(new_replica, ports.take(), tmp_path / "tls") as (replica, look):
        resource.prlimit(replica.pid, resource.RLIMIT_NOFILE, (500, 500))
        with silent(replica.port, 1000):
            assert replica.wait_for_end() == EXIT_FAILED
        assert "no file could be opened" in replica.log_file.read_text()
        replica.start()
        wait_until(lambda: looks(look), seconds=60, otherwise="the next one does not come up")


def looks(look: Callable[[], None]) -> bool:
    try:
        look()
    except (httpx.TransportError, AssertionError):
        return False
    return True
