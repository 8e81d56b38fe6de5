"""The words of tus 1.0.0: headers in, headers out. No state in here."""

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from starlette.datastructures import Headers

from gateway.problems import Problem
from queries.model import Dataset, File

VERSION: Final = "1.0.0"
EXTENSIONS: Final = "creation,creation-defer-length,checksum,termination,expiration"
CONTENT_TYPE: Final = "application/offset+octet-stream"
CHECKSUMMED_BYTES: Final = 8 << 20  # taken whole or not at all, so held in memory
NAME_LENGTH: Final = 255
METADATA_LENGTH: Final = 4096  # of the header: a name of 255 signs of four bytes has 1,360, its kind a few more
SHOWN_LENGTH: Final = 80  # of what a client sent, in a message
# What a script of another origin has to see.
HEADERS: Final = (
    "Tus-Resumable",
    "Tus-Version",
    "Tus-Extension",
    "Tus-Max-Size",
    "Tus-Checksum-Algorithm",
    "Upload-Offset",
    "Upload-Length",
    "Upload-Defer-Length",
    "Upload-Metadata",
    "Upload-Expires",
)
METADATA_KEY: Final = re.compile(r"[!-+\--~]+")  # printable ASCII but for space and comma
# `int` takes 4,300 digits; a length of so many is too big, not unreadable.
NUMBER: Final = re.compile(r"[0-9]{1,4000}")
SEPARATORS: Final = (",", ";", "\t", "|")


def sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def crc32(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "big")


ALGORITHMS: Final[Mapping[str, Callable[[bytes], bytes]]] = {"sha1": sha1, "sha256": sha256, "crc32": crc32}


@dataclass(frozen=True, slots=True)
class Checksum:
    algorithm: str
    digest: bytes

    def check(self, data: bytes) -> None:
        if ALGORITHMS[self.algorithm](data) != self.digest:
            raise Problem(
                460,
                "wrong-checksum",
                f"{self.algorithm} of the {len(data)} bytes differs; nothing was taken, send again",
            )


def require_version(headers: Headers) -> None:
    if headers.get("tus-resumable") != VERSION:
        raise Problem(
            412,
            "tus-version",
            f"send the header Tus-Resumable: {VERSION}; no other is spoken",
            {"Tus-Version": VERSION},
        )


def method(actual: str, headers: Headers) -> str:
    """Returns the method that is meant: the header's where there is one, whatever the request line says."""
    override = headers.get("x-http-method-override")
    return actual if override is None else override.upper()


def shown(text: str) -> str:
    """What a client sent, to be told back: on one line, and not at any length."""
    return repr(text[:SHOWN_LENGTH] + "…" if len(text) > SHOWN_LENGTH else text)


def number(headers: Headers, name: str) -> int:
    text = ",".join(headers.getlist(name))
    if not NUMBER.fullmatch(text):
        raise Problem(400, "bad-request", f"header {name}: wanted is a number of bytes, got {shown(text)}")
    return int(text)


def require_content_type(headers: Headers) -> None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != CONTENT_TYPE:
        raise Problem(415, "media-type", f"send the header Content-Type: {CONTENT_TYPE}")


def refuse_concatenation(headers: Headers) -> None:
    """Refuses a part of a file: taken for a whole one, it would give answers over a part of the rows."""
    if "upload-concat" in headers:
        detail = "Upload-Concat is not supported: send the file as one upload (tus-js-client: parallelUploads: 1)"
        raise Problem(400, "bad-request", detail)


def length(headers: Headers, most: int) -> int | None:
    """Returns how long a new upload will be; None where its client will say so later."""
    deferred = headers.get("upload-defer-length")
    if deferred is None:
        return known_length(headers, most)
    if "upload-length" in headers:
        detail = "Upload-Length and Upload-Defer-Length say different things: send one of them"
        raise Problem(400, "bad-request", detail)
    if deferred != "1":
        raise Problem(400, "bad-request", f"header Upload-Defer-Length: its only value is 1, got {shown(deferred)}")
    return None


def known_length(headers: Headers, most: int) -> int:
    size = number(headers, "Upload-Length")
    if size > most:
        raise Problem(413, "too-big", f"Upload-Length: at most {most} bytes are taken (CAUCE_MAX_UPLOAD_BYTES)")
    return size


def refuse_encoded(headers: Headers) -> None:
    encoding = headers.get("content-encoding", "").strip() or "identity"
    if encoding.lower() != "identity":
        detail = (
            f"Content-Encoding: {shown(encoding)} is not taken, gateways unpack nothing; send the bytes of the CSV "
            "file, or use `cauce upload`, which unpacks"
        )
        raise Problem(415, "media-type", detail)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a client says about its file: `key BASE64,key BASE64`, as it came and as it reads.

    Invariant: the header holds printable ASCII and blanks only, so it can be told back in a header."""

    header: str
    values: Mapping[str, str]


def metadata(headers: Headers) -> Metadata:
    given, found = ",".join(headers.getlist("upload-metadata")), dict[str, str]()
    if len(given) > METADATA_LENGTH:
        raise Problem(431, "too-big", f"Upload-Metadata may have {METADATA_LENGTH} characters, not {len(given)}")
    for pair in filter(None, (part.strip(" \t") for part in given.split(","))):
        key, _, value = pair.partition(" ")
        if not METADATA_KEY.fullmatch(key):
            raise Problem(400, "bad-request", f"Upload-Metadata: {shown(key)} is no key; use printable ASCII")
        if key in found:
            raise Problem(400, "bad-request", f"Upload-Metadata: {shown(key)} is there twice; say it once")
        try:
            found[key] = base64.b64decode(value, validate=True).decode()
        except ValueError:  # not base64, not even ASCII, or not UTF-8
            raise Problem(400, "bad-request", f"Upload-Metadata: {shown(key)} is not UTF-8 in base64") from None
    return Metadata(given, found)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a client says of a file besides its name: of the file on its disk, to tell it from another one later, and
    how its columns are separated."""

    size: int | None = None
    mtime: int | None = None
    fingerprint: str = ""
    separator: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str], separator: str) -> Self:
        """`separator`: of this kind of file; to say that one is to say nothing."""
        size = _checked(given, "size", r"[0-9]{1,18}", "a number of bytes")
        mtime = _checked(given, "mtime", r"-?[0-9]{1,18}", "whole milliseconds since 1970")
        fingerprint = _checked(given, "fingerprint", r"[0-9a-fA-F]{64}", "64 hex digits")
        own = given.get("separator", separator)
        if own not in SEPARATORS:
            detail = f"Upload-Metadata: separator {shown(own)} is not one of , ; | and a tab"
            raise Problem(422, "bad-value", detail)
        return cls(
            size=None if size is None else int(size),
            mtime=None if mtime is None else int(mtime),
            fingerprint=(fingerprint or "").lower(),
            separator="" if own == separator else own,
        )


def _checked(given: Mapping[str, str], name: str, pattern: str, wanted: str) -> str | None:
    text = given.get(name)
    if text is not None and not re.fullmatch(pattern, text):
        raise Problem(400, "bad-request", f"Upload-Metadata: {name} has to be {wanted}, got {shown(text)}")
    return text


def which_file(dataset: Dataset, given: Mapping[str, str]) -> tuple[File, str]:
    """The kind of file and the name that the client gave it."""
    kinds = {file.kind: file for file in dataset.files}
    name = given.get("filename", "")
    known = ", ".join(f"{file.kind} ({file.filename})" for file in dataset.files)
    if not name or len(name) > NAME_LENGTH or not name.isprintable():
        raise Problem(
            400, "bad-request", "Upload-Metadata wants a filename of 1 to 255 printable characters, in base64"
        )
    kind = given.get("kind")
    if kind is None:
        by_name = {file.filename: file for file in dataset.files}
        file = by_name.get(name.replace("\\", "/").rpartition("/")[2])
        if file is None:
            detail = f"{name}: the name does not tell the kind of file; say it in Upload-Metadata as kind: {known}"
            raise Problem(422, "bad-value", detail, file=name)
        return file, name
    if kind not in kinds:
        raise Problem(422, "bad-value", f"kind {shown(kind)}: dataset {dataset.name} has {known}", file=name)
    return kinds[kind], name


def refuse_trailers(headers: Headers) -> None:
    """Refuses what would come after the body: granian hands no trailer on, and tus wants them announced."""
    names = [name.strip() for line in headers.getlist("trailer") for name in line.split(",")]
    if ours := [name for name in names if name.lower().startswith("upload-")]:
        detail = f"Trailer: {shown(ours[0])}: checksum-trailer is not spoken; send Upload-Checksum before the body"
        raise Problem(400, "bad-request", detail)


def checksum(headers: Headers) -> Checksum | None:
    given = headers.get("upload-checksum")
    if given is None:
        return None
    algorithm, _, value = given.partition(" ")
    if algorithm not in ALGORITHMS:
        raise Problem(400, "bad-request", f"Upload-Checksum: {shown(algorithm)} is not one of {', '.join(ALGORITHMS)}")
    try:
        return Checksum(algorithm, base64.b64decode(value, validate=True))
    except ValueError:
        raise Problem(400, "bad-request", "Upload-Checksum: the value is not base64") from None
