"""Our client against a real gateway."""

import time
from pathlib import Path

import pytest

from producer_client import Client, WrongUsage
from tests.integration.gateway.replica import Replica

pytestmark = pytest.mark.kafka


def test_http_is_spoken_there(shared_replica: Replica) -> None:
    began, sentence = time.monotonic(), f"HTTP is spoken there, and no HTTPS; write {shared_replica.url}"
    secure = shared_replica.url.replace("http:", "https:")
    with Client(secure) as client, pytest.raises(WrongUsage, match=sentence):
        client.open("movies")
    assert time.monotonic() - began < 10


def test_a_separator_of_the_dataset_is_no_trouble(shared_replica: Replica, tmp_path: Path) -> None:
    """Airports come with semicolons, and the gateway says so."""
    path = tmp_path / "airports-codepublic.csv"
    path.write_text("Airport Code;Latitude;Longitude\nFRA;50.0;8.6\n")
    with Client(shared_replica.url) as client, client.open("flights") as session:
        session.upload_file(path)
        path.write_text("Airport Code,Latitude,Longitude\nFRA,50.0,8.6\n")
        with pytest.raises(WrongUsage, match="give --separator airports=','"):
            session.upload_file(path)
