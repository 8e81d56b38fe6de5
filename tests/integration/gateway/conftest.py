"""One broker for these tests, and gateways to start on it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cauce.settings import Settings
from infra.cluster import Cluster
from infra.ports import Ports
from tests.integration.gateway.reading import Topics
from tests.integration.gateway.replica import Replica

PARTITIONS = 3

NewReplica = Callable[..., Replica]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("gateway-kafka"), brokers=1, heap="256m")
    cluster.start()
    yield cluster
    cluster.stop(seconds=0)


@pytest.fixture(scope="session")
def ports() -> Iterator[Ports]:
    ports = Ports(Settings.load().cache / "ports")  # the locks are for all runs on this machine
    yield ports
    ports.release()


@pytest.fixture
def new_replica(broker: Cluster, prefix: str, ports: Ports, tmp_path: Path) -> Iterator[NewReplica]:
    """A factory of gateways of this test; whatever it made is gone at the end."""
    made: list[Replica] = []

    def new(**variables: str) -> Replica:
        settings = {
            "CAUCE_BOOTSTRAP": broker.bootstrap,
            "CAUCE_TOPIC_PREFIX": prefix,
            "CAUCE_PARTITIONS": str(PARTITIONS),
            "CAUCE_HOME": str(tmp_path),
            **variables,
        }
        made.append(Replica(ports.take(), tmp_path / f"gateway-{len(made)}.log", settings))
        return made[-1]

    yield new
    for replica in made:
        replica.kill()
        print(f"---- {replica.log_file}\n{replica.log_file.read_text()[-4000:] if replica.log_file.exists() else ''}")


@pytest.fixture
def topics(broker: Cluster, prefix: str) -> Topics:
    return Topics(broker.bootstrap, prefix, PARTITIONS)


@pytest.fixture(scope="module")
def shared_replica(
    broker: Cluster, ports: Ports, tmp_path_factory: pytest.TempPathFactory, shared_prefix: str
) -> Iterator[Replica]:
    """One gateway for all tests of a file that do it no harm."""
    folder = tmp_path_factory.mktemp("gateway")
    settings = {
        "CAUCE_BOOTSTRAP": broker.bootstrap,
        "CAUCE_TOPIC_PREFIX": shared_prefix,
        "CAUCE_PARTITIONS": str(PARTITIONS),
        "CAUCE_HOME": str(folder),
    }
    with Replica(ports.take(), folder / "gateway.log", settings) as replica:
        yield replica


@pytest.fixture(scope="module")
def shared_prefix(request: pytest.FixtureRequest) -> str:
    name: str = request.module.__name__
    return f"{name.rpartition('.')[2].replace('_', '-')}-"


@pytest.fixture
def shared_topics(broker: Cluster, shared_prefix: str) -> Topics:
    return Topics(broker.bootstrap, shared_prefix, PARTITIONS)
