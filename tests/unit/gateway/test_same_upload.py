"""When two files are the same, as far as their client says."""

from typing import Any

import pytest
from starlette.datastructures import Headers

from cauce.messages import ClientId, Upload, UploadId, from_json, to_json
from gateway.problems import Problem
from gateway.tus import Facts, length, metadata, refuse_encoded
from gateway.uploads import difference, may_replace, with_length
from queries.datasets import DATASETS
from tests.integration.gateway.replica import described

RATINGS = DATASETS["movies"].file("ratings")
USERS = DATASETS["coffee"].file("users")
ONE, OTHER = "a" * 64, "b" * 64


def upload(**facts: Any) -> Upload:
    return Upload(
        **{"client_id": ClientId("a"), "upload_id": UploadId("x"), "file": "x", "name": "n", "length": 9, **facts}
    )


@pytest.mark.parametrize(
    ("before", "now", "differs"),
    [
        ({}, {}, ""),
        ({}, {"name": "m"}, "the name was 'n' and is 'm' now"),
        ({}, {"length": 8}, "the length was 9 and is 8 now"),
        ({"mtime": 1}, {}, ""),
        ({"mtime": 1}, {"mtime": 1}, ""),
        ({"mtime": 1}, {"mtime": 2}, "the mtime was 1 and is 2 now"),
        ({"mtime": 1}, {"mtime": 1, "length": 8}, "the length was 9 and is 8 now"),
        ({"size": 9, "fingerprint": ONE}, {"size": 9, "fingerprint": ONE, "name": "m", "mtime": 5}, ""),
        ({"size": 9, "fingerprint": ONE, "mtime": 1}, {"size": 9, "fingerprint": ONE, "mtime": 2, "length": None}, ""),
        ({"size": 9, "fingerprint": ONE}, {"size": 8, "fingerprint": ONE}, "the size was 9 and is 8 now"),
        ({"size": 9, "fingerprint": ONE}, {"size": 9, "fingerprint": OTHER}, f"the fingerprint was '{ONE}'"),
        ({"size": 9, "fingerprint": ONE, "mtime": 1}, {"size": 9, "mtime": 2}, "the mtime was 1 and is 2 now"),
        ({"fingerprint": ONE}, {"size": 9, "fingerprint": OTHER}, ""),
        ({"length": None}, {}, "it was begun without a length"),
        ({"length": None}, {"length": None}, ""),
        ({"size": 9, "fingerprint": ONE}, {"length": None}, "it comes without a fingerprint and a length now"),
        ({}, {"separator": ";"}, "the separator was '' and is ';' now"),
    ],
)
def test_what_tells_two_files_apart(before: dict[str, Any], now: dict[str, Any], differs: str) -> None:
    found = difference(upload(**before), upload(**now))
    assert (found.startswith(differs), bool(found)) == (True, bool(differs))


def test_only_what_nothing_was_taken_of_is_replaced() -> None:
    wanted = upload(name="m")
    assert may_replace(RATINGS, upload(), wanted)
    assert may_replace(RATINGS, upload(failed="bad"), upload())
    assert not may_replace(RATINGS, upload(), upload())
    assert not may_replace(RATINGS, upload(offset=1), wanted)
    assert not may_replace(RATINGS, upload(offset=1, failed="bad"), wanted)
    assert not may_replace(USERS, upload(mtime=1), upload(mtime=2))
    assert may_replace(USERS, upload(mtime=1, failed="bad"), upload(mtime=2))


def test_what_a_client_says_of_its_file_survives_kafka() -> None:
    given = {"size": "12", "mtime": "-5", "fingerprint": "A" * 64, "separator": "\t"}
    facts = Facts.read(given, ",")
    assert facts == Facts(12, -5, "a" * 64, "\t")
    kept = upload(size=12, mtime=-5, fingerprint=ONE, separator="\t", answered=("movies-q1",), length=None)
    assert from_json(Upload, to_json(kept)) == kept


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("size", "12.5", 400),
        ("size", "-1", 400),
        ("size", "", 400),
        ("mtime", "yesterday", 400),
        ("fingerprint", "abc", 400),
        ("fingerprint", "g" * 64, 400),
        ("separator", ":", 422),
        ("separator", "", 422),
        ("separator", ",,", 422),
    ],
)
def test_what_is_no_such_value_is_refused_by_name(name: str, value: str, status: int) -> None:
    with pytest.raises(Problem, match=name) as caught:
        Facts.read(metadata(Headers(described("x", **{name: value}))).values, ",")
    assert caught.value.status == status


def test_the_separator_of_the_kind_is_the_same_as_none() -> None:
    assert Facts.read({"separator": ";"}, ";") == Facts()


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({"Upload-Length": "5"}, 5),
        ({"Upload-Defer-Length": "1"}, None),
        ({}, 400),
        ({"Upload-Length": "5", "Upload-Defer-Length": "1"}, 400),
        ({"Upload-Defer-Length": "0"}, 400),
        ({"Upload-Length": "101"}, 413),
    ],
)
def test_a_length_is_said_now_or_later(headers: dict[str, str], wanted: int | None) -> None:
    if wanted in (400, 413):
        with pytest.raises(Problem) as caught:
            length(Headers(headers), 100)
        assert caught.value.status == wanted
    else:
        assert length(Headers(headers), 100) == wanted


def test_a_length_is_said_once_and_not_less_than_was_taken() -> None:
    assert with_length(upload(length=None, offset=4), 4).length == 4
    assert with_length(upload(length=9), 9).length == 9
    for progress, later in ((upload(length=9), 8), (upload(length=None, offset=4), 3)):
        with pytest.raises(Problem, match=f"Upload-Length is {later}") as caught:
            with_length(progress, later)
        assert caught.value.status == 400


def test_packed_bytes_are_refused_by_name() -> None:
    refuse_encoded(Headers({}))
    refuse_encoded(Headers({"Content-Encoding": "identity"}))
    with pytest.raises(Problem, match="Content-Encoding: 'gzip'") as caught:
        refuse_encoded(Headers({"Content-Encoding": "gzip"}))
    assert caught.value.status == 415
