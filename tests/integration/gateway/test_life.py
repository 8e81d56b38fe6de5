"""Sessions from their opening to their end, answers and events, and the pages for operators."""

import json
import threading
import time
from typing import Any

import httpx
import pytest

from cauce.tokens import OPERATOR, Tokens
from infra.processes import wait_until
from tests.integration.gateway.conftest import PARTITIONS, NewReplica
from tests.integration.gateway.reading import Topics, ratings
from tests.integration.gateway.replica import BYTES, SECRET, Replica, Trickle, Visit

pytestmark = pytest.mark.kafka
TOO_SLOW = 'cauce_gateway_requests_total{method="PATCH",status="408"}'


def test_a_session_says_what_it_wants(shared_replica: Replica) -> None:
    opened = shared_replica.open(scope="all").opened
    assert opened["options"] == {"scope": "all", "model": "tiny-sentiment"}
    assert [file["filename"] for file in opened["files"]] == ["movies_metadata.csv", "ratings.csv", "credits.csv"]
    assert opened["queries"] == [f"movies-q{number}" for number in range(1, 6)]
    assert opened["expires_at"] > time.time() + 60


def test_the_operator_sees_all_sessions_and_nobody_else_does(shared_replica: Replica) -> None:
    visit, other = shared_replica.open(), shared_replica.open(dataset="coffee")
    data = ratings(100) + b"1,2,abc,4\n"
    visit.patch(visit.create("ratings.csv", len(data)), 0, data)
    token = Tokens(SECRET.encode()).issue(OPERATOR, time.time() + 60)

    def shown() -> dict[str, Any]:
        answer = httpx.get(f"{visit.url}/sessions", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200, answer.text
        return {session["client_id"]: session for session in answer.json()["sessions"]}

    def counts() -> tuple[int, int, int, int | None]:
        (sent,) = (file for file in shown()[visit.client_id]["files"] if file["kind"] == "ratings")
        return sent["rows"], sent["unused"], sent["sent"], sent["folded"]

    # what a replica knows of all sessions it reads from Kafka, a moment after the answer to a PATCH
    wait_until(
        lambda: counts() == (101, 1, 100, None), seconds=30, otherwise="nobody folds here, but 100 rows were sent"
    )
    assert (shown()[visit.client_id]["state"], shown()[other.client_id]["dataset"]) == ("uploading", "coffee")
    assert visit.ask("GET", "/sessions").status_code == 403
    assert httpx.get(f"{visit.url}/sessions").status_code == 401
    for path in (visit.path, "/sessions/operator"):
        assert httpx.get(visit.url + path, headers={"Authorization": f"Bearer {token}"}).status_code == 403


def test_delete_leaves_nothing(shared_replica: Replica, shared_topics: Topics) -> None:
    visit, other = shared_replica.open(), shared_replica.open()
    for each in (visit, other):
        each.patch(each.create("ratings.csv", 1000), 0, ratings(100)[:900])
    assert visit.ask("DELETE", "").status_code == 204
    assert visit.ask("DELETE", "").status_code == 204
    assert visit.ask("GET", "").status_code == 404
    wait_until(  # the sweep may have taken it over from the request, and be about to finish it
        lambda: visit.client_id not in shared_topics.states("sessions"),
        seconds=60,
        otherwise="the session is still there",
    )
    assert other.client_id in shared_topics.states("sessions")
    assert [key for key in shared_topics.states("uploads") if visit.client_id in key] == []
    for topic in ("movies", "ratings", "credits"):  # workers forward it behind what they made of these
        last = {record.partition: record.about.kind for record in shared_topics.records(topic, visit.client_id)}
        assert last == dict.fromkeys(range(PARTITIONS), "abort")
    assert other.show()["uploads"][0]["offset"] == 900


def test_delete_in_the_middle_of_an_upload_is_the_last_word(new_replica: NewReplica, topics: Topics) -> None:
    data = ratings(20_000)
    with new_replica() as first, new_replica() as second:
        visit = first.open()
        location = visit.create("ratings.csv", len(data))
        trickle = Trickle(visit, location, data)
        wait_until(lambda: visit.at(second).committed(location) > 0, seconds=60, otherwise="nothing was committed")
        assert visit.at(second).ask("DELETE", "").status_code == 204
        trickle.finish()
        assert trickle.status in (0, 404, 423)
        wait_until(  # the sweep may have taken it over from the request, and be about to finish it
            lambda: not topics.states("sessions"), seconds=60, otherwise="the session is still there"
        )
        last = {record.partition: record.about.kind for record in topics.records("ratings", visit.client_id)}
        assert last == dict.fromkeys(range(PARTITIONS), "abort")
        assert topics.states("uploads") == {}


def test_a_session_that_nobody_uses_ends(new_replica: NewReplica, topics: Topics) -> None:
    brief = {"CAUCE_SESSION_TTL_SECONDS": "5"}  # and long enough to begin an upload on a busy machine
    with new_replica(**brief) as first, new_replica(**brief):
        visit = first.open()
        visit.create("ratings.csv", 1000)
        wait_until(lambda: not topics.states("sessions"), seconds=60, otherwise="it lives on")
        assert topics.states("uploads") == {}
        assert visit.ask("GET", "").status_code == 404


def test_answers_come_in_parts_and_leave_whole(shared_replica: Replica, shared_topics: Topics) -> None:
    visit, other = shared_replica.open(), shared_replica.open()
    shared_topics.answer(other.client_id, "movies-q2", "not yours\n")
    shared_topics.answer(visit.client_id, "movies-q2", "country,budget\n", "Côte,1\n", "Perú,2\n")
    shared_topics.answer(visit.client_id, "movies-q3", "", state="failed", reason="a film weighs too much")
    answer = visit.ask("GET", "answers/movies-q2")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].startswith("text/csv")
    assert answer.content.decode() == "country,budget\nCôte,1\nPerú,2\n"
    failed = visit.ask("GET", "answers/movies-q3")
    assert failed.status_code == 422
    assert "weighs too much" in failed.json()["detail"]
    states = {query["query"]: query for query in visit.show()["queries"]}
    assert states["movies-q2"]["href"] == f"{visit.path}/answers/movies-q2"
    assert states["movies-q3"]["state"] == "failed"
    assert states["movies-q1"]["state"] == "waiting"


def test_an_answer_of_many_megabytes(shared_replica: Replica, shared_topics: Topics) -> None:
    visit = shared_replica.open()
    parts = [f"{number}" * 500_000 + "\n" for number in range(9)]
    shared_topics.answer(visit.client_id, "movies-q4", *parts)
    answer = visit.ask("GET", "answers/movies-q4")
    assert answer.text == "".join(parts)


@pytest.mark.parametrize(
    ("wanted", "start", "end"),
    [("bytes=0-3", 0, 4), ("bytes=5-", 5, 31), ("bytes=-4", 27, 31), ("bytes=14-21", 14, 22), ("bytes=20-99", 20, 31)],
)
def test_a_download_goes_on_where_it_was_cut(
    wanted: str, start: int, end: int, shared_replica: Replica, shared_topics: Topics
) -> None:
    visit = shared_replica.open()
    shared_topics.answer(visit.client_id, "movies-q2", "country,budget\n", "Côte,1\n", "Perú,2\n")
    whole = visit.ask("GET", "answers/movies-q2")
    assert (whole.status_code, whole.headers["Accept-Ranges"]) == (200, "bytes")
    assert whole.headers["Content-Length"] == "31"
    part = visit.ask("GET", "answers/movies-q2", {"Range": wanted})
    assert part.status_code == 206, part.text
    assert part.content == whole.content[start:end]
    assert part.headers["Content-Range"] == f"bytes {start}-{end - 1}/31"


def test_a_range_that_is_not_there_is_refused_and_a_strange_one_ignored(
    shared_replica: Replica, shared_topics: Topics
) -> None:
    visit = shared_replica.open()
    shared_topics.answer(visit.client_id, "movies-q2", "country,budget\n")
    beyond = visit.ask("GET", "answers/movies-q2", {"Range": "bytes=15-"})
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, "bytes */15")
    for strange in ("bytes=a-b", "lines=1-2", "bytes=0-1,4-5", "bytes=-"):
        assert visit.ask("GET", "answers/movies-q2", {"Range": strange}).text == "country,budget\n"


def test_events_tell_what_is_and_what_changes(shared_replica: Replica, shared_topics: Topics) -> None:
    visit = shared_replica.open()
    data = ratings(100) + b"1,2,abc,4\n"
    seen: list[tuple[str, dict[str, Any]]] = []
    with httpx.stream("GET", f"{visit.url}{visit.path}/events", headers=visit.auth, timeout=60) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        lines = stream.iter_lines()

        def read_until(event: str, **facts: object) -> None:
            name = ""
            for line in lines:
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    seen.append((name, json.loads(value)))
                    if name == event and facts.items() <= seen[-1][1].items():
                        return
            raise AssertionError(f"the stream ended without {event} {facts}: {seen}")

        read_until("query", query="movies-q5", state="waiting")
        assert seen[0][0] == "session"
        location = visit.create("ratings.csv", len(data))
        read_until("upload", state="open", offset=0)
        visit.patch(location, 0, data)
        read_until("upload", state="complete", rows=101, unused=1)
        shared_topics.answer(visit.client_id, "movies-q1", "id,title,genres\n")
        read_until("query", query="movies-q1", state="done")
        visit.ask("DELETE", "")
        assert [line for line in lines if line.startswith("event")] in ([], ["event: session"])  # and then it ends


def test_pages_for_operators(shared_replica: Replica) -> None:
    assert shared_replica.page("/livez") == (200, "alive")
    assert shared_replica.page("/readyz") == (200, "ready")
    assert "cauce_gateway_sessions" in shared_replica.page("/metrics")[1]
    paths = json.loads(shared_replica.page("/openapi.json")[1])["paths"]
    status, docs = shared_replica.page("/docs")
    assert status == 200
    assert all(path in docs for path in paths)
    assert "https://" not in docs


def test_over_the_limit_of_live_uploads_a_client_is_told_to_wait(new_replica: NewReplica, topics: Topics) -> None:
    with new_replica(CAUCE_LIVE_UPLOADS="1", CAUCE_YOUNG_SESSION_SECONDS="0.01") as replica:
        data = ratings(1000)
        busy, waiting = replica.open(), replica.open()
        location = busy.create("ratings.csv", len(data))
        done = threading.Event()

        def slow() -> Any:
            yield data[:100]
            assert done.wait(60)
            yield data[100:]

        def send(visit: Visit) -> None:
            assert visit.patch(location, 0, slow()).status_code == 204

        thread = threading.Thread(target=send, args=[busy])
        thread.start()
        wait_until(lambda: busy.committed(location) == 100, seconds=60, otherwise="nothing was committed")
        answer = waiting.ask(
            "POST", "uploads", {**BYTES, "Upload-Length": "10", "Upload-Metadata": "filename cmF0aW5ncy5jc3Y="}
        )
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) >= 1
        # Whoever waits for a turn keeps the session: the other gateways hear of it.
        signs = [message for message in topics.raw("uploads") if waiting.client_id in message.key().decode()]
        assert [message.value() for message in signs] == [None]
        done.set()
        thread.join(60)
        assert waiting.create("ratings.csv", 10)  # the idle producer made room


def test_over_the_limit_of_sessions_a_client_is_told_to_wait(new_replica: NewReplica) -> None:
    with new_replica(CAUCE_MAX_SESSIONS="1") as replica:
        visit = replica.open()
        assert visit.show()
        answer = httpx.post(f"{replica.url}/sessions", json={"dataset": "movies"})
        assert answer.status_code == 503
        assert "Retry-After" in answer.headers


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"CAUCE_SECRET": "short"}, "CAUCE_SECRET"),
        ({"CAUCE_GATEWAY_PORTS": "1"}, "did you mean CAUCE_GATEWAY_PORT"),
        ({"CAUCE_PARTITIONS": "5"}, "partitions, wanted are 5"),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_exit_code_2(
    shared_replica: Replica, shared_prefix: str, new_replica: NewReplica, variables: dict[str, str], says: str
) -> None:
    replica = new_replica(CAUCE_TOPIC_PREFIX=shared_prefix, **variables)
    replica.start()
    assert replica.wait_for_end() == 2
    said = replica.log_file.read_text()
    assert says in said
    assert "Traceback" not in said


def test_a_slow_client_is_ended_and_keeps_what_it_sent(new_replica: NewReplica) -> None:
    with new_replica(CAUCE_UPLOAD_FLOOR_BYTES="10000000") as replica:
        data = ratings(1000)
        visit = replica.open()
        location = visit.create("ratings.csv", len(data))

        def pieces() -> Any:
            yield data[:1000]
            wait_until(lambda: TOO_SLOW in replica.page("/metrics")[1], seconds=90, otherwise="it waits for ever")

        try:
            status = visit.patch(location, 0, pieces()).status_code
        except httpx.TransportError:
            status = 0
        assert status in (0, 408)
        assert visit.offset(location) == 1000
