"""A counting app on real workers: each test gets its own topics, workers and data folders on the cluster of the run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.cluster import Cluster
from tests.harness.fleet import Fleet
from tests.harness.load import Load, create_topics
from tests.harness.plan import Plan
from tests.harness.truth import Truth


@pytest.fixture
def plan(kafka: Cluster, prefix: str, tmp_path: Path) -> Plan:
    plan = Plan(worker="", prefix=prefix, bootstrap=kafka.bootstrap, data=tmp_path / "data")
    create_topics(plan)
    return plan


@pytest.fixture
def fleet(plan: Plan) -> Iterator[Fleet]:
    with Fleet(plan) as fleet:
        yield fleet


@pytest.fixture
def truth(plan: Plan) -> Iterator[Truth]:
    with Truth(plan) as truth:
        yield truth


@pytest.fixture
def load(plan: Plan) -> Load:
    return Load(plan)
