"""Our client against a real gateway: what it takes, what it names, and how a refused file is put right."""

import gzip
import os
import threading
import time
from pathlib import Path
from typing import BinaryIO

import pytest

from infra.processes import wait_until
from producer_client import BadFile, Client, WrongUsage
from producer_client.streams import MOST_BYTES
from tests.integration.gateway.conftest import NewReplica
from tests.integration.gateway.reading import Topics, expected, ratings, same_rows
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


@pytest.mark.parametrize("is_piped", [False, True])
def test_a_packed_file_is_that_file(
    is_piped: bool, shared_replica: Replica, shared_topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = ratings(50_000)
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(data[:10_000]) + gzip.compress(data[10_000:]))
    with Client(shared_replica.url) as client, client.open("movies") as session:
        if is_piped:
            with path.open("rb") as given:
                monkeypatch.setattr("sys.stdin", Given(given))
                session.upload_file("-", "ratings")
        else:
            session.upload_file(path)
        [upload] = session.state().uploads
        assert (upload.state, upload.length, upload.offset) == ("complete", len(data), len(data))
        assert same_rows(shared_topics.rows("ratings", session.client_id), expected("ratings", data))


class Given:
    """Standard input of another process, here."""

    def __init__(self, file: BinaryIO) -> None:
        self.fileno = file.fileno


@pytest.mark.strangers
def test_a_pipe_outlives_a_gateway_that_is_killed(
    new_replica: NewReplica, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than the client keeps, in two requests. The gateway is killed in the first one."""
    data = ratings(3_500_000)
    assert len(data) > MOST_BYTES
    reading, writing = os.pipe()
    with new_replica() as first, new_replica() as second, os.fdopen(reading, "rb") as given:
        monkeypatch.setattr("sys.stdin", Given(given))
        with Client([first.url, second.url]) as client, client.open("movies") as session:

            def offset() -> int:
                return sum(upload.offset for upload in session.state().uploads)

            def produce() -> None:
                with os.fdopen(writing, "wb") as pipe:
                    pipe.write(data[: MOST_BYTES // 2])
                    wait_until(lambda: offset() > 0, seconds=60, otherwise="nothing is taken")
                    first.kill()
                    pipe.write(data[MOST_BYTES // 2 :])

            producer = threading.Thread(target=produce)
            producer.start()
            session.upload_file("-", "ratings")
            producer.join()
            assert [upload.state for upload in session.state().uploads] == ["complete"]
            assert same_rows(topics.rows("ratings", session.client_id), expected("ratings", data))


def test_a_refused_file_is_put_right(shared_replica: Replica, shared_topics: Topics, tmp_path: Path) -> None:
    data, path = ratings(500), tmp_path / "ratings.csv"
    path.write_bytes(data.replace(b"movieId", b"movie", 1))
    with Client(shared_replica.url) as client, client.open("movies") as session:
        with pytest.raises(BadFile, match="no column 'movieId'"):
            session.upload_file(path)
        path.write_bytes(data)
        session.upload_file(path)
        assert [upload.state for upload in session.state().uploads] == ["complete"]
        assert same_rows(shared_topics.rows("ratings", session.client_id), expected("ratings", data))
