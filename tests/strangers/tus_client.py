"""A tus client that can break every rule: one request a connection, and no header that nobody asked for."""

import base64
import http.client
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin, urlsplit

VERSION: Final = {"Tus-Resumable": "1.0.0"}
CONTENT_TYPE: Final = "application/offset+octet-stream"
PUT_OFF: Final = (429, 503)
TRIES: Final = 5
SECONDS: Final = 60.0
ABSENT: Final = "\0"  # in the place of a header's value: it is not sent


class Broken(Exception):
    """The server does not keep to the protocol; the message says in what."""


@dataclass(frozen=True, slots=True)
class Answer:
    request: str
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def __str__(self) -> str:
        return f"{self.request} was answered with {self.status} {self.body[:200]!r}"

    def want(self, *statuses: int) -> "Answer":
        if self.status not in statuses:
            raise Broken(f"{self}, not {' or '.join(map(str, statuses))}")
        return self

    def refused(self) -> "Answer":
        if not 400 <= self.status < 500:
            raise Broken(f"{self}, which is no refusal")
        return self

    def text(self, name: str) -> str:
        values = self.headers.get_all(name) or []
        if len(values) != 1:
            raise Broken(f"{self}: {name} is there {len(values)} times")
        return str(values[0])

    def number(self, name: str) -> int:
        text = self.text(name)
        if not (text.isascii() and text.isdigit()):
            raise Broken(f"{self}: {name} is {text!r}, no number")
        return int(text)

    def without(self, name: str) -> "Answer":
        if name in self.headers:
            raise Broken(f"{self}: it has {name}: {self.headers[name]}")
        return self


@dataclass(frozen=True, slots=True)
class Server:
    """Where uploads are created, and what a file that the server takes looks like."""

    url: str
    headers: Mapping[str, str]
    metadata: Sequence[tuple[str, str]]  # `{n}` in a value is another number for each upload
    body: bytes
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def described(self) -> str:
        """Returns Upload-Metadata of another file."""
        number = str(next(self.numbers))
        pairs = [(key, value.replace("{n}", number)) for key, value in self.metadata]
        return ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in pairs)

    def ask(
        self, method: str, url: str = "", headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> Answer:
        """Sends a request with these headers, and again where the server asks to come later."""
        for again in range(TRIES):
            with self.begun(method, url, headers, None if content is None else len(content)) as connection:
                if content:
                    connection.send(content)
                response = connection.getresponse()
                answer = Answer(f"{method} {url or self.url}", response.status, response.headers, response.read())
            wait = answer.headers["Retry-After"]
            if answer.status not in PUT_OFF or wait is None or again == TRIES - 1:
                break
            time.sleep(float(wait))
        return answer

    @contextmanager
    def begun(
        self, method: str, url: str, headers: Mapping[str, str] | None, length: int | None
    ) -> Iterator[http.client.HTTPConnection]:
        """A request of which the head is sent; its body is `length` bytes, if there is one."""
        parts = urlsplit(url or self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.netloc, timeout=SECONDS)
        try:
            connection.putrequest(method, parts._replace(scheme="", netloc="").geturl(), skip_accept_encoding=True)
            given = {**self.headers, **(headers or {})}
            if length is not None:
                given["Content-Length"] = str(length)
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders()
            yield connection
        finally:
            connection.close()

    def create(self, length: int | None = None, **more: str) -> Answer:
        """Asks for an upload; `length` is that of the body unless given, and a header of `more` wins over it."""
        size = len(self.body) if length is None else length
        given = {**VERSION, "Upload-Length": str(size), "Upload-Metadata": self.described()} | named(more)
        return self.ask("POST", "", present(given), b"")

    def new(self, **more: str) -> str:
        """Returns the address of an upload that was just created."""
        return urljoin(self.url, self.create(None, **more).want(201).text("Location"))

    def head(self, upload: str) -> Answer:
        return self.ask("HEAD", upload, VERSION)

    def offset(self, upload: str) -> int:
        return self.head(upload).want(200, 204).number("Upload-Offset")

    def patch(self, upload: str, offset: int | str, content: bytes, **more: str) -> Answer:
        given = {**VERSION, "Content-Type": CONTENT_TYPE, "Upload-Offset": str(offset)} | named(more)
        return self.ask("PATCH", upload, present(given), content)

    def extensions(self) -> set[str]:
        found = self.ask("OPTIONS").headers["Tus-Extension"] or ""
        return {name.strip() for name in found.split(",")} - {""}


def present(given: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in given.items() if text != ABSENT}


def named(more: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in more.items()}
