"""What brokers are told, and what is kept of a cluster on disk."""

from pathlib import Path

import pytest

from cauce.errors import ConfigError
from infra.cluster import Cluster
from infra.layout import Layout, Node, new_uuid, read_layout, server_properties, write_layout

THREE = Layout("id", (Node(0, 20001, 20002), Node(1, 20003, 20004), Node(2, 20005, 20006)))
ONE = Layout("id", (Node(0, 20001, 20002),))


def test_three_brokers_keep_every_record_on_two_at_least() -> None:
    told = server_properties(THREE, THREE.nodes[1])
    assert told["controller.quorum.voters"] == "0@127.0.0.1:20002,1@127.0.0.1:20004,2@127.0.0.1:20006"
    for name in ("default", "offsets.topic", "transaction.state.log"):
        assert told[f"{name}.replication.factor"] == "3"
    assert told["min.insync.replicas"] == told["transaction.state.log.min.isr"] == "2"
    assert told["unclean.leader.election.enable"] == told["auto.create.topics.enable"] == "false"


def test_one_broker_asks_for_no_copies() -> None:
    told = server_properties(ONE, ONE.nodes[0])
    replication = {value for name, value in told.items() if name.endswith(("replication.factor", "min.isr"))}
    assert replication == {"1"}
    assert told["min.insync.replicas"] == "1"


def test_brokers_listen_on_this_machine_only() -> None:
    for node in THREE.nodes:
        listeners = server_properties(THREE, node)["listeners"].split(",")
        assert [listener.partition("://")[2].partition(":")[0] for listener in listeners] == ["127.0.0.1"] * 2


def test_a_layout_is_read_back_as_written(tmp_path: Path) -> None:
    assert read_layout(tmp_path) is None
    write_layout(tmp_path, THREE)
    assert read_layout(tmp_path) == THREE
    assert THREE.bootstrap == "127.0.0.1:20001,127.0.0.1:20003,127.0.0.1:20005"


def test_a_spoilt_layout_is_named(tmp_path: Path) -> None:
    (tmp_path / "layout.json").write_text("{")
    with pytest.raises(ConfigError, match=r"layout\.json"):
        read_layout(tmp_path)


def test_ids_are_as_kafka_writes_them() -> None:
    assert all(len(made) == 22 and not made.startswith("-") for made in (new_uuid() for _ in range(200)))


@pytest.mark.parametrize(("brokers", "heap"), [(2, "384m"), (0, "384m"), (3, "much"), (3, "0m"), (3, "384")])
def test_a_cluster_that_cannot_be_is_refused_before_anything_starts(brokers: int, heap: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"brokers|heap"):
        Cluster(tmp_path / "home", brokers, heap)
    assert not (tmp_path / "home").exists()
