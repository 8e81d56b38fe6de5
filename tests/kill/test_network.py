"""Slow, cut and dead wires between clients, gateways and brokers: late at worst, never another byte."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Timer

import pytest

from infra import cluster as infra_cluster
from infra.cluster import Cluster
from infra.generate.datasets import GENERATORS
from infra.layout import Layout, Node, server_properties
from infra.oracle.datasets import ORACLES
from infra.oracle.sentiment import Sentiment
from producer_client.api import Client
from producer_client.gateways import Timing
from tests.harness.proxy import Proxy, Wire
from tests.harness.stack import At, Stack, answers

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.timeout(300)]

FAULT_SECONDS = 4.0
IMPATIENT = Timing(transfer=3.0, events=5.0)  # a client that notices a dead wire soon


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    GENERATORS["movies"](folder, 60_000, 4, lambda file, rows, done: None)
    return folder


@pytest.fixture(scope="module")
def expected(films: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = ORACLES["movies"].answer(films, "us", Sentiment()).files
    return files


@pytest.fixture(scope="module")
def wires() -> Iterator[list[Proxy]]:
    """To the broker; filled when it starts."""
    made: list[Proxy] = []
    yield made
    for proxy in made:
        proxy.__exit__()


@pytest.fixture(scope="module")
def broker(wires: list[Proxy], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One broker that tells everybody to come through a proxy."""

    def through_a_proxy(layout: Layout, node: Node) -> dict[str, str]:
        if not wires:
            wires.append(Proxy(node.port))
        told = {"advertised.listeners": f"BROKER://127.0.0.1:{wires[0].port}"}
        return server_properties(layout, node) | told

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(infra_cluster, "server_properties", through_a_proxy)
        kafka = Cluster(tmp_path_factory.mktemp("kafka"), brokers=1, heap="256m")
        kafka.start()
    yield kafka
    kafka.stop(seconds=0)


def for_a_while(wire: Wire, *proxies: Proxy) -> None:
    """The fault begins now and ends by itself."""
    for proxy in proxies:
        fault = proxy.fault(wire)
        fault.__enter__()
        Timer(FAULT_SECONDS, fault.__exit__, (None, None, None)).start()


class Twice:
    """A watcher of an upload: one thing happens after a third of the ratings, another after two thirds."""

    def __init__(self, length: int, first: Callable[[], None], second: Callable[[], None]) -> None:
        self._parts = [At("ratings.csv", length // 3, first), At("ratings.csv", 2 * length // 3, second)]

    def begin(self, name: str, length: int) -> None: ...

    def at(self, name: str, offset: int) -> None:
        for part in self._parts:
            part.at(name, offset)

    def trouble(self, name: str, what: str) -> None:
        self._parts[0].trouble(name, what)

    @property
    def troubles(self) -> list[str]:
        assert all(part.done for part in self._parts), "without the faults there is no verdict"
        return self._parts[0].troubles


@pytest.mark.parametrize("wire", [pytest.param("delay", marks=pytest.mark.again), "cut", "dead"])
def test_bad_wires_to_gateways_and_to_kafka_change_no_byte(
    wire: Wire,
    broker: Cluster,
    wires: list[Proxy],
    prefix: str,
    films: Path,
    expected: dict[str, bytes],
    tmp_path: Path,
) -> None:
    """Workers may end and start again on the way: what they had begun is read again."""
    length = (films / "ratings.csv").stat().st_size
    with Stack(broker, prefix, tmp_path) as stack, proxies(stack) as between:
        faults = Twice(length, lambda: for_a_while(wire, *between), lambda: for_a_while(wire, *wires))
        urls = [f"http://127.0.0.1:{proxy.port}" for proxy in between]
        with Client(urls, watcher=faults, timing=IMPATIENT) as client, client.open("movies") as opened:
            opened.upload(films)
            assert answers(opened, tmp_path / "out") == expected
        assert faults.troubles or wire == "delay", "the client noticed nothing: there was no fault"


@contextmanager
def proxies(stack: Stack) -> Iterator[list[Proxy]]:
    with ExitStack() as made:
        yield [made.enter_context(Proxy(gateway.port)) for gateway in stack.gateways]
