"""Headers of tus that no well-meant client sends, below what an HTTP library would let through."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.datastructures import Headers

from gateway import tus
from gateway.problems import Problem


def headers(*given: tuple[str, bytes]) -> Headers:
    return Headers(raw=[(name.encode(), value) for name, value in given])


@pytest.mark.parametrize(
    ("read", "given"),
    [
        (tus.metadata, [("upload-metadata", b"filename \xe9")]),
        (tus.metadata, [("upload-metadata", b"filen\xe4me eA==")]),
        (tus.metadata, [("upload-metadata", b"filename eA==\x85")]),
        (tus.metadata, [("upload-metadata", b"filename eA=="), ("upload-metadata", b"filename eQ==")]),
        (tus.checksum, [("upload-checksum", b"sha1 \xe9")]),
        (lambda each: tus.number(each, "Upload-Offset"), [("upload-offset", b"1"), ("upload-offset", b"2")]),
        (lambda each: tus.number(each, "Upload-Offset"), [("upload-offset", b"\xb2")]),
    ],
)
def test_what_cannot_be_read_is_a_problem(read: Callable[[Headers], Any], given: list[tuple[str, bytes]]) -> None:
    with pytest.raises(Problem) as refused:
        read(headers(*given))
    assert refused.value.status == 400


def test_two_lines_of_metadata_are_one() -> None:
    found = tus.metadata(headers(("upload-metadata", b"filename eA=="), ("upload-metadata", b"kind cmF0aW5ncw==")))
    assert found.values == {"filename": "x", "kind": "ratings"}
    assert found.header == "filename eA==,kind cmF0aW5ncw=="


@pytest.mark.parametrize(
    ("actual", "given", "meant"),
    [
        ("POST", [], "POST"),
        ("POST", [("x-http-method-override", b"patch")], "PATCH"),
        ("GET", [("x-http-method-override", b"DELETE")], "DELETE"),
        ("PATCH", [("x-http-method-override", b"BREW")], "BREW"),
        ("patch", [], "patch"),
    ],
)
def test_the_method_is_the_headers_whatever_the_request_line_says(
    actual: str, given: list[tuple[str, bytes]], meant: str
) -> None:
    assert tus.method(actual, headers(*given)) == meant
