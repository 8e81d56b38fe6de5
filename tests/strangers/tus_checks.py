"""What tus 1.0.0 asks of a server, as checks; each holds one sentence of the protocol, which it quotes.

The quotes are from https://github.com/tus/tus-resumable-upload-protocol (protocol.md, MIT License, (c) Transloadit Ltd
and Contributors).
"""

import base64
import hashlib
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final, Literal
from urllib.parse import urljoin

from tests.strangers.tus_client import ABSENT, CONTENT_TYPE, VERSION, Answer, Broken, Server

GONE: Final = (403, 404, 410)
KEPT_SECONDS: Final = 20.0  # for what came of a request that was cut off to be visible
ALGORITHMS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "sha1": lambda data: hashlib.sha1(data, usedforsecurity=False).digest(),
    "sha256": lambda data: hashlib.sha256(data).digest(),
    "sha512": lambda data: hashlib.sha512(data).digest(),
    "md5": lambda data: hashlib.md5(data, usedforsecurity=False).digest(),
    "crc32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
}

# strict: the request breaks the protocol, and the protocol does not say what the server does; a strict one refuses.
Level = Literal["MUST", "SHOULD", "strict"]


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    extension: str  # "core", or what Tus-Extension has to name for the check to run; "-name": must not name
    level: Level
    quote: str
    run: Callable[[Server], None]
    of_content: bool = False  # what is right depends on the files that the server takes


def want(holds: object, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


def unchanged(server: Server, upload: str, offset: int, after: Answer) -> None:
    found = server.offset(upload)
    want(found == offset, f"after {after} the offset is {found}, not {offset}")


def halves(server: Server) -> tuple[bytes, bytes]:
    middle = len(server.body) // 2
    return server.body[:middle], server.body[middle:]


# ---- core


def offset_is_a_number(server: Server) -> None:
    upload = server.new()
    server.head(upload).number("Upload-Offset")
    server.patch(upload, 0, halves(server)[0]).want(204).number("Upload-Offset")


def offset_that_is_none_is_refused(server: Server) -> None:
    upload = server.new()
    for bad in ("-1", "abc", "", "1.5", "0x1", ABSENT):
        unchanged(server, upload, 0, server.patch(upload, bad, server.body).refused())


def offset_beyond_all_files_is_refused(server: Server) -> None:
    upload = server.new()
    for huge in (10**18, 10**19, 10**30):
        unchanged(server, upload, 0, server.patch(upload, huge, server.body).want(409))


def length_is_a_number(server: Server) -> None:
    length = server.head(server.new()).number("Upload-Length")
    want(length == len(server.body), f"Upload-Length is {length}, created with {len(server.body)}")


def length_that_is_none_is_refused(server: Server) -> None:
    for bad in ("-1", "abc", "", "1.5", "0x10"):
        server.create(Upload_Length=bad).refused()


def versions_are_a_list(server: Server) -> None:
    versions = [each.strip() for each in server.ask("OPTIONS").text("Tus-Version").split(",")]
    want("1.0.0" in versions and all(versions), f"Tus-Version is {versions}")


def version_is_on_every_answer(server: Server) -> None:
    created = server.create().want(201)
    upload = urljoin(server.url, created.text("Location"))
    first, _ = halves(server)
    for answer in (
        created,
        server.head(upload),
        server.patch(upload, 0, first),
        server.patch(upload, 0, first).want(409),
        server.patch(upload, len(first), b"x", Content_Type="text/plain"),
        server.head(upload + "-that-is-not-there"),
        server.create(Upload_Length="abc").refused(),
        server.ask("PATCH", upload, {"Tus-Resumable": "0.0.1"}, b""),
    ):
        want(answer.headers["Tus-Resumable"] == "1.0.0", f"{answer}: Tus-Resumable {answer.headers['Tus-Resumable']!r}")


def another_version_is_refused(server: Server) -> None:
    upload = server.new()
    for version in ("0.2.2", "2.0.0", "1.0.1"):
        for answer in (
            server.patch(upload, 0, server.body, Tus_Resumable=version),
            server.create(Tus_Resumable=version),
            server.ask("HEAD", upload, {"Tus-Resumable": version}),
        ):
            answer.want(412).text("Tus-Version")


def no_version_is_refused(server: Server) -> None:
    upload = server.new()
    unchanged(server, upload, 0, server.patch(upload, 0, server.body, Tus_Resumable=ABSENT).want(412))
    server.create(Tus_Resumable=ABSENT).want(412)


def another_version_changes_nothing(server: Server) -> None:
    upload = server.new()
    unchanged(server, upload, 0, server.patch(upload, 0, server.body, Tus_Resumable="0.2.2"))
    unchanged(server, upload, 0, server.ask("DELETE", upload, {"Tus-Resumable": "0.2.2"}))
    server.create(Tus_Resumable="0.2.2").without("Location")


def extensions_are_a_list(server: Server) -> None:
    found = server.ask("OPTIONS").headers["Tus-Extension"]
    want(found is None or all(name.strip() for name in found.split(",")), f"Tus-Extension is {found!r}")


def largest_size_is_a_number(server: Server) -> None:
    answer = server.ask("OPTIONS")
    if "Tus-Max-Size" in answer.headers:
        answer.number("Tus-Max-Size")


def override_is_the_method(server: Server) -> None:
    first, second = halves(server)
    upload = server.new()
    bytes_of_a_file = {**VERSION, "Content-Type": CONTENT_TYPE, "X-HTTP-Method-Override": "PATCH"}
    server.ask("POST", upload, {**bytes_of_a_file, "Upload-Offset": "0"}, first).want(204)
    server.ask("PUT", upload, {**bytes_of_a_file, "Upload-Offset": str(len(first))}, second).want(204)
    for actual in ("POST", "GET", "PATCH", "DELETE"):
        shown = server.ask(actual, upload, {**VERSION, "X-HTTP-Method-Override": "HEAD"}, b"").want(200, 204)
        want(shown.number("Upload-Offset") == len(server.body), f"{actual} for HEAD: {shown}")


def override_of_creation_is_the_method(server: Server) -> None:
    given = {**VERSION, "Upload-Length": str(len(server.body)), "Upload-Metadata": server.described()}
    server.ask("PATCH", "", {**given, "X-HTTP-Method-Override": "POST"}, b"").want(201)


def override_that_is_unknown_is_not_passed_over(server: Server) -> None:
    upload = server.new()
    given = {**VERSION, "Content-Type": CONTENT_TYPE, "Upload-Offset": "0", "X-HTTP-Method-Override": "BREW"}
    unchanged(server, upload, 0, server.ask("PATCH", upload, given, server.body))


def head_tells_the_offset_always(server: Server) -> None:
    first, second = halves(server)
    upload = server.new()
    want(server.offset(upload) == 0, "a new upload is not at 0")
    server.patch(upload, 0, first).want(204)
    want(server.offset(upload) == len(first), "an upload is not where its first PATCH left it")
    server.patch(upload, len(first), second).want(204)
    want(server.offset(upload) == len(server.body), "an upload that is complete is not at its end")


def head_tells_the_length(server: Server) -> None:
    upload = server.new()
    server.patch(upload, 0, server.body).want(204)
    want(server.head(upload).number("Upload-Length") == len(server.body), "Upload-Length is another")


def head_of_nothing(server: Server) -> None:
    server.head(server.new() + "-that-is-not-there").want(*GONE).without("Upload-Offset")


def head_is_a_success(server: Server) -> None:
    server.head(server.new()).want(200, 204)


def head_is_not_kept(server: Server) -> None:
    kept = server.head(server.new()).text("Cache-Control")
    want("no-store" in kept.lower(), f"Cache-Control is {kept!r}")


def patch_applies_bytes(server: Server) -> None:
    upload = server.new()
    server.patch(upload, 0, server.body).want(204)
    want(server.offset(upload) == len(server.body), "the bytes are not there")


def patch_of_another_type(server: Server) -> None:
    upload = server.new()
    for other in ("text/csv", "application/octet-stream", "application/offset+octet-streamx"):
        unchanged(server, upload, 0, server.patch(upload, 0, server.body, Content_Type=other).want(415))
    unchanged(server, upload, 0, server.patch(upload, 0, server.body, Content_Type=ABSENT).want(415))


def patch_of_the_type_in_capitals(server: Server) -> None:
    server.patch(server.new(), 0, server.body, Content_Type="Application/Offset+Octet-Stream").want(204)


def patch_at_another_offset(server: Server) -> None:
    first, second = halves(server)
    upload = server.new()
    unchanged(server, upload, 0, server.patch(upload, 1, first).want(409))
    server.patch(upload, 0, first).want(204)
    for other in (0, len(first) - 1, len(first) + 1):
        unchanged(server, upload, len(first), server.patch(upload, other, second[:1]).want(409))


def patch_in_small_pieces(server: Server) -> None:
    upload, at = server.new(), 0
    for end in (1, 2, 3, len(server.body) // 3, len(server.body)):
        server.patch(upload, at, server.body[at:end]).want(204)
        at = end
    want(server.offset(upload) == len(server.body), "the pieces are not the file")


def patch_tells_the_sum(server: Server) -> None:
    first, second = halves(server)
    upload = server.new()
    told = server.patch(upload, 0, first).want(204).number("Upload-Offset")
    want(told == len(first), f"after {len(first)} bytes it says {told}")
    told = server.patch(upload, len(first), second).want(204).number("Upload-Offset")
    want(told == len(server.body), f"after {len(server.body)} bytes it says {told}")


def patch_without_bytes(server: Server) -> None:
    upload = server.new()
    told = server.patch(upload, 0, b"").want(204).number("Upload-Offset")
    want(told == 0, f"after no bytes it says {told}")


def patch_of_nothing(server: Server) -> None:
    server.patch(server.new() + "-that-is-not-there", 0, b"x").want(404)


def patch_beyond_the_length(server: Server) -> None:
    upload = server.new()
    server.patch(upload, 0, server.body + b"and more").refused()
    want(server.offset(upload) <= len(server.body), "more was taken than the file has")


def what_came_before_a_cut_is_kept(server: Server) -> None:
    first, _ = halves(server)
    upload = server.new()
    head = {**VERSION, "Content-Type": CONTENT_TYPE, "Upload-Offset": "0"}
    with server.begun("PATCH", upload, head, len(server.body)) as connection:
        connection.send(first)
        time.sleep(0.2)  # else it goes with the head, and no server can tell what came of it
    deadline = time.monotonic() + KEPT_SECONDS
    while (kept := server.offset(upload)) == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    want(0 < kept <= len(first), f"of {len(first)} bytes before the cut {kept} were kept")
    server.patch(upload, kept, server.body[kept:]).want(204)


def options_tell_versions(server: Server) -> None:
    server.ask("OPTIONS").want(200, 204).text("Tus-Version")


def options_mind_no_version(server: Server) -> None:
    for version in ("0.0.1", "9.9.9", "nonsense"):
        server.ask("OPTIONS", "", {"Tus-Resumable": version}).want(200, 204).text("Tus-Version")


# ---- creation


def creation_is_named(server: Server) -> None:
    want(server.create().status != 201 or "creation" in server.extensions(), "it creates, and does not say so")


def creation_is_acknowledged(server: Server) -> None:
    server.create().want(201)


def location_is_the_upload(server: Server) -> None:
    upload = urljoin(server.url, server.create().want(201).text("Location"))
    want(server.offset(upload) == 0, "the new upload is not at 0")


def a_length_is_needed(server: Server) -> None:
    server.create(Upload_Length=ABSENT).refused()


def other_deferrals_are_refused(server: Server) -> None:
    for other in ("0", "2", "true", ""):
        server.create(Upload_Length=ABSENT, Upload_Defer_Length=other).want(400)


def no_deferral_where_it_is_not_named(server: Server) -> None:
    server.create(Upload_Length=ABSENT, Upload_Defer_Length="1").refused()


def empty_file(server: Server) -> None:
    """A server that wants content may refuse: it MAY reject by what it knows of the file."""
    created = server.create(length=0)
    if created.status != 201:
        created.refused()
        return
    shown = server.head(urljoin(server.url, created.text("Location"))).want(200, 204)
    want(shown.number("Upload-Offset") == shown.number("Upload-Length") == 0, f"{shown}: an empty file is not complete")


def metadata_is_told_back(server: Server) -> None:
    first, second = halves(server)
    given = f"{server.described()},note bm90ZQ=="
    upload = server.new(Upload_Metadata=given)
    for piece, offset in ((b"", 0), (first, 0), (second, len(first))):
        if piece:
            server.patch(upload, offset, piece).want(204)
        found = server.head(upload).text("Upload-Metadata")
        want(found == given, f"Upload-Metadata is {found!r}, created with {given!r}")


def metadata_may_be_without_value(server: Server) -> None:
    for key in ("is_confidential", "is_confidential "):
        upload = server.new(Upload_Metadata=f"{key},{server.described()}")
        want("is_confidential" in server.head(upload).text("Upload-Metadata"), "a key without value is lost")


def bad_metadata_is_refused(server: Server) -> None:
    for bad in ("note ???", "note bm90ZQ==,note bm90ZQ==", "no te bm90ZQ==", "n\u00f6te bm90ZQ=="):
        server.create(Upload_Metadata=f"{server.described()},{bad}").refused()


def metadata_smuggles_no_header(server: Server) -> None:
    smuggled = base64.b64encode(b"x\r\nX-Smuggled: 1").decode()
    created = server.create(Upload_Metadata=f"{server.described()},note {smuggled}")
    created.without("X-Smuggled")
    if created.status == 201:
        server.head(urljoin(server.url, created.text("Location"))).without("X-Smuggled")


def too_long_a_file(server: Server) -> None:
    most = server.ask("OPTIONS")
    if "Tus-Max-Size" in most.headers:
        for size in {most.number("Tus-Max-Size") + 1, 10**18, 10**19 - 1, 10**25}:
            server.create(length=size).want(413)


def no_concatenation_where_it_is_not_named(server: Server) -> None:
    server.create(Upload_Concat="partial").refused()
    server.create(Upload_Length=ABSENT, Upload_Concat=f"final;{server.new()} {server.new()}").refused()


def creation_with_bytes(server: Server) -> None:
    first, _ = halves(server)
    given = {**VERSION, "Upload-Length": str(len(server.body)), "Upload-Metadata": server.described()}
    created = server.ask("POST", "", {**given, "Content-Type": CONTENT_TYPE}, first).want(201)
    told = created.number("Upload-Offset")
    found = server.offset(urljoin(server.url, created.text("Location")))
    want(told == found <= len(first), f"POST with {len(first)} bytes says {told}, HEAD {found}")


# ---- creation-defer-length


def deferred(server: Server) -> str:
    return server.new(Upload_Length=ABSENT, Upload_Defer_Length="1")


def deferral_is_told_while_it_lasts(server: Server) -> None:
    upload = deferred(server)
    first, _ = halves(server)
    for piece in (b"", first):
        if piece:
            server.patch(upload, 0, piece).want(204)
        shown = server.head(upload).without("Upload-Length").text("Upload-Defer-Length")
        want(shown == "1", f"Upload-Defer-Length is {shown!r}")


def deferral_ends_with_the_length(server: Server) -> None:
    upload = deferred(server)
    first, second = halves(server)
    server.patch(upload, 0, first).want(204)
    server.patch(upload, len(first), second, Upload_Length=str(len(server.body))).want(204)
    shown = server.head(upload).without("Upload-Defer-Length")
    want(shown.number("Upload-Length") == shown.number("Upload-Offset") == len(server.body), f"{shown}: not complete")


def a_length_once_said_stays(server: Server) -> None:
    upload = deferred(server)
    first, second = halves(server)
    server.patch(upload, 0, first, Upload_Length=str(len(server.body))).want(204)
    server.patch(upload, len(first), second[:1], Upload_Length=str(len(server.body) + 7))
    found = server.head(upload).number("Upload-Length")
    want(found == len(server.body), f"Upload-Length was {len(server.body)} and became {found}")


def a_length_that_is_known_is_not_deferred(server: Server) -> None:
    server.head(server.new()).without("Upload-Defer-Length")


# ---- expiration


def is_date(answer: Answer) -> None:
    text = answer.text("Upload-Expires")
    try:
        parsed = parsedate_to_datetime(text)
    except ValueError:
        parsed = None
    want(parsed is not None and text.endswith("GMT") and len(text) == 29, f"Upload-Expires is {text!r}")


def creation_tells_the_end(server: Server) -> None:
    is_date(server.create().want(201))


def patch_tells_the_end(server: Server) -> None:
    is_date(server.patch(server.new(), 0, halves(server)[0]).want(204))


# ---- checksum


def algorithms(server: Server) -> list[str]:
    return [name.strip() for name in server.ask("OPTIONS").text("Tus-Checksum-Algorithm").split(",")]


def checksum(algorithm: str, data: bytes) -> str:
    return f"{algorithm} {base64.b64encode(ALGORITHMS[algorithm](data)).decode()}"


def algorithms_are_a_list(server: Server) -> None:
    want(all(algorithms(server)), f"Tus-Checksum-Algorithm is {algorithms(server)}")


def sha1_is_known(server: Server) -> None:
    want("sha1" in algorithms(server), f"Tus-Checksum-Algorithm is {algorithms(server)}")
    server.patch(server.new(), 0, server.body, Upload_Checksum=checksum("sha1", server.body)).want(204)


def algorithms_are_ascii(server: Server) -> None:
    for name in algorithms(server):
        want(name.isascii() and name == name.lower(), f"{name!r} is not in lower-case ASCII")


def every_algorithm_is_checked(server: Server) -> None:
    for algorithm in set(algorithms(server)) & ALGORITHMS.keys():
        upload = server.new()
        wrong = server.patch(upload, 0, server.body, Upload_Checksum=checksum(algorithm, b"other bytes")).want(460)
        unchanged(server, upload, 0, wrong)
        server.patch(upload, 0, server.body, Upload_Checksum=checksum(algorithm, server.body)).want(204)


def an_unknown_algorithm_is_refused(server: Server) -> None:
    upload = server.new()
    unchanged(server, upload, 0, server.patch(upload, 0, server.body, Upload_Checksum="sum0 AAAA").want(400))


def wrong_bytes_are_thrown_away(server: Server) -> None:
    first, second = halves(server)
    upload = server.new()
    server.patch(upload, 0, first).want(204)
    wrong = server.patch(upload, len(first), second, Upload_Checksum=checksum("sha1", first)).want(460)
    unchanged(server, upload, len(first), wrong)
    server.patch(upload, len(first), second, Upload_Checksum=checksum("sha1", second)).want(204)


def a_checksum_that_is_none_is_refused(server: Server) -> None:
    upload = server.new()
    for bad in ("sha1", "sha1 ?", "", "sha1  ", checksum("sha1", server.body).replace(" ", "")):
        unchanged(server, upload, 0, server.patch(upload, 0, server.body, Upload_Checksum=bad).refused())


# ---- termination


def terminated(server: Server, upload: str) -> None:
    server.ask("DELETE", upload, VERSION).want(204)


def termination_of_a_new_upload(server: Server) -> None:
    terminated(server, server.new())


def nothing_is_left_after_termination(server: Server) -> None:
    upload = server.new()
    terminated(server, upload)
    server.head(upload).want(404, 410).without("Upload-Offset")
    server.patch(upload, 0, b"x").want(404, 410)


def termination_of_a_begun_upload(server: Server) -> None:
    upload = server.new()
    server.patch(upload, 0, halves(server)[0]).want(204)
    terminated(server, upload)
    server.head(upload).want(404, 410)


OFFSET: Final = (
    "The `Upload-Offset` request and response header indicates a byte offset within a resource. The value MUST be a "
    "non-negative integer."
)
LENGTH: Final = (
    "The `Upload-Length` request and response header indicates the size of the entire upload in bytes. The value MUST "
    "be a non-negative integer."
)
RESUMABLE: Final = (
    "The `Tus-Resumable` header MUST be included in every request and response except for `OPTIONS` requests. The "
    "value MUST be the version of the protocol used by the Client or the Server."
)
OVERRIDE: Final = (
    "The `X-HTTP-Method-Override` request header MUST be a string which MUST be interpreted as the request's method by "
    "the Server, if the header is presented. The actual method of the request MUST be ignored."
)
TYPE: Final = (
    "All `PATCH` requests MUST use `Content-Type: application/offset+octet-stream`, otherwise the server SHOULD return "
    "a `415 Unsupported Media Type` status."
)
MISMATCH: Final = (
    "If the offsets do not match, the Server MUST respond with the `409 Conflict` status without modifying the upload "
    "resource."
)
DEFER_NAMED: Final = (
    "If the Server supports deferring length, it MUST add `creation-defer-length` to the `Tus-Extension` header."
)
DISCARDED: Final = (
    "In the first two cases the uploaded chunk MUST be discarded, and the upload and its offset MUST NOT be updated."
)
AFTERWARDS: Final = (
    "For all future requests to this URL, the Server SHOULD respond with the `404 Not Found` or `410 Gone` status."
)

# In the order of the protocol; what may end more than one upload comes last.
CHECKS: Final[tuple[Check, ...]] = (
    Check("Upload-Offset of answers", "core", "MUST", OFFSET, offset_is_a_number),
    Check("Upload-Offset that is none", "core", "strict", OFFSET, offset_that_is_none_is_refused),
    Check("Upload-Offset of 19 digits", "core", "MUST", MISMATCH, offset_beyond_all_files_is_refused),
    Check("Upload-Length of answers", "core", "MUST", LENGTH, length_is_a_number),
    Check("Upload-Length that is none", "core", "strict", LENGTH, length_that_is_none_is_refused),
    Check(
        "Tus-Version",
        "core",
        "MUST",
        "The `Tus-Version` response header MUST be a comma-separated list of protocol versions supported by the "
        "Server.",
        versions_are_a_list,
    ),
    Check("Tus-Resumable of answers", "core", "MUST", RESUMABLE, version_is_on_every_answer),
    Check(
        "another version: 412",
        "core",
        "MUST",
        "If the version specified by the Client is not supported by the Server, it MUST respond with the "
        "`412 Precondition Failed` status and MUST include the `Tus-Version` header into the response.",
        another_version_is_refused,
    ),
    Check("no version", "core", "strict", RESUMABLE, no_version_is_refused),
    Check(
        "another version: nothing done",
        "core",
        "MUST",
        "In addition, the Server MUST NOT process the request.",
        another_version_changes_nothing,
    ),
    Check(
        "Tus-Extension",
        "core",
        "MUST",
        "The `Tus-Extension` response header MUST be a comma-separated list of the extensions supported by the Server. "
        "If no extensions are supported, the `Tus-Extension` header MUST be omitted.",
        extensions_are_a_list,
    ),
    Check(
        "Tus-Max-Size",
        "core",
        "MUST",
        "The `Tus-Max-Size` response header MUST be a non-negative integer indicating the maximum allowed size of an "
        "entire upload in bytes.",
        largest_size_is_a_number,
    ),
    Check("method override", "core", "MUST", OVERRIDE, override_is_the_method),
    Check("method override of creation", "creation", "MUST", OVERRIDE, override_of_creation_is_the_method),
    Check(
        "method override, unknown",
        "core",
        "MUST",
        "The actual method of the request MUST be ignored.",
        override_that_is_unknown_is_not_passed_over,
    ),
    Check(
        "HEAD: Upload-Offset",
        "core",
        "MUST",
        "The Server MUST always include the `Upload-Offset` header in the response for a `HEAD` request, even if the "
        "offset is `0`, or the upload is already considered completed.",
        head_tells_the_offset_always,
    ),
    Check(
        "HEAD: Upload-Length",
        "core",
        "MUST",
        "If the size of the upload is known, the Server MUST include the `Upload-Length` header in the response.",
        head_tells_the_length,
    ),
    Check(
        "HEAD of nothing",
        "core",
        "SHOULD",
        "If the resource is not found, the Server SHOULD return either the `404 Not Found`, `410 Gone` or "
        "`403 Forbidden` status without the `Upload-Offset` header.",
        head_of_nothing,
    ),
    Check(
        "HEAD: 200 or 204",
        "core",
        "SHOULD",
        "The Server SHOULD acknowledge successful `HEAD` requests with a `200 OK` or `204 No Content` status.",
        head_is_a_success,
    ),
    Check(
        "HEAD: Cache-Control",
        "core",
        "MUST",
        "The Server MUST prevent the client and/or proxies from caching the response by adding the "
        "`Cache-Control: no-store` header to the response.",
        head_is_not_kept,
    ),
    Check(
        "PATCH applies bytes",
        "core",
        "SHOULD",
        "The Server SHOULD accept `PATCH` requests against any upload URL and apply the bytes contained in the message "
        "at the given offset specified by the `Upload-Offset` header.",
        patch_applies_bytes,
    ),
    Check("PATCH of another type: 415", "core", "SHOULD", TYPE, patch_of_another_type),
    Check("PATCH of the type in capitals", "core", "SHOULD", TYPE, patch_of_the_type_in_capitals),
    Check("PATCH at another offset: 409", "core", "MUST", MISMATCH, patch_at_another_offset),
    Check(
        "PATCH in small pieces",
        "core",
        "SHOULD",
        "The Client SHOULD send all the remaining bytes of an upload in a single `PATCH` request, but MAY also use "
        "multiple small requests successively for scenarios where this is desirable.",
        patch_in_small_pieces,
    ),
    Check(
        "PATCH: 204 and the sum",
        "core",
        "MUST",
        "The Server MUST acknowledge successful `PATCH` requests with the `204 No Content` status. It MUST include the "
        "`Upload-Offset` header containing the new offset. The new offset MUST be the sum of the offset before the "
        "`PATCH` request and the number of bytes received and processed or stored during the current `PATCH` request.",
        patch_tells_the_sum,
    ),
    Check(
        "PATCH without bytes",
        "core",
        "MUST",
        "The new offset MUST be the sum of the offset before the `PATCH` request and the number of bytes received and "
        "processed or stored during the current `PATCH` request.",
        patch_without_bytes,
    ),
    Check(
        "PATCH of nothing: 404",
        "core",
        "SHOULD",
        "If the server receives a `PATCH` request against a non-existent resource it SHOULD return a `404 Not Found` "
        "status.",
        patch_of_nothing,
    ),
    Check(
        "PATCH beyond the length",
        "core",
        "strict",
        "The `Upload-Length` request and response header indicates the size of the entire upload in bytes.",
        patch_beyond_the_length,
    ),
    Check(
        "PATCH that is cut off",
        "core",
        "SHOULD",
        "The Server SHOULD always attempt to store as much of the received data as possible.",
        what_came_before_a_cut_is_kept,
    ),
    Check(
        "OPTIONS: Tus-Version",
        "core",
        "MUST",
        "A successful response indicated by the `204 No Content` or `200 OK` status MUST contain the `Tus-Version` "
        "header.",
        options_tell_versions,
    ),
    Check(
        "OPTIONS: version not minded",
        "core",
        "MUST",
        "The Client SHOULD NOT include the `Tus-Resumable` header in the request and the Server MUST ignore the "
        "header.",
        options_mind_no_version,
    ),
    Check(
        "creation is named",
        "core",
        "MUST",
        "If the Server supports this extension, it MUST add `creation` to the `Tus-Extension` header.",
        creation_is_named,
    ),
    Check(
        "creation: 201",
        "creation",
        "MUST",
        "The Server MUST acknowledge a successful upload creation with the `201 Created` status.",
        creation_is_acknowledged,
    ),
    Check(
        "creation: Location",
        "creation",
        "MUST",
        "The Server MUST set the `Location` header to the URL of the created resource. This URL MAY be absolute or "
        "relative.",
        location_is_the_upload,
    ),
    Check(
        "creation without length",
        "creation",
        "strict",
        "The request MUST include one of the following headers:",
        a_length_is_needed,
    ),
    Check(
        "Upload-Defer-Length other than 1",
        "creation",
        "SHOULD",
        "If the `Upload-Defer-Length` header contains any other value than `1` the server should return a "
        "`400 Bad Request` status.",
        other_deferrals_are_refused,
    ),
    Check("deferral, not named", "-creation-defer-length", "MUST", DEFER_NAMED, no_deferral_where_it_is_not_named),
    Check(
        "empty file",
        "creation",
        "MUST",
        "The `Upload-Length` header MAY be set to 0, indicating that the Client wants to upload an empty file. Such an "
        "upload is immediately complete after its creation without transferring data using `PATCH` requests.",
        empty_file,
        of_content=True,
    ),
    Check(
        "HEAD: Upload-Metadata",
        "creation",
        "MUST",
        "If an upload contains additional metadata, responses to `HEAD` requests MUST include the `Upload-Metadata` "
        "header and its value as specified by the Client during the creation.",
        metadata_is_told_back,
    ),
    Check(
        "metadata without value",
        "creation",
        "MUST",
        "The value MAY be empty. In these cases, the space, which would normally separate the key and the value, MAY "
        "be left out.",
        metadata_may_be_without_value,
    ),
    Check(
        "metadata that is none",
        "creation",
        "strict",
        "The key MUST NOT contain spaces and commas and MUST NOT be empty. The key SHOULD be ASCII encoded and the "
        "value MUST be Base64 encoded. All keys MUST be unique.",
        bad_metadata_is_refused,
    ),
    Check(
        "metadata smuggles nothing",
        "creation",
        "SHOULD",
        "Since metadata can contain arbitrary binary values, Servers SHOULD carefully validate metadata values or "
        "sanitize them before using them as header values to avoid header smuggling.",
        metadata_smuggles_no_header,
    ),
    Check(
        "creation of too much: 413",
        "creation",
        "MUST",
        "If the length of the upload exceeds the maximum, which MAY be specified using the `Tus-Max-Size` header, the "
        "Server MUST respond with the `413 Request Entity Too Large` status.",
        too_long_a_file,
    ),
    Check(
        "concatenation, not named",
        "-concatenation",
        "strict",
        "If the Server supports this extension, it MUST add `concatenation` to the `Tus-Extension` header.",
        no_concatenation_where_it_is_not_named,
    ),
    Check(
        "creation with bytes",
        "creation-with-upload",
        "MUST",
        "The Server SHOULD accept as many bytes as possible and MUST include the `Upload-Offset` header in the "
        "response and MUST set its value to the offset of the upload after applying the accepted bytes.",
        creation_with_bytes,
    ),
    Check(
        "deferral is told",
        "creation-defer-length",
        "MUST",
        "As long as the length of the upload is not known, the Server MUST set `Upload-Defer-Length: 1` in all "
        "responses to `HEAD` requests.",
        deferral_is_told_while_it_lasts,
    ),
    Check(
        "deferral ends",
        "creation-defer-length",
        "MUST",
        "If the length was deferred using `Upload-Defer-Length: 1`, the Client MUST set the `Upload-Length` header in "
        "the next `PATCH` request, once the length is known.",
        deferral_ends_with_the_length,
    ),
    Check(
        "a length stays",
        "creation-defer-length",
        "MUST",
        "Once set the length MUST NOT be changed.",
        a_length_once_said_stays,
    ),
    Check(
        "no deferral of a known length",
        "creation",
        "MUST",
        "If the length of an upload is not deferred, this header MUST be omitted.",
        a_length_that_is_known_is_not_deferred,
    ),
    Check(
        "POST: Upload-Expires",
        "expiration",
        "MUST",
        "If the expiration is known at the creation, the `Upload-Expires` header MUST be included in the response to "
        "the initial `POST` request.",
        creation_tells_the_end,
    ),
    Check(
        "PATCH: Upload-Expires",
        "expiration",
        "MUST",
        "This header MUST be included in every `PATCH` response if the upload is going to expire.",
        patch_tells_the_end,
    ),
    Check(
        "Tus-Checksum-Algorithm",
        "checksum",
        "MUST",
        "The `Tus-Checksum-Algorithm` response header MUST be a comma-separated list of the checksum algorithms "
        "supported by the server.",
        algorithms_are_a_list,
    ),
    Check(
        "checksum: sha1",
        "checksum",
        "MUST",
        "The Server MUST support at least the SHA1 checksum algorithm identified by `sha1`.",
        sha1_is_known,
    ),
    Check(
        "checksum: names",
        "checksum",
        "MUST",
        "The names of the checksum algorithms MUST only consist of ASCII characters with the modification that "
        "uppercase characters are excluded.",
        algorithms_are_ascii,
    ),
    Check(
        "checksum: every algorithm",
        "checksum",
        "MUST",
        "Once the entire request has been received, the Server MUST verify the uploaded chunk against the provided "
        "checksum using the specified algorithm.",
        every_algorithm_is_checked,
    ),
    Check("checksum: unknown algorithm", "checksum", "MUST", DISCARDED, an_unknown_algorithm_is_refused),
    Check("checksum: wrong bytes", "checksum", "MUST", DISCARDED, wrong_bytes_are_thrown_away),
    Check(
        "checksum that is none",
        "checksum",
        "strict",
        "The header MUST consist of the name of the used checksum algorithm and the Base64 encoded checksum separated "
        "by a space.",
        a_checksum_that_is_none_is_refused,
    ),
    Check(
        "DELETE: 204",
        "termination",
        "MUST",
        "When receiving a `DELETE` request for an existing upload the Server SHOULD free associated resources and MUST "
        "respond with the `204 No Content` status confirming that the upload was terminated.",
        termination_of_a_new_upload,
    ),
    Check("DELETE, then nothing", "termination", "SHOULD", AFTERWARDS, nothing_is_left_after_termination),
    Check(
        "DELETE of a begun upload", "termination", "SHOULD", AFTERWARDS, termination_of_a_begun_upload, of_content=True
    ),
)
