"""Ports: never two clusters on one, and the same one again if it is free."""

import socket
from pathlib import Path

from infra.ports import RANGE, Ports


def test_a_port_that_another_cluster_holds_is_not_given_out(tmp_path: Path) -> None:
    one, other = Ports(tmp_path), Ports(tmp_path)
    port = one.take()
    assert port in RANGE
    assert other.take(port) != port
    one.release()
    other.release()


def test_a_port_comes_back_once_it_is_free(tmp_path: Path) -> None:
    ports = Ports(tmp_path)
    port = ports.take()
    ports.release()
    assert ports.take(port) == port
    ports.release()


def test_a_port_that_a_stranger_listens_on_is_not_given_out(tmp_path: Path) -> None:
    ports = Ports(tmp_path)
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        assert ports.take(stranger.getsockname()[1]) != stranger.getsockname()[1]
    ports.release()
