"""What tests of every kind may ask for. Nothing starts until a test asks."""

import signal
import uuid
from collections.abc import Iterator

import pytest

from infra.cluster import Cluster


def pytest_configure() -> None:
    """A shell that runs us in the background has SIGINT ignored, and every process that we start would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The one embedded cluster of this run: three brokers. A test that harms a broker restores it before it ends."""
    cluster = Cluster(tmp_path_factory.mktemp("kafka"), brokers=3)
    cluster.start()
    yield cluster
    cluster.stop(seconds=0)  # its data is thrown away: no need for the broker to close it with care


@pytest.fixture
def prefix() -> str:
    """Put before every topic, group and transactional id of a test, so that tests share a cluster and nothing else."""
    return f"t{uuid.uuid4().hex[:8]}-"
