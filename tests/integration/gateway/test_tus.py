"""tus 1.0.0 as docs/http.md promises it."""

import base64
import gzip
import hashlib
import random
import shutil
import subprocess
import time
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import httpx
import pytest
from tusclient.client import TusClient

from cauce.settings import Settings
from infra.jars import Recipe, class_path, ensure_jars
from infra.java import find_java
from infra.processes import wait_until
from tests.integration.gateway.conftest import PARTITIONS
from tests.integration.gateway.reading import Topics, expected, ratings, same_rows
from tests.integration.gateway.replica import BYTES, TUS, Replica, Visit, described

pytestmark = pytest.mark.kafka


@pytest.fixture
def visit(shared_replica: Replica) -> Visit:
    return shared_replica.open()


def test_options_say_what_is_spoken(visit: Visit) -> None:
    answer = visit.ask("OPTIONS", "uploads")
    assert answer.status_code == 204
    assert answer.headers["Tus-Version"] == "1.0.0"
    assert answer.headers["Tus-Extension"] == "creation,creation-defer-length,checksum,termination,expiration"
    assert int(answer.headers["Tus-Max-Size"]) > 0
    assert answer.headers["Tus-Checksum-Algorithm"] == "sha1,sha256,crc32"


def test_a_file_in_pieces_cut_at_any_byte_is_the_file(visit: Visit, shared_topics: Topics) -> None:
    data = ratings(2_000)
    location = visit.create("ratings.csv", len(data))
    assert visit.offset(location) == 0
    cuts = sorted(random.Random(5).sample(range(1, len(data)), 12))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        answer = visit.patch(location, start, data[start:end])
        assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, str(end)), answer.text
        assert answer.headers["Tus-Resumable"] == "1.0.0"
        assert visit.offset(location) == end

    assert same_rows(shared_topics.rows("ratings", visit.client_id), expected("ratings", data))
    end_value = {"rows": 2_000, "rejected": {}, "sent": 2_000}
    assert shared_topics.ends("ratings", visit.client_id) == [(part, end_value) for part in range(PARTITIONS)]
    (upload,) = visit.show()["uploads"]
    assert (upload["state"], upload["rows"], upload["offset"]) == ("complete", 2_000, len(data))


def test_head_says_all_there_is_to_know(visit: Visit) -> None:
    location = visit.create("ratings.csv", 1234)
    answer = visit.ask("HEAD", location, TUS)
    assert answer.status_code == 200
    assert answer.headers["Upload-Offset"] == "0"
    assert answer.headers["Upload-Length"] == "1234"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Upload-Expires"].endswith("GMT")


def test_the_same_name_and_length_is_the_same_upload(visit: Visit) -> None:
    data = ratings(10)
    location = visit.create("ratings.csv", len(data))
    visit.patch(location, 0, data[:50])
    assert visit.create("ratings.csv", len(data)) == location
    assert visit.offset(location) == 50
    other = visit.ask("POST", "uploads", {**TUS, "Upload-Length": "7", **described("ratings.csv")})
    assert other.status_code == 409
    assert other.json()["type"] == "/docs#taken"


def test_the_kind_may_be_told_apart_from_the_name(visit: Visit) -> None:
    assert visit.create("my votes.txt", 10, kind="ratings").endswith("/ratings")
    assert visit.create("some/folder/credits.csv", 10).endswith("/credits")


def test_a_wrong_offset_is_told_the_right_one(visit: Visit) -> None:
    data = ratings(10)
    location = visit.create("ratings.csv", len(data))
    assert visit.patch(location, 0, data[:40]).status_code == 204
    answer = visit.patch(location, 17, data[17:])
    assert answer.status_code == 409
    assert answer.headers["Upload-Offset"] == "40"
    assert answer.json()["offset"] == 40
    assert visit.patch(location, 40, data[40:]).status_code == 204


def digests(data: bytes) -> dict[str, bytes]:
    return {
        "sha1": hashlib.sha1(data, usedforsecurity=False).digest(),
        "sha256": hashlib.sha256(data).digest(),
        "crc32": zlib.crc32(data).to_bytes(4, "big"),
    }


def checksum(algorithm: str, data: bytes) -> str:
    return f"{algorithm} {base64.b64encode(digests(data)[algorithm]).decode()}"


def test_a_checksum_is_taken_at_its_word(visit: Visit, shared_topics: Topics) -> None:
    data = ratings(300)
    location = visit.create("ratings.csv", len(data))
    third = len(data) // 3
    for number, algorithm in enumerate(("sha1", "sha256", "crc32")):
        start, end = number * third, len(data) if number == 2 else (number + 1) * third
        piece = data[start:end]
        wrong = visit.patch(location, start, piece, Upload_Checksum=checksum(algorithm, piece[:-1] + b"x"))
        assert wrong.status_code == 460
        assert visit.offset(location) == start
        right = visit.patch(location, start, piece, Upload_Checksum=checksum(algorithm, piece))
        assert right.status_code == 204, right.text
    assert same_rows(shared_topics.rows("ratings", visit.client_id), expected("ratings", data))


def test_a_checksum_over_too_much_is_refused(visit: Visit) -> None:
    location = visit.create("ratings.csv", 20 << 20)
    answer = visit.patch(location, 0, b"x" * ((8 << 20) + 1), Upload_Checksum=checksum("crc32", b"x"))
    assert answer.status_code == 413
    assert visit.offset(location) == 0


def test_an_upload_that_was_not_begun_is_taken_away_alone(visit: Visit) -> None:
    location = visit.create("ratings.csv", 100)
    assert visit.ask("DELETE", location, TUS).status_code == 204
    assert visit.ask("HEAD", location, TUS).status_code == 404
    assert visit.create("ratings.csv", 200) == location


def test_an_upload_that_was_begun_fails_and_the_session_goes_on(visit: Visit, shared_topics: Topics) -> None:
    data = ratings(10)
    location = visit.create("ratings.csv", len(data))
    assert visit.patch(location, 0, data[:60]).status_code == 204
    for _ in range(2):
        assert visit.ask("DELETE", location, TUS).status_code == 204
    (upload,) = visit.show()["uploads"]
    assert (upload["state"], upload["offset"]) == ("failed", 60)
    reason = upload["reason"]
    assert f"its client deleted it; 60 of {len(data)} bytes with 1 rows were taken before" in reason
    queries = {query["query"]: (query["state"], query["reason"]) for query in visit.show()["queries"]}
    failed = {"movies-q3": ("failed", f"{reason}; this query needs ratings")}
    assert queries == dict.fromkeys(queries, ("waiting", "")) | failed
    assert reason in visit.patch(location, 60, data[60:]).json()["detail"]
    again = visit.ask("POST", "uploads", {**TUS, "Upload-Length": str(len(data)), **described("ratings.csv")})
    assert (again.status_code, again.json()["type"]) == (409, "/docs#taken")
    assert "open another session" in again.json()["detail"]
    other = visit.create("credits.csv", 100)
    assert visit.patch(other, 0, b"cast,crew,id\n").status_code == 204


def test_a_query_that_is_answered_outlives_its_files_and_no_answer_comes_later(
    visit: Visit, shared_topics: Topics
) -> None:
    """The workers have all of the file, so they answer what they can. The outcome of a query does not change."""
    data = b"cast,crew,id\n[],[],1\n"
    location = visit.create("credits.csv", len(data))
    assert visit.patch(location, 0, data).status_code == 204
    movies = visit.create("movies_metadata.csv", 1000)
    shared_topics.answer(visit.client_id, "movies-q4", "actor,count\n")
    assert visit.ask("DELETE", location, TUS).status_code == 204
    assert visit.ask("GET", "answers/movies-q4").status_code == 200
    assert visit.ask("DELETE", movies, TUS).status_code == 204

    other = visit.create("ratings.csv", len(ratings(5)))
    assert visit.patch(other, 0, ratings(5)).status_code == 204
    assert visit.ask("DELETE", other, TUS).status_code == 204
    shared_topics.answer(visit.client_id, "movies-q3", "title,rating\n")
    late = visit.ask("GET", "answers/movies-q3")
    assert (late.status_code, late.json()["type"]) == (422, "/docs#no-answer")
    states = {query["query"]: query["state"] for query in visit.show()["queries"]}
    assert (states["movies-q3"], states["movies-q4"]) == ("failed", "done")


def test_an_upload_of_which_nothing_was_taken_is_replaced_by_another_file(visit: Visit) -> None:
    """Each file has an address of its own: what is sent to a former one, and comes late, is not taken for the new."""
    first = visit.create("ratings.csv", 100)
    second = visit.create("ratings (1).csv", 50, kind="ratings")
    bad, good = b"user,film\n1,2\n", ratings(5)
    third = visit.create("ratings.csv", len(bad))
    assert visit.patch(third, 0, bad).status_code == 422
    last = visit.create("ratings.csv", len(good))
    assert visit.create("ratings.csv", len(good)) == last, "a client that asks again"
    assert len({first, second, third, last}) == 4
    for former in (first, second, third):
        assert visit.patch(former, 0, good).status_code == 410
        assert visit.ask("HEAD", former, TUS).status_code == 410
        assert visit.ask("DELETE", former, TUS).status_code == 204
    assert visit.patch(last, 0, good).status_code == 204
    (upload,) = visit.show()["uploads"]
    assert (upload["state"], upload["name"], upload["rows"]) == ("complete", "ratings.csv", 5)


def test_a_length_that_comes_with_another_post_is_not_passed_over(visit: Visit) -> None:
    data = ratings(50)
    deferred = visit.ask("POST", "uploads", {**TUS, "Upload-Defer-Length": "1", **described("ratings.csv")})
    location = deferred.headers["Location"]
    assert visit.patch(location, 0, data[:300]).status_code == 204
    again = visit.ask("POST", "uploads", {**TUS, "Upload-Length": str(len(data)), **described("ratings.csv")})
    assert (again.status_code, "a PATCH that says Upload-Length" in again.json()["detail"]) == (409, True)
    assert visit.patch(location, 300, data[300:], Upload_Length=str(len(data))).status_code == 204
    assert visit.show()["uploads"][0]["state"] == "complete"


def test_a_pipe_is_not_taken_for_the_file_that_was_begun(visit: Visit) -> None:
    data = ratings(50)
    told = {"size": str(len(data)), "fingerprint": "a" * 64}
    assert visit.patch(visit.create("ratings.csv", len(data), **told), 0, data[:300]).status_code == 204
    piped = visit.ask("POST", "uploads", {**TUS, "Upload-Defer-Length": "1", **described("ratings.csv")})
    assert (piped.status_code, piped.json()["type"]) == (409, "/docs#taken")


def test_a_refused_header_that_came_in_two_pieces_leaves_nothing_behind(visit: Visit) -> None:
    bad, good = b"userId,movieIdx,rating,timestamp\n1,2,3,4\n", ratings(5)
    location = visit.create("ratings.csv", len(bad))

    def pieces() -> Iterator[bytes]:
        yield bad[:12]
        wait_until(lambda: visit.committed(location) == 12, seconds=30, otherwise="the first piece is not committed")
        yield bad[12:]

    assert visit.patch(location, 0, pieces()).status_code == 422
    assert visit.show()["uploads"][0]["offset"] == 0
    assert visit.patch(visit.create("ratings.csv", len(good)), 0, good).status_code == 204


def test_an_upload_that_failed_by_itself_is_gone_once_it_is_deleted(visit: Visit) -> None:
    data = ratings(50)
    location = visit.create("ratings.csv", len(data) + 7)
    assert visit.patch(location, 0, data).status_code == 204
    assert visit.patch(location, len(data), b'1,2,"3\n').status_code == 422
    assert visit.ask("DELETE", location, TUS).status_code == 204
    assert visit.ask("HEAD", location, TUS).status_code == 410
    assert "never closed" in visit.show()["uploads"][0]["reason"]


def test_what_never_was_takes_no_producer(shared_replica: Replica) -> None:
    """One with a long id was waited for until Kafka had refused it for 15 s, and held a place meanwhile."""
    visit = shared_replica.open(dataset="coffee")
    began_at = time.monotonic()
    for name in ("users." + "A" * 40_000, "users." + "a" * 16, "users.", "stores.", "stores"):
        assert visit.patch(f"{visit.path}/uploads/{name}", 0, b"x").status_code == 404
    assert time.monotonic() - began_at < 5


def test_what_a_client_says_of_its_file_tells_it_from_another(visit: Visit) -> None:
    data = ratings(10)
    one = {"size": str(len(data)), "mtime": "1700000000000", "fingerprint": "a" * 64}
    location = visit.create("ratings.csv", len(data), **one)
    assert visit.patch(location, 0, data[:60]).status_code == 204
    assert visit.create("moved.csv", len(data), kind="ratings", **{**one, "mtime": "5"}) == location
    edited = described("ratings.csv", **{**one, "fingerprint": "b" * 64})
    other = visit.ask("POST", "uploads", {**TUS, "Upload-Length": str(len(data)), **edited})
    assert (other.status_code, other.json()["type"], other.json()["offset"]) == (409, "/docs#taken", 60)
    assert "the fingerprint was" in other.json()["detail"]
    touched = described("ratings.csv", mtime="1700000000001")
    other = visit.ask("POST", "uploads", {**TUS, "Upload-Length": str(len(data)), **touched})
    assert "the mtime was 1700000000000 and is 1700000000001 now" in other.json()["detail"]


def test_a_separator_in_the_metadata_is_what_the_file_is_read_by(visit: Visit, shared_topics: Topics) -> None:
    data = ratings(300)
    location = visit.create("ratings.csv", len(data), separator=";")
    for start, end in ((0, 1_000), (1_000, len(data))):
        assert visit.patch(location, start, data.replace(b",", b";")[start:end]).status_code == 204
    assert same_rows(shared_topics.rows("ratings", visit.client_id), expected("ratings", data))
    headers = {**TUS, "Upload-Length": "9", **described("credits.csv", separator=":")}
    assert visit.ask("POST", "uploads", headers).status_code == 422


def deferred(visit: Visit) -> str:
    answer = visit.ask("POST", "uploads", {**TUS, "Upload-Defer-Length": "1", **described("ratings.csv")})
    assert answer.status_code == 201, answer.text
    return answer.headers["Location"]


@pytest.mark.parametrize("is_empty", [True, False], ids=["in an empty PATCH", "with the last bytes"])
def test_a_length_may_be_said_at_the_end(visit: Visit, shared_topics: Topics, is_empty: bool) -> None:
    data = ratings(300)[:-1]  # the last row lacks its line end, so only the length tells that it ends
    location = deferred(visit)
    head = visit.ask("HEAD", location, TUS)
    assert (head.headers["Upload-Defer-Length"], "Upload-Length" in head.headers) == ("1", False)
    cut = len(data) if is_empty else len(data) - 100
    assert visit.patch(location, 0, data[:cut]).status_code == 204
    (upload,) = visit.show()["uploads"]
    assert (upload["length"], upload["offset"], upload["state"]) == (None, cut, "open")
    assert deferred(visit) == location
    assert visit.patch(location, cut, b"", Upload_Length=str(cut - 1)).status_code == 400
    assert visit.patch(location, cut, b"", Upload_Length="999999999999999").status_code == 413
    assert shared_topics.ends("ratings", visit.client_id) == []
    assert visit.patch(location, cut, data[cut:], Upload_Length=str(len(data))).status_code == 204
    assert visit.ask("HEAD", location, TUS).headers["Upload-Length"] == str(len(data))
    assert same_rows(shared_topics.rows("ratings", visit.client_id), expected("ratings", data))
    assert {value["rows"] for _, value in shared_topics.ends("ratings", visit.client_id)} == {300}
    (upload,) = visit.show()["uploads"]
    assert (upload["length"], upload["state"], upload["rows"]) == (len(data), "complete", 300)


def test_a_length_is_said_once(visit: Visit) -> None:
    data = ratings(10)
    location = deferred(visit)
    assert visit.patch(location, 0, data[:60], Upload_Length=str(len(data))).status_code == 204
    assert visit.ask("HEAD", location, TUS).headers["Upload-Length"] == str(len(data))
    assert visit.patch(location, 60, data[60:], Upload_Length=str(len(data) + 1)).status_code == 400
    assert visit.patch(location, 60, data[60:], Upload_Length=str(len(data))).status_code == 204


def test_a_length_that_comes_with_a_checksum_ends_the_file(visit: Visit, shared_topics: Topics) -> None:
    data = ratings(10)
    location = deferred(visit)
    assert visit.patch(location, 0, data, Upload_Checksum=checksum("sha1", data)).status_code == 204
    last = {"Upload_Checksum": checksum("sha1", b""), "Upload_Length": str(len(data))}
    assert visit.patch(location, len(data), b"", **last).status_code == 204
    assert {value["rows"] for _, value in shared_topics.ends("ratings", visit.client_id)} == {10}


def test_packed_bytes_are_refused_and_a_packed_file_is_called_by_its_name(visit: Visit) -> None:
    packed = gzip.compress(ratings(100))
    location = visit.create("ratings.csv", len(packed))
    answer = visit.patch(location, 0, packed, Content_Encoding="gzip")
    assert (answer.status_code, "Content-Encoding: 'gzip'" in answer.json()["detail"]) == (415, True)
    answer = visit.patch(location, 0, packed)
    assert answer.status_code == 422
    assert "this is a gzip file, not CSV: unpack it first" in answer.json()["detail"]
    assert visit.offset(location) == 0


def test_a_proxy_may_turn_every_method_into_post(visit: Visit) -> None:
    data = ratings(10)
    location = visit.create("ratings.csv", len(data))
    override = {**BYTES, "X-HTTP-Method-Override": "PATCH", "Upload-Offset": "0"}
    answer = visit.ask("POST", location, override, data)
    assert answer.status_code == 204
    assert answer.headers["Upload-Offset"] == str(len(data))


def test_a_body_of_unknown_size_is_taken(visit: Visit, shared_topics: Topics) -> None:
    data = ratings(500)
    location = visit.create("ratings.csv", len(data))
    answer = visit.patch(location, 0, iter([data[:777], data[777:]]))
    assert answer.status_code == 204, answer.text
    assert same_rows(shared_topics.rows("ratings", visit.client_id), expected("ratings", data))


def test_a_body_that_goes_on_past_the_length_is_refused(visit: Visit) -> None:
    data = ratings(10)
    location = visit.create("ratings.csv", len(data))
    assert visit.patch(location, 0, data + b"more").status_code == 413
    assert visit.patch(location, 0, iter([data, b"more"])).status_code == 413
    assert visit.offset(location) in (0, len(data))  # what came before may have been committed


def test_tuspy_gets_through(visit: Visit, shared_topics: Topics) -> None:
    data = ratings(3_000)
    client = TusClient(f"{visit.url}{visit.path}/uploads", headers=visit.auth)
    uploader = client.uploader(
        file_stream=BytesIO(data), chunk_size=20_000, metadata={"filename": "ratings.csv"}, upload_checksum=True
    )
    uploader.upload()
    assert same_rows(shared_topics.rows("ratings", visit.client_id), expected("ratings", data))


NODE = shutil.which("node")
JAVASCRIPT = Path(__file__).parents[2] / "js"


@pytest.mark.skipif(
    NODE is None or not (JAVASCRIPT / "node_modules" / "tus-js-client").is_dir(),
    reason="no node, or no tus-js-client (`make setup` gets it by npm): ANOTHER LANGUAGE'S CLIENT WAS NOT TRIED",
)
def test_tus_js_client_gets_through_and_resumes(visit: Visit, shared_topics: Topics, tmp_path: Path) -> None:
    data = ratings(2_000)
    file = tmp_path / "ratings.csv"
    file.write_bytes(data)
    token = visit.opened["token"]
    command = [str(NODE), str(JAVASCRIPT / "upload.mjs"), f"{visit.url}{visit.path}/uploads", token, str(file)]
    sent = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert sent.returncode == 0, sent.stderr
    assert visit.offset(sent.stdout.strip().removeprefix(visit.url)) == len(data)
    assert same_rows(shared_topics.rows("ratings", visit.client_id), expected("ratings", data))


JAVAC = shutil.which("javac")
JAVA = Path(__file__).parents[2] / "java"
TUS_JAVA = Recipe(JAVA / "tus.pom.xml", JAVA / "jars.sha256", "tus-java-client 0.5.1", "tus-java-0.5.1")


@pytest.mark.skipif(JAVAC is None, reason="no javac (a JDK, not only a JRE): TUS-JAVA-CLIENT WAS NOT TRIED")
def test_the_plain_loop_of_tus_java_client_gets_through_and_resumes_at_once(
    visit: Visit, shared_topics: Topics, tmp_path: Path
) -> None:
    """HttpURLConnection knows no PATCH: the loop sends POST, with X-HTTP-Method-Override."""
    data = ratings(20_000)
    file = tmp_path / "ratings.csv"
    file.write_bytes(data)
    classes = f"{class_path(ensure_jars(Settings.load().cache, TUS_JAVA))}:{tmp_path}"
    compile_ = [str(JAVAC), "-cp", classes, "-d", str(tmp_path), str(JAVA / "Upload.java")]
    subprocess.run(compile_, check=True, timeout=60)
    endpoint, token = f"{visit.url}{visit.path}/uploads", visit.opened["token"]
    command = [find_java(), "-cp", classes, "Upload", endpoint, token, str(file), str(len(data) // 2)]
    sent = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert sent.returncode == 0, sent.stderr
    assert visit.offset(sent.stdout.strip().removeprefix(visit.url)) == len(data)
    assert same_rows(shared_topics.rows("ratings", visit.client_id), expected("ratings", data))


def test_tuspy_resumes(visit: Visit, shared_topics: Topics) -> None:
    data = ratings(1_000)
    client = TusClient(f"{visit.url}{visit.path}/uploads", headers=visit.auth)
    first = client.uploader(file_stream=BytesIO(data), chunk_size=5_000, metadata={"filename": "ratings.csv"})
    first.upload(stop_at=7_000)
    second = client.uploader(file_stream=BytesIO(data), chunk_size=5_000, url=first.url)
    second.upload()
    assert same_rows(shared_topics.rows("ratings", visit.client_id), expected("ratings", data))


def test_two_requests_for_one_upload_are_one_after_the_other(visit: Visit, shared_topics: Topics) -> None:
    """The later one wins: the former commits what it has and is told that it was overtaken."""
    data = ratings(1_000)
    location = visit.create("ratings.csv", len(data))
    half = len(data) // 2
    with httpx.Client(timeout=30) as client:

        def stuck() -> "object":
            yield data[:half]
            while visit.committed(location) < half:
                pass
            answer = visit.patch(location, half, data[half:])
            assert answer.status_code == 204, answer.text
            yield b""

        headers = {**visit.auth, **BYTES, "Upload-Offset": "0"}
        answer = client.patch(visit.url + location, headers=headers, content=stuck())  # type: ignore[arg-type]
    assert answer.status_code in (204, 423)
    assert visit.offset(location) == len(data)
    assert same_rows(shared_topics.rows("ratings", visit.client_id), expected("ratings", data))
