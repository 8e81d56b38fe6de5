"""Connections are counted by our own sockets, seldom, and never take the descriptors that Kafka needs."""

import socket

import pytest

from gateway import connections
from gateway.connections import HEALTH_CONNECTIONS, OWN_FILES, UPLOAD_FILES, OpenConnections, connections_within


@pytest.mark.parametrize("hard_limit", [600, 1024, 4096, 65_536])
@pytest.mark.parametrize("uploads", [8, 32, 500])
def test_what_kafka_needs_is_left_whatever_the_limit(hard_limit: int, uploads: int) -> None:
    allowed = connections_within(hard_limit, 4000, uploads)
    needed = OWN_FILES + UPLOAD_FILES * uploads + HEALTH_CONNECTIONS
    assert 1 <= allowed <= 4000
    assert allowed == 1 or allowed + needed <= hard_limit


def test_who_asks_again_soon_gets_the_same_number(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("gateway.connections.time.monotonic", lambda: now)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        count = OpenConnections(listening.getsockname()[1])
        assert count() == 0, "one that listens is no connection"
        with socket.create_connection(listening.getsockname()), listening.accept()[0]:
            assert count() == 0
            now += connections.COUNTED_SECONDS
            assert count() == 1
