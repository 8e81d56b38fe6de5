"""Two gateways of one cluster, and a folder of films whose bytes are easy to tell apart."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from producer_client.gateways import Timing
from tests.unit.client.fake_gateway import FakeCluster, Gateway, gateways

QUICK = Timing(
    give_up=5, open=1, first_wait=0.01, longest_wait=0.1, connect=2, transfer=5, events=2, poll=0.05, settle=0.3
)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def pair(cluster: FakeCluster) -> Iterator[list[Gateway]]:
    with gateways(cluster, 2) as started:
        yield started


@pytest.fixture
def movies(tmp_path: Path) -> Path:
    """ratings.csv is 3 MB and some odd bytes: several writes, one PATCH."""
    folder, rng = tmp_path / "movies", random.Random(1)
    folder.mkdir()
    (folder / "movies_metadata.csv").write_bytes(b"id,title\n" + rng.randbytes(200_003))
    (folder / "ratings.csv").write_bytes(b"userId,rating\n" + rng.randbytes(3_000_017))
    (folder / "credits.csv").write_bytes(b"id,cast\n" + rng.randbytes(100_001))
    return folder


@pytest.fixture
def quick() -> Timing:
    return QUICK
