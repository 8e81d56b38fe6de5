"""Bodies that are no HTTP, below what a client's library would send: a refusal says so, and what was kept stays."""

import socket

import pytest

from tests.integration.gateway.reading import ratings
from tests.integration.gateway.replica import BYTES, Replica, Visit

pytestmark = pytest.mark.kafka

DATA = ratings(20)
HALF = DATA[: len(DATA) // 2]
CHUNKED = {"Transfer-Encoding": "chunked"}


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def raw_patch(visit: Visit, location: str, fields: dict[str, str], body: bytes, cut: bool = False) -> str:
    """What a gateway answers to exactly these bytes, status line and all. `cut`: no more are sent, and that is said."""
    host, _, port = visit.url.removeprefix("http://").partition(":")
    lines = {"Host": host, **visit.auth, **BYTES, "Upload-Offset": "0", "Connection": "close", **fields}
    head = f"PATCH {location} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with socket.create_connection((host, int(port)), timeout=30) as wire:
        wire.sendall(head.encode() + b"\r\n" + body)
        if cut:
            wire.shutdown(socket.SHUT_WR)
        answer = b""
        while more := wire.recv(4096):
            answer += more
    return answer.decode()


@pytest.mark.parametrize(
    ("fields", "body", "cut", "kept"),
    [
        (CHUNKED, chunk(HALF) + b"no number\r\n", False, len(HALF)),
        (CHUNKED, b"%x\r\n" % len(HALF) + DATA + b"\r\n0\r\n\r\n", False, len(HALF)),
        (CHUNKED, chunk(DATA) + b"no number\r\n", False, len(DATA)),
        (CHUNKED, chunk(HALF), True, len(HALF)),
        ({"Content-Length": str(len(DATA))}, HALF, True, len(HALF)),
    ],
    ids=["a size that is none", "a longer chunk than it says", "behind all of the file", "cut off", "too short"],
)
def test_a_body_that_breaks_off_is_refused_and_head_says_what_was_kept(
    shared_replica: Replica, fields: dict[str, str], body: bytes, cut: bool, kept: int
) -> None:
    visit = shared_replica.open()
    location = visit.create("ratings.csv", len(DATA))
    answer = raw_patch(visit, location, fields, body, cut)
    assert answer.startswith("HTTP/1.1 400 "), answer
    assert f'"offset":{kept}' in answer
    assert visit.offset(location) == kept
    if kept < len(DATA):
        assert visit.patch(location, kept, DATA[kept:]).status_code == 204
    assert visit.show()["uploads"][0]["rows"] == 20


def test_a_checksum_that_is_to_come_behind_the_body_is_refused_by_name(shared_replica: Replica) -> None:
    visit = shared_replica.open()
    location = visit.create("ratings.csv", len(DATA))
    body = chunk(DATA) + b"0\r\nUpload-Checksum: sha1 d3Jvbmc=\r\n\r\n"
    answer = raw_patch(visit, location, {**CHUNKED, "Trailer": "X-Other, upload-checksum"}, body)
    assert answer.startswith("HTTP/1.1 400 "), answer
    assert "checksum-trailer" in answer
    assert visit.offset(location) == 0
