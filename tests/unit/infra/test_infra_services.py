"""What the processes of a cluster are told."""

from pathlib import Path

import pytest

from infra.services import Plan, Shape


@pytest.mark.parametrize(("brokers", "copies"), [(1, "1"), (3, "3")])
def test_topics_get_as_many_copies_as_the_cluster_has_brokers_not_as_are_seen_first(
    brokers: int, copies: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that dies while the first worker makes the topics would leave them with two copies for good."""
    monkeypatch.delenv("CAUCE_REPLICATION", raising=False)
    assert Plan(tmp_path, Shape(brokers=brokers)).environment({})["CAUCE_REPLICATION"] == copies


def test_an_operator_who_says_how_many_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUCE_REPLICATION", "2")
    assert Plan(tmp_path, Shape(brokers=3)).environment({})["CAUCE_REPLICATION"] == "2"
