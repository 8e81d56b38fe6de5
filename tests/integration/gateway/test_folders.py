"""Folders of files that are one input, and files that have to be there before others."""

import threading
from collections import Counter
from collections.abc import Callable

import pytest

from infra.processes import wait_until
from tests.integration.gateway.conftest import PARTITIONS, NewReplica
from tests.integration.gateway.reading import Topics
from tests.integration.gateway.replica import TUS, Replica, Visit, described

pytestmark = pytest.mark.kafka

HEADER = b"user_id,gender,birthdate,registered_at\n"
JULY = HEADER + b"1,female,1970-04-22,2023-07-01 08:13:07\n2,female,1991-12-08,2023-07-01 09:53:48\n"
AUGUST = HEADER + b"581,male,2004-06-13,2023-08-01 09:39:30\n,male,1973-08-12,2023-08-01 09:41:03\n"
STORES = b"store_id,store_name\n1,One\n2,Two\n"
AIRPORTS = b"Airport Code;Latitude;Longitude\nBOS;42.36;-71.0\nLAX;33.94;-118.4\n"


def send(visit: Visit, name: str, kind: str, data: bytes) -> str:
    location = visit.create(name, len(data), kind=kind)
    assert visit.patch(location, 0, data).status_code == 204
    return location


def complete(visit: Visit, kind: str = "users", files: int | None = None) -> tuple[int, str]:
    wanted = "" if files is None else f"?files={files}"
    answer = visit.ask("POST", f"folders/{kind}/complete{wanted}")
    return answer.status_code, answer.text


def test_files_of_a_folder_are_one_input_that_ends_when_the_client_says_so(
    shared_replica: Replica, shared_topics: Topics
) -> None:
    visit = shared_replica.open(dataset="coffee")
    send(visit, "users/07.csv", "users", JULY)
    send(visit, "users/08.csv", "users", AUGUST)
    assert shared_topics.ends("users", visit.client_id) == []
    assert complete(visit, files=2)[0] == 200
    assert complete(visit, files=2)[0] == 200
    total = {"rows": 4, "rejected": {"no user_id": 1}, "sent": 3}
    assert shared_topics.ends("users", visit.client_id) == [(part, total) for part in range(PARTITIONS)]
    assert set(shared_topics.rows("users", visit.client_id)["user_id"].to_pylist()) == {1, 2, 581}
    (stage,) = (file for file in visit.show()["files"] if file["kind"] == "users")
    assert (stage["rows"], stage["rejected"], stage["sent"]) == (4, {"no user_id": 1}, 3)
    assert [upload["name"] for upload in visit.show()["uploads"]] == ["users/07.csv", "users/08.csv"]


@pytest.mark.parametrize("milliseconds", [0, 2, 4, 8, 12])
def test_a_file_is_in_a_folder_or_refused_however_close_its_end_is(milliseconds: int, shared_replica: Replica) -> None:
    """The rows of one that was created while the folder was being closed came behind its end."""
    visit = shared_replica.open(dataset="coffee")
    send(visit, "users/07.csv", "users", JULY)
    created: list[int] = []

    def create() -> None:
        headers = {**TUS, "Upload-Length": str(len(AUGUST)), **described("users/08.csv", kind="users")}
        created.append(visit.ask("POST", "uploads", headers).status_code)

    adding = threading.Thread(target=create)
    adding.start()
    threading.Event().wait(milliseconds / 1000)  # the race is what is tried
    closed, told = complete(visit)
    adding.join()
    assert (created, closed) in (([201], 409), ([409], 200)), told


def test_nothing_is_added_to_a_folder_that_is_closed(shared_replica: Replica) -> None:
    visit = shared_replica.open(dataset="coffee")
    location = send(visit, "users/07.csv", "users", JULY)
    assert complete(visit)[0] == 200
    headers = {**TUS, "Upload-Length": "9", **described("users/08.csv", kind="users")}
    late = visit.ask("POST", "uploads", headers)
    assert (late.status_code, late.json()["type"].rpartition("#")[2]) == (409, "closed")
    assert visit.create("users/07.csv", len(JULY), kind="users") == location  # a client that asks again
    assert visit.offset(location) == len(JULY)


def test_a_folder_is_not_complete_before_all_of_it_is_there(shared_replica: Replica, shared_topics: Topics) -> None:
    visit = shared_replica.open(dataset="coffee")
    assert "at least one" in complete(visit)[1]
    location = visit.create("users/07.csv", len(JULY), kind="users")
    visit.patch(location, 0, JULY[:50])
    status, text = complete(visit)
    assert (status, "users/07.csv has not ended" in text) == (409, True)
    visit.patch(location, 50, JULY[50:])
    status, text = complete(visit, files=2)
    assert (status, "has 1 files, not 2" in text) == (409, True)
    assert shared_topics.ends("users", visit.client_id) == []
    assert complete(visit, "stores")[0] == 404
    assert complete(visit, "nothing")[0] == 404


def test_a_file_of_a_folder_that_is_bad_fails_the_queries_that_need_it(shared_replica: Replica) -> None:
    visit = shared_replica.open(dataset="coffee")
    send(visit, "users/07.csv", "users", JULY)
    location = visit.create("users/08.csv", 20, kind="users")
    assert visit.patch(location, 0, b"id,name,bad,header\n1").status_code == 422
    assert complete(visit)[0] == 409
    states = {query["query"]: query["state"] for query in visit.show()["queries"]}
    assert states == {"coffee-q1": "waiting", "coffee-q2": "waiting", "coffee-q3": "waiting", "coffee-q4": "failed"}
    assert visit.ask("DELETE", location, TUS).status_code == 204
    assert complete(visit, files=1)[0] == 200
    assert {query["state"] for query in visit.show()["queries"]} == {"waiting"}


def test_a_file_of_a_folder_that_was_refused_is_replaced(shared_replica: Replica) -> None:
    visit = shared_replica.open(dataset="coffee")
    location = visit.create("users/08.csv", 20, kind="users")
    assert visit.patch(location, 0, b"id,name,bad,header\n1").status_code == 422
    assert "delete that upload or replace the file" in complete(visit)[1]
    assert send(visit, "users/08.csv", "users", AUGUST) != location, "it is another file"
    assert visit.ask("HEAD", location, TUS).status_code == 410
    assert complete(visit, files=1)[0] == 200


def test_a_file_of_a_folder_that_is_deleted_when_rows_were_taken_fails_the_queries(shared_replica: Replica) -> None:
    visit = shared_replica.open(dataset="coffee")
    send(visit, "users/07.csv", "users", JULY)
    location = send(visit, "users/08.csv", "users", AUGUST)
    for _ in range(2):
        assert visit.ask("DELETE", location, TUS).status_code == 204
    status, text = complete(visit)
    assert (status, "cannot be completed any more: users/08.csv: its client deleted it" in text) == (409, True)
    states = {query["query"]: query["state"] for query in visit.show()["queries"]}
    assert states == {"coffee-q1": "waiting", "coffee-q2": "waiting", "coffee-q3": "waiting", "coffee-q4": "failed"}
    assert visit.ask("DELETE", "").status_code == 204
    assert visit.ask("GET", "").status_code == 404


def test_a_file_that_is_deleted_from_a_folder_that_is_closed_fails_the_queries(shared_replica: Replica) -> None:
    visit = shared_replica.open(dataset="coffee")
    location = send(visit, "users/07.csv", "users", JULY)
    assert complete(visit, files=1)[0] == 200
    assert visit.ask("DELETE", location, TUS).status_code == 204
    states = {query["query"]: query["state"] for query in visit.show()["queries"]}
    assert (states["coffee-q4"], states["coffee-q1"]) == ("failed", "waiting")


def test_two_files_of_one_name_in_a_folder_are_not_mixed(shared_replica: Replica) -> None:
    visit = shared_replica.open(dataset="coffee")
    one = {"kind": "users", "size": "40", "fingerprint": "a" * 64}
    visit.create("users/data.csv", 40, **one)
    headers = {**TUS, "Upload-Length": "40", **described("users/data.csv", **{**one, "fingerprint": "b" * 64})}
    other = visit.ask("POST", "uploads", headers)
    assert (other.status_code, other.json()["type"]) == (409, "/docs#taken")
    assert "the fingerprint was" in other.json()["detail"]


def test_a_file_that_comes_while_the_folder_is_closed_is_in_it_or_refused(
    new_replica: NewReplica, topics: Topics
) -> None:
    """Two replicas at the same moment: one of them is after the other, whichever."""
    with new_replica() as first, new_replica() as second:
        visit = first.open(dataset="coffee")
        send(visit, "users/07.csv", "users", JULY)
        wait_until(lambda: visit.at(second).ask("GET", "").status_code == 200, seconds=60, otherwise="not known there")
        outcome: dict[str, int] = {}
        headers = {**TUS, "Upload-Length": str(len(AUGUST)), **described("users/08.csv", kind="users")}

        def create() -> None:
            outcome["create"] = persistent(lambda: visit.at(second).ask("POST", "uploads", headers).status_code)

        def close() -> None:
            outcome["close"] = persistent(lambda: complete(visit)[0])

        threads = [threading.Thread(target=act) for act in (create, close)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(90)
        assert sorted(outcome.items()) in ([("close", 200), ("create", 409)], [("close", 409), ("create", 201)])
        assert len(topics.ends("users", visit.client_id)) == (PARTITIONS if outcome["close"] == 200 else 0)


def persistent(ask: Callable[[], int]) -> int:
    """What a client does: ask again while told to."""
    while (status := ask()) in (423, 503):
        pass
    return status


def test_a_session_with_a_folder_leaves_nothing(shared_replica: Replica, shared_topics: Topics) -> None:
    visit = shared_replica.open(dataset="coffee")
    send(visit, "users/07.csv", "users", JULY)
    visit.create("users/08.csv", len(AUGUST), kind="users")
    assert visit.ask("DELETE", "").status_code == 204
    wait_until(
        lambda: not [key for key in shared_topics.states("uploads") if visit.client_id in key],
        seconds=60,
        otherwise="uploads are left behind",
    )


def test_a_broadcast_file_reaches_every_partition_whole(shared_replica: Replica, shared_topics: Topics) -> None:
    visit = shared_replica.open(dataset="coffee")
    send(visit, "stores.csv", "stores", STORES)
    found = shared_topics.records("stores", visit.client_id)
    assert sorted((record.partition, record.about.kind) for record in found) == sorted(
        (part, kind) for part in range(PARTITIONS) for kind in ("batch", "end")
    )
    assert Counter(shared_topics.rows("stores", visit.client_id)["store_id"].to_pylist()) == {1: 3, 2: 3}


def test_what_others_need_has_to_be_there_first(shared_replica: Replica) -> None:
    visit = shared_replica.open(dataset="flights")
    headers = {**TUS, "Upload-Length": "100", **described("itineraries.csv")}
    early = visit.ask("POST", "uploads", headers)
    assert early.status_code == 409
    assert "itineraries.csv needs airports" in early.json()["detail"]
    location = visit.create("airports-codepublic.csv", len(AIRPORTS))
    visit.patch(location, 0, AIRPORTS[:50])
    assert visit.ask("POST", "uploads", headers).status_code == 409
    visit.patch(location, 50, AIRPORTS[50:])
    assert visit.ask("POST", "uploads", headers).status_code == 201
