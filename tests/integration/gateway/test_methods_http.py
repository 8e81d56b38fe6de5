"""What HTTP asks of every path: HEAD, OPTIONS, Allow, no redirect; and of answers: ETag and If-Range."""

import httpx
import pytest

from cauce import http_models
from infra.processes import wait_until
from tests.integration.gateway.reading import Topics, ratings
from tests.integration.gateway.replica import TUS, Replica, Visit
from tests.integration.gateway.test_page_http import operator
from tests.integration.gateway.test_refusals_http import problem

pytestmark = pytest.mark.kafka


@pytest.fixture
def visit(shared_replica: Replica) -> Visit:
    return shared_replica.open()


@pytest.fixture
def answered(visit: Visit, shared_topics: Topics) -> Visit:
    """A session with an answer of twenty bytes, in two parts."""
    shared_topics.answer(visit.client_id, "movies-q1", "abcdefghij", "klmnopqrst")
    wait_until(
        lambda: visit.ask("GET", "answers/movies-q1").status_code == 200, seconds=60, otherwise="there is no answer"
    )
    return visit


@pytest.mark.parametrize(
    "path", ["/", "/page/main.js", "/datasets", "/livez", "/readyz", "/docs", "/openapi.json", "/operator/events"]
)
def test_head_of_a_page_has_the_headers_of_get(shared_replica: Replica, path: str) -> None:
    url = shared_replica.url + path
    head = httpx.head(url, headers=operator())
    with httpx.stream("GET", url, headers=operator()) as got:
        assert (head.status_code, head.content) == (200, b"")
        of_the_moment = {"date"}
        assert {*head.headers.items()} - {*got.headers.items()} <= {
            (name, head.headers[name]) for name in of_the_moment
        }
        assert head.headers.get("content-length") == got.headers.get("content-length")


def test_head_of_what_a_session_has(answered: Visit) -> None:
    for path in ("", "events", "answers/movies-q1"):
        head = answered.ask("HEAD", path, timeout=5)
        assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Length"] == "20"
    assert answered.ask("HEAD", "answers/movies-q9").status_code == 404
    assert httpx.head(answered.url + answered.path).status_code == 401


def test_heads_of_streams_leave_no_seat_taken(answered: Visit) -> None:
    """There are 16 event streams and 8 downloads of a session."""
    for _ in range(20):
        assert answered.ask("HEAD", "events").status_code == 200
        assert answered.ask("HEAD", "answers/movies-q1").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/sessions", "GET, HEAD, POST"),
        ("PUT", "/sessions/x", "DELETE, GET, HEAD"),
        ("GET", "/sessions/x/uploads", "POST, OPTIONS"),
        ("GET", "/sessions/x/uploads/y", "DELETE, HEAD, OPTIONS, PATCH"),
        ("POST", "/livez", "GET, HEAD"),
        ("BREW", "/", "GET, HEAD"),
    ],
)
def test_a_refused_method_is_told_all_that_are_allowed(
    shared_replica: Replica, method: str, path: str, allowed: str
) -> None:
    answer = httpx.request(method, shared_replica.url + path)
    assert allowed in problem(answer, 405, "method")["detail"]
    assert answer.headers["Allow"] == allowed


@pytest.mark.parametrize("path", ["uploads", "uploads/ratings", "uploads/"])
def test_options_want_no_token_and_tell_nothing_of_a_session(visit: Visit, path: str) -> None:
    for session in (visit.path, "/sessions/there-is-none"):
        answer = httpx.options(f"{visit.url}{session}/{path}", headers={"Tus-Resumable": "9.9"})
        assert answer.status_code == 204
        assert answer.headers["Tus-Version"] == "1.0.0"
        assert "creation" in answer.headers["Tus-Extension"]


def test_a_slash_at_the_end_is_the_same_path_and_no_redirect(visit: Visit) -> None:
    evil = {"Host": "evil.example"}
    assert httpx.get(f"{visit.url}/datasets/", headers=evil).status_code == 200
    created = visit.ask(
        "POST", "uploads/", {**TUS, **evil, "Upload-Length": "9", "Upload-Metadata": "filename cmF0aW5ncy5jc3Y="}
    )
    assert (created.status_code, created.headers["Location"]) == (201, f"{visit.path}/uploads/ratings")
    for path in ("/nowhere/", "//evil.example/", "//", "/sessions//"):
        answer = httpx.get(visit.url + path, headers=evil)
        assert answer.status_code in (200, 401, 404, 405)
        assert "evil" not in str(answer.headers)


def test_an_answer_that_is_at_hand_is_not_sent_again(answered: Visit) -> None:
    whole = answered.ask("GET", "answers/movies-q1")
    tag = whole.headers["ETag"]
    assert answered.ask("GET", "answers/movies-q1").headers["ETag"] == tag
    for known in (tag, f'"other", W/{tag}', "*"):
        answer = answered.ask("GET", "answers/movies-q1", {"If-None-Match": known})
        assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", tag)
    assert answered.ask("GET", "answers/movies-q1", {"If-None-Match": '"other"'}).status_code == 200


def test_the_rest_is_sent_only_of_the_same_bytes(answered: Visit) -> None:
    tag = answered.ask("GET", "answers/movies-q1").headers["ETag"]
    rest = answered.ask("GET", "answers/movies-q1", {"Range": "bytes=5-", "If-Range": tag})
    assert (rest.status_code, rest.content) == (206, b"fghijklmnopqrst")
    for other in ('"other"', f"W/{tag}", "Wed, 25 Jun 2014 16:00:00 GMT"):
        whole = answered.ask("GET", "answers/movies-q1", {"Range": "bytes=5-", "If-Range": other})
        assert (whole.status_code, whole.content) == (200, b"abcdefghijklmnopqrst")


def test_answers_are_what_the_models_say_to_the_byte(visit: Visit) -> None:
    """The models of openapi.json take what is answered and would write the same bytes."""
    data = ratings(20)
    visit.patch(visit.create("ratings.csv", len(data)), 0, data)
    visit.patch(visit.create("credits.csv", 10), 0, b"bad\nheader")
    shown: list[tuple[type[http_models.Model], httpx.Response]] = [
        (http_models.SessionState, visit.ask("GET", "")),
        (http_models.Ticket, visit.ask("POST", "answers/movies-q1/ticket")),
        (http_models.Datasets, visit.ask("GET", "/datasets")),
        (http_models.Overview, httpx.get(f"{visit.url}/operator", headers=operator())),
        (http_models.SessionList, httpx.get(f"{visit.url}/sessions", headers=operator())),
        (http_models.OpenedSession, httpx.post(f"{visit.url}/sessions", json={"dataset": "coffee"})),
        (http_models.OpenedSession, httpx.post(f"{visit.url}/sessions", json={"dataset": "coffee", "queries": ["q1"]})),
    ]
    for model, answer in shown:
        said = model.model_validate_json(answer.content, strict=True)
        assert said.model_dump_json(exclude_unset=True) == answer.text
    refused = visit.ask("GET", "answers/movies-q9")
    assert (
        http_models.ProblemDetails.model_validate_json(refused.content).model_dump_json(exclude_unset=True)
        == refused.text
    )
