"""A session asks for some queries: what a gateway says of it, takes for it and refuses, at any replica."""

import re
from typing import Any

import httpx
import pytest

from infra.processes import wait_until
from tests.integration.gateway.conftest import NewReplica
from tests.integration.gateway.reading import Topics, ratings
from tests.integration.gateway.replica import TUS, Replica, described
from tests.integration.gateway.test_refusals_http import problem

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("names", [["q2", "movies-q1"], ["movies-q1", "movies-q2"]])
def test_names_may_be_long_or_short_and_in_any_order(names: list[str], shared_replica: Replica) -> None:
    visit = shared_replica.open(queries=names)
    assert visit.opened["queries"] == ["movies-q1", "movies-q2"]
    assert visit.opened["options"]["queries"] == ["movies-q1", "movies-q2"]
    assert [file["kind"] for file in visit.opened["files"]] == ["movies"]
    assert [file["kind"] for file in visit.opened["not_read"]] == ["ratings", "credits"]
    shown = visit.show()
    assert shown["options"] == visit.opened["options"]
    assert [query["query"] for query in shown["queries"]] == ["movies-q1", "movies-q2"]
    assert [file["kind"] for file in shown["files"]] == ["movies"]


def test_whoever_names_all_of_them_asks_for_the_same_as_who_names_none(shared_replica: Replica) -> None:
    every = [f"q{number}" for number in range(5, 0, -1)]
    named, unnamed = shared_replica.open(queries=every).opened, shared_replica.open().opened
    for field in ("queries", "options", "files", "not_read"):
        assert named[field] == unnamed[field]


@pytest.mark.parametrize(
    ("queries", "says"),
    [
        ([], "empty list; name some of movies-q1, .* or leave it out to ask for all"),
        (["movies-q9"], "'movies-q9' is no query of movies; the nearest is movies-q"),
        (["q22"], "'q22' is no query of movies; the nearest is movies-q2"),
        (["flights-q1"], "'flights-q1' is a query of flights, not of movies; the nearest is movies-q1"),
        (["q1", "movies-q1"], "movies-q1 is named 2 times; name it once"),
        ([""], "'' is no query of movies"),
        (["x" * 100_00], "is no query of movies"),
        (["q1"] * 101, "queries: .*at most 100"),
        ("q1", "queries: .*list"),
        ([1], "queries.0: .*string"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_with_a_sentence(queries: Any, says: str, shared_replica: Replica) -> None:
    answer = httpx.post(f"{shared_replica.url}/sessions", json={"dataset": "movies", "queries": queries})
    detail = problem(answer, 422, "bad-value")["detail"]
    assert re.search(says, detail), detail
    assert len(detail) < 400


def test_a_file_that_no_query_reads_is_not_taken_and_its_absence_holds_nothing_up(
    shared_replica: Replica, shared_topics: Topics
) -> None:
    visit = shared_replica.open(queries=["movies-q3"])
    headers = {**TUS, "Upload-Length": "100"}
    body = problem(visit.ask("POST", "uploads", {**headers, **described("credits.csv")}), 409, "not-read")
    assert "none of the queries of this session (movies-q3) reads credits" in body["detail"]
    assert "asks for movies-q4" in body["detail"]
    assert visit.ask("POST", "uploads", {**headers, **described("others.csv")}).status_code == 422
    data = ratings(100)
    assert visit.patch(visit.create("ratings.csv", len(data)), 0, data).status_code == 204
    records = shared_topics.records("ratings", visit.client_id)
    assert records
    assert {tuple(record.about.options["queries"]) for record in records} == {("movies-q3",)}


def test_a_folder_that_no_query_reads_is_not_completed(shared_replica: Replica) -> None:
    visit = shared_replica.open(dataset="coffee", queries=["q1"])
    body = problem(visit.ask("POST", "folders/users/complete"), 409, "not-read")
    assert "asks for coffee-q4" in body["detail"]
    problem(visit.ask("POST", "folders/stores/complete"), 409, "not-read")
    problem(visit.ask("POST", "folders/nonsense/complete"), 404, "not-found")


def test_a_query_that_was_not_asked_for_has_no_answer(shared_replica: Replica) -> None:
    visit = shared_replica.open(queries=["q1"])
    for path in ("answers/movies-q2", "answers/movies-q9"):
        detail = problem(visit.ask("GET", path), 404, "not-found")["detail"]
        assert ("did not ask for movies-q2; it asked for movies-q1" in detail) == path.endswith("q2")
    assert visit.ask("GET", "answers/movies-q1").status_code == 409


def test_a_reference_file_is_waited_for_only_where_a_query_reads_it(shared_replica: Replica) -> None:
    headers = {**TUS, "Upload-Length": "100", **described("itineraries.csv")}
    far, fares = (shared_replica.open(dataset="flights", queries=[name]) for name in ("q2", "q4"))
    assert problem(far.ask("POST", "uploads", headers), 409, "too-early")["missing"] == "airports"
    assert fares.ask("POST", "uploads", headers).status_code == 201
    assert [file["after"] for file in fares.opened["files"]] == [[]]


def test_the_choice_holds_at_another_gateway_and_after_the_first_is_killed(new_replica: NewReplica) -> None:
    with new_replica() as first, new_replica() as second:
        visit = first.open(queries=["q3"])
        data = ratings(1000)
        location = visit.create("ratings.csv", len(data))
        assert visit.patch(location, 0, data[:3000]).status_code == 204
        first.kill()
        there = visit.at(second)
        assert [query["query"] for query in there.show()["queries"]] == ["movies-q3"]
        assert there.patch(location, there.offset(location), data[3000:]).status_code == 204
        problem(
            there.ask("POST", "uploads", {**TUS, "Upload-Length": "9", **described("credits.csv")}), 409, "not-read"
        )


def test_a_full_house_says_so_before_the_first_byte(new_replica: NewReplica) -> None:
    with new_replica(CAUCE_MAX_SESSIONS="2") as replica:
        replica.open(queries=["q1"])
        last = replica.open(queries=["q2"])
        full = "cauce_gateway_sessions 2.0"
        wait_until(lambda: full in replica.page("/metrics")[1], seconds=30, otherwise="it counts what it has read")
        answer = httpx.post(f"{replica.url}/sessions", json={"dataset": "movies", "queries": ["q1"]})
        assert "CAUCE_MAX_SESSIONS" in problem(answer, 503, "busy")["detail"]
        assert int(answer.headers["Retry-After"]) >= 1
        assert last.ask("DELETE", "").status_code == 204
        assert replica.open(queries=["q1"]).opened["queries"] == ["movies-q1"]
