"""tus 1.0.0 as docs/http.md promises it."""

import base64
import hashlib
import random
import shutil
import subprocess
import zlib
from io import BytesIO
from pathlib import Path

import httpx
import pytest
from tusclient.client import TusClient

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
    assert answer.headers["Tus-Extension"] == "creation,checksum,termination,expiration"
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


def test_an_upload_that_was_begun_takes_the_session_with_it(visit: Visit, shared_topics: Topics) -> None:
    location = visit.create("ratings.csv", 100)
    visit.patch(location, 0, ratings(10)[:60])
    assert visit.ask("DELETE", location, TUS).status_code == 204
    assert visit.ask("GET", "").status_code == 404
    assert not [key for key in shared_topics.states("uploads") if key.startswith(visit.client_id)]


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
