"""What tests of every kind may ask for. Nothing starts until a test asks."""

import signal
import uuid
from collections.abc import Generator, Iterator

import pytest
from confluent_kafka.admin import AdminClient
from hypothesis import HealthCheck, settings

from infra.cluster import Cluster

# How long an example takes says how busy the machine is, and nothing about us.
settings.register_profile("cauce", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cauce")

FAILED = pytest.StashKey[bool]()


def pytest_configure() -> None:
    """A shell that runs us in the background has SIGINT ignored, and every process that we start would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest first: of processes that share the tests, none is left with a long one in the end."""
    items.sort(key=lambda item: sum(item.get_closest_marker(name) is None for name in ("kafka", "kill")))


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The one embedded cluster of this run: three brokers. A test that harms a broker restores it before it ends."""
    cluster = Cluster(tmp_path_factory.mktemp("kafka"), brokers=3)
    cluster.start()
    yield cluster
    cluster.stop(seconds=0)  # its data is thrown away: no need for the broker to close it with care


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash.setdefault(FAILED, False)
    item.stash[FAILED] |= report.failed
    return report


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> Iterator[str]:
    """Put before every topic, group and transactional id of a test, so that tests share a cluster and nothing else."""
    prefix = f"t{uuid.uuid4().hex[:8]}-"
    yield prefix
    if not request.node.stash[FAILED]:  # else somebody may want to look at them
        for cluster in {"kafka", "broker"}.intersection(request.fixturenames):
            delete_topics(request.getfixturevalue(cluster), prefix)


def delete_topics(kafka: Cluster, prefix: str) -> None:
    """Brokers spend time on every partition they have, used or not: hundreds of them slow the tests that follow."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    names = [name for name in admin.list_topics(timeout=30).topics if prefix in name]
    for future in admin.delete_topics(names, operation_timeout=30).values() if names else []:
        future.result(30)
