"""Limits of a real gateway: each is a problem that names it, and the next client notices nothing."""

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from infra.cluster import Cluster
from infra.ports import Ports
from tests.integration.gateway.reading import ratings
from tests.integration.gateway.replica import TUS, Replica, Visit, described
from tests.integration.gateway.test_refusals_http import problem

pytestmark = pytest.mark.kafka
FILES = 3


@pytest.fixture(scope="module")
def replica(broker: Cluster, ports: Ports, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    settings = {
        "CAUCE_BOOTSTRAP": broker.bootstrap,
        "CAUCE_TOPIC_PREFIX": "limits-",
        "CAUCE_PARTITIONS": "2",
        "CAUCE_MAX_FILES": str(FILES),
        "CAUCE_SESSION_REQUESTS_PER_SECOND": "10",
    }
    with Replica(ports.take(), tmp_path_factory.mktemp("limits") / "gateway.log", settings) as replica:
        yield replica


def creation(visit: Visit, name: str, **metadata: str) -> httpx.Response:
    return visit.ask("POST", "uploads", {**TUS, "Upload-Length": "100", **described(name, **metadata)})


def test_a_session_has_so_many_files(replica: Replica) -> None:
    visit = replica.open(dataset="coffee")
    for number in range(FILES):
        assert creation(visit, f"users/{number}.csv", kind="users").status_code == 201
    said = problem(creation(visit, "users/more.csv", kind="users"), 413, "too-many")
    assert "CAUCE_MAX_FILES" in said["detail"]
    assert creation(visit, "users/0.csv", kind="users").status_code == 201, "one that is there is found again"
    other = replica.open(dataset="coffee")
    assert creation(other, "users/0.csv", kind="users").status_code == 201


def test_a_file_has_so_many_columns(replica: Replica) -> None:
    visit = replica.open()
    data = ratings(1).replace(b"timestamp\n", b"timestamp" + b"".join(b",c%d" % each for each in range(1000)) + b"\n")
    said = problem(visit.patch(visit.create("ratings.csv", len(data)), 0, data), 422, "bad-file")
    assert "1004 columns" in said["detail"]
    assert visit.show()["uploads"][0]["state"] == "failed"


def test_who_asks_too_often_waits_and_nobody_else(replica: Replica) -> None:
    hasty, calm = replica.open(), replica.open()
    with httpx.Client(base_url=replica.url, headers=hasty.auth) as client:
        answers = [client.get(f"{hasty.path}/answers/none") for _ in range(200)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused, "200 requests came within a second or a few"
    assert "CAUCE_SESSION_REQUESTS_PER_SECOND" in problem(refused[0], 429, "too-often")["detail"]
    assert int(refused[0].headers["Retry-After"]) >= 1
    assert calm.show()["client_id"] == calm.client_id


def test_headers_have_an_end_and_a_name_with_a_line_end_forges_none(replica: Replica) -> None:
    visit = replica.open()
    assert httpx.get(replica.url + "/livez", headers={"X": "x" * (60 << 10)}).status_code == 200
    problem(httpx.get(replica.url + "/livez", headers={"X": "x" * (64 << 10)}), 431, "too-big")
    problem(httpx.get(replica.url + "/" + "x" * (60 << 10), headers={"X": "x" * (5 << 10)}), 431, "too-big")
    problem(creation(visit, "ratings.csv\r\nX-Evil: 1"), 400, "bad-request")
    answer = creation(visit, "../../../tmp/ratings.csv")
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{visit.path}/uploads/ratings"
    assert not Path("/tmp/ratings.csv").exists()  # noqa: S108 it is not ours to be there
    assert visit.show()["uploads"][0]["name"] == "../../../tmp/ratings.csv"
    assert creation(visit, "影評.csv", kind="credits").status_code == 201


def test_a_header_split_by_hand_is_no_request(replica: Replica) -> None:
    """Below httpx, which would not send it: a bare CR in a header, and two lengths that differ."""
    for lines in (
        b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Name: a\rX-Evil: 1\r\n\r\n",
        b"POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 30\r\n\r\n{}",
    ):
        with socket.create_connection(("127.0.0.1", replica.port), timeout=10) as wire:
            wire.sendall(lines)
            answer = wire.recv(1000)
        assert answer == b"" or b" 400 " in answer.splitlines()[0]
    assert replica.page("/livez") == (200, "alive")
