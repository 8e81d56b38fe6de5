"""Bad input gets an error that says what, where and what to do; and harms nobody else."""

import re
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from queries.datasets import DATASETS
from queries.model import File
from tests.integration.gateway.reading import ratings
from tests.integration.gateway.replica import BYTES, TUS, Replica, Visit, described

pytestmark = pytest.mark.kafka


def header(file: File, *columns: str) -> bytes:
    return (file.separator.join(columns or file.columns) + "\n").encode()


@dataclass(frozen=True, slots=True)
class Begun:
    visit: Visit
    file: File

    def create(self, length: int) -> str:
        name = f"{self.file.kind}/1.csv" if self.file.is_folder else self.file.filename
        return self.visit.create(name, length, kind=self.file.kind)

    def refusal(self, data: bytes) -> dict[str, Any]:
        """Of a file with these bytes, of which nothing may be left but the reason."""
        body = problem(self.visit.patch(self.create(len(data)), 0, data), 422, "bad-file")
        upload = self.uploaded()
        assert (upload["state"], upload["rows"]) == ("failed", 0)
        assert upload["reason"] in body["detail"]
        return body

    def uploaded(self) -> dict[str, Any]:
        (upload,) = (each for each in self.visit.show()["uploads"] if each["kind"] == self.file.kind)
        return dict(upload)

    def failed_queries(self) -> set[str]:
        return {query["query"] for query in self.visit.show()["queries"] if query["state"] == "failed"}

    def queries_that_need_it(self) -> set[str]:
        queries = ((dataset, query) for dataset in DATASETS.values() for query in dataset.queries)
        return {query.name for dataset, query in queries if self.file.kind in dataset.uploaded_for(query)}


@pytest.fixture
def visit(shared_replica: Replica) -> Visit:
    return shared_replica.open()


def problem(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """Every error has the same form."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["type"] == f"/docs#{kind}"
    assert body["status"] == status
    assert body["title"]
    assert body["detail"]
    return body


@pytest.mark.parametrize(
    ("wish", "status", "kind", "says"),
    [
        ({"dataset": "films"}, 422, "bad-value", "known are .*movies"),
        ({}, 422, "bad-value", "dataset"),
        ({"dataset": "movies", "scope": "eu"}, 422, "bad-value", "scope.*'us' or 'all'"),
        ({"dataset": "movies", "model": "../../etc/passwd"}, 422, "bad-value", "model"),
        ({"dataset": "movies", "modle": "x"}, 422, "bad-value", "modle"),
        ({"dataset": ["movies"]}, 422, "bad-value", "dataset"),
        ([], 422, "bad-value", "body"),
    ],
)
def test_a_wish_that_cannot_be_met(shared_replica: Replica, wish: object, status: int, kind: str, says: str) -> None:
    body = problem(httpx.post(f"{shared_replica.url}/sessions", json=wish), status, kind)
    assert re.search(says, body["detail"]), body


def test_a_body_that_is_not_json(shared_replica: Replica) -> None:
    headers = {"Content-Type": "application/json"}
    problem(httpx.post(f"{shared_replica.url}/sessions", content=b"{", headers=headers), 400, "bad-request")


def test_a_body_that_is_too_big(shared_replica: Replica) -> None:
    headers = {"Content-Type": "application/json"}
    content = b'{"dataset": "' + b"m" * 70_000 + b'"}'
    problem(httpx.post(f"{shared_replica.url}/sessions", content=content, headers=headers), 413, "too-big")


def test_unknown_paths_and_methods(shared_replica: Replica) -> None:
    problem(httpx.get(f"{shared_replica.url}/nowhere"), 404, "not-found")
    body = problem(httpx.put(f"{shared_replica.url}/sessions"), 405, "method")
    assert "POST" in body["detail"]


def test_tokens_are_asked_for(shared_replica: Replica, visit: Visit) -> None:
    url = shared_replica.url + visit.path
    other = shared_replica.open()
    answer = httpx.get(url)
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    problem(answer, 401, "no-token")
    problem(httpx.get(url, headers={"Authorization": "Basic abc"}), 401, "no-token")
    right = visit.auth["Authorization"]
    forged = right[:-1] + ("1" if right.endswith("0") else "0")
    problem(httpx.get(url, headers={"Authorization": forged}), 401, "no-token")
    problem(httpx.get(url, headers=other.auth), 403, "not-yours")
    for method, path in [("POST", "uploads"), ("DELETE", ""), ("GET", "events"), ("GET", "answers/movies-q1")]:
        assert httpx.request(method, f"{url}/{path}".rstrip("/")).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status", "kind", "says"),
    [
        ({"Upload-Length": "10"}, 412, "tus-version", "Tus-Resumable: 1.0.0"),
        ({"Tus-Resumable": "0.2.2", "Upload-Length": "10"}, 412, "tus-version", "1.0.0"),
        ({**TUS}, 400, "bad-request", "Upload-Length"),
        ({**TUS, "Upload-Length": "-1"}, 400, "bad-request", "Upload-Length"),
        ({**TUS, "Upload-Length": "ten"}, 400, "bad-request", "'ten'"),
        ({**TUS, "Upload-Defer-Length": "2"}, 400, "bad-request", "Upload-Defer-Length"),
        ({**TUS, "Upload-Defer-Length": "1", "Upload-Length": "10"}, 400, "bad-request", "Upload-Defer-Length"),
        ({**TUS, "Upload-Length": "10", "Content-Encoding": "gzip"}, 415, "media-type", "Content-Encoding"),
        ({**TUS, "Upload-Length": "10", **described("ratings.csv", size="x")}, 400, "bad-request", "size"),
        ({**TUS, "Upload-Length": "999999999999999"}, 413, "too-big", "at most"),
        ({**TUS, "Upload-Length": "9" * 19}, 413, "too-big", "at most"),
        ({**TUS, "Upload-Length": "9" * 5000}, 400, "bad-request", "Upload-Length"),
        ({**TUS, "Upload-Length": "10", "Upload-Concat": "partial"}, 400, "bad-request", "parallelUploads: 1"),
        ({**TUS, "Upload-Length": "10"}, 400, "bad-request", "filename"),
        ({**TUS, "Upload-Length": "10", "Upload-Metadata": "filename ???"}, 400, "bad-request", "base64"),
        ({**TUS, "Upload-Length": "10", "Upload-Metadata": "filename eA==,filename eQ=="}, 400, "bad-request", "twice"),
        ({**TUS, "Upload-Length": "10", "Upload-Metadata": "file\tname eA=="}, 400, "bad-request", "no key"),
        ({**TUS, "Upload-Length": "10", **described("films.csv")}, 422, "bad-value", "ratings.csv"),
        ({**TUS, "Upload-Length": "10", **described("x", kind="votes")}, 422, "bad-value", "votes.*ratings"),
        ({**TUS, "Upload-Length": "10", **described("x", kind="overviews")}, 422, "bad-value", "overviews"),
        ({**TUS, "Upload-Length": "0", **described("ratings.csv")}, 422, "bad-file", "empty"),
    ],
)
def test_an_upload_that_cannot_be_made(
    visit: Visit, headers: dict[str, str], status: int, kind: str, says: str
) -> None:
    answer = visit.ask("POST", "uploads", headers)
    assert re.search(says, problem(answer, status, kind)["detail"])
    assert answer.headers["Tus-Resumable"] == "1.0.0"


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({"Content-Type": "text/csv"}, 415, "media-type"),
        ({"Upload-Offset": ""}, 400, "bad-request"),
        ({"Upload-Offset": "x"}, 400, "bad-request"),
        ({"Upload-Offset": "5"}, 409, "wrong-offset"),
        ({"Upload-Checksum": "md5 AAAA"}, 400, "bad-request"),
        ({"Upload-Checksum": "sha1 ?"}, 400, "bad-request"),
        ({"Tus-Resumable": "2"}, 412, "tus-version"),
    ],
)
def test_a_piece_that_cannot_be_taken(visit: Visit, headers: dict[str, str], status: int, kind: str) -> None:
    location = visit.create("ratings.csv", 100)
    problem(visit.ask("PATCH", location, {**BYTES, "Upload-Offset": "0", **headers}, b"user"), status, kind)
    assert visit.offset(location) == 0


def test_an_upload_that_is_not_there(visit: Visit) -> None:
    for upload in ("ratings", "overviews", "nothing"):
        path = f"uploads/{upload}"
        assert visit.ask("HEAD", path, TUS).status_code == 404
        problem(visit.ask("PATCH", path, {**BYTES, "Upload-Offset": "0"}, b"x"), 404, "not-found")
        # a kind of file that the session knows has none of it: as if it had been deleted before
        assert visit.ask("DELETE", path, TUS).status_code == (204 if upload == "ratings" else 404)


def test_a_file_without_a_column_says_which_and_can_be_replaced(visit: Visit) -> None:
    data = b"userId,movieId,timestamp\n1,2,3\n"
    location = visit.create("ratings.csv", len(data))
    body = problem(visit.patch(location, 0, data), 422, "bad-file")
    assert "rating" in body["detail"]
    assert (body["file"], body["line"]) == ("ratings.csv", 1)
    problem(visit.patch(location, 0, data), 422, "bad-file")
    shown = visit.show()
    assert (shown["uploads"][0]["state"], shown["uploads"][0]["offset"]) == ("failed", 0)
    states = {query["query"]: query["state"] for query in shown["queries"]}
    assert "failed" in states.values()
    failed = next(name for name, state in states.items() if state == "failed")
    problem(visit.ask("GET", f"answers/{failed}"), 422, "no-answer")

    assert visit.ask("DELETE", location, TUS).status_code == 204
    good = ratings(5)
    assert visit.patch(visit.create("ratings.csv", len(good)), 0, good).status_code == 204


FILES = [(dataset.name, file) for dataset in DATASETS.values() for file in dataset.files]


@pytest.fixture(params=FILES, ids=[f"{dataset}-{file.kind}" for dataset, file in FILES])
def begun(request: pytest.FixtureRequest, shared_replica: Replica) -> Begun:
    """A session that is ready for a file of this kind: what it needs first is there."""
    dataset, file = request.param
    visit = shared_replica.open(dataset=dataset)
    for kind in file.after:
        needed = next(each for _, each in FILES if each.kind == kind)
        head = header(needed)
        assert visit.patch(visit.create(needed.filename, len(head)), 0, head).status_code == 204
    return Begun(visit, file)


def test_no_file_is_taken_with_a_column_misspelt(begun: Begun) -> None:
    *others, last = begun.file.columns
    data = header(begun.file, *others, f"{last}x")
    detail = begun.refusal(data)["detail"]
    assert f"no column {last!r}" in detail
    assert f"the nearest is '{last}x'" in detail
    assert begun.failed_queries() == begun.queries_that_need_it()


def test_no_file_is_taken_with_a_column_twice(begun: Begun) -> None:
    first = begun.file.columns[0]
    assert f"2 columns {first!r}" in begun.refusal(header(begun.file, *begun.file.columns, first))["detail"]


def test_no_file_is_taken_with_a_quote_that_is_never_closed(begun: Begun) -> None:
    body = begun.refusal(header(begun.file) + b'"' + b"x" * 100)
    assert "never closed" in body["detail"]
    assert body["line"] == 2


def test_no_file_is_taken_with_an_endless_row(begun: Begun) -> None:
    assert "longer than 4 MiB" in begun.refusal(header(begun.file) + b'"' + b"x" * (5 << 20))["detail"]


def test_no_file_is_taken_that_is_not_csv_at_all_and_others_notice_nothing(
    begun: Begun, shared_replica: Replica
) -> None:
    begun.refusal(bytes(range(256)) * 100)
    other, good = shared_replica.open(), ratings(5)
    assert other.patch(other.create("ratings.csv", len(good)), 0, good).status_code == 204


def test_rows_of_another_width_or_encoding_are_counted_in_every_file(begun: Begun) -> None:
    """And an empty line is no row."""
    width = len(begun.file.columns)
    separator = begun.file.separator.encode()
    data = header(begun.file) + separator.join([b"x"] * (width + 1)) + b"\n\n" + separator.join([b"\xff"] * width)
    location = begun.create(len(data))
    assert begun.visit.patch(location, 0, data).status_code == 204
    upload = begun.uploaded()
    assert (upload["state"], upload["rows"]) == ("complete", 2)
    assert upload["rejected"] == {"wrong number of fields": 1, "not UTF-8": 1}


def test_rows_that_cannot_be_used_are_counted(visit: Visit) -> None:
    data = b"userId,movieId,rating,timestamp\n1,2,3.0,4\n1,2,,4\n1,2\n"
    location = visit.create("ratings.csv", len(data))
    assert visit.patch(location, 0, data).status_code == 204
    (upload,) = visit.show()["uploads"]
    assert upload["rows"] == 3
    assert sum(upload["rejected"].values()) == 2


def test_values_that_cannot_be_read_are_shown_as_rows_that_no_query_uses(visit: Visit) -> None:
    rows = (b"1,2,3.0,4", b"1,2,abc,4", b"1,2,NaN,4", b'1,2,"2,5",4', b"1,2,,4", b"1,2,4.5,4")
    data = b"userId,movieId,rating,timestamp\n" + b"\n".join(rows) + b"\n"
    assert visit.patch(visit.create("ratings.csv", len(data)), 0, data).status_code == 204
    shown = visit.show()
    (upload,) = shown["uploads"]
    assert (upload["rows"], sum(upload["rejected"].values()), upload["unused"]) == (6, 1, 3)
    (kind,) = (file for file in shown["files"] if file["kind"] == "ratings")
    assert (kind["rows"], sum(kind["rejected"].values()), kind["unused"], kind["sent"]) == (6, 1, 3, 2)


def test_answers_that_are_not_there(visit: Visit) -> None:
    body = problem(visit.ask("GET", "answers/movies-q99"), 404, "not-found")
    assert "movies-q1" in body["detail"]
    answer = visit.ask("GET", "answers/movies-q1")
    problem(answer, 409, "not-ready")
    assert int(answer.headers["Retry-After"]) >= 1
