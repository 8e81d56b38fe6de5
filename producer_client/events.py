"""Server-sent events, as far as the gateway speaks them: named events with one JSON text, and comments."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

MAX_LINE_BYTES: Final = 16 * 1024 * 1024  # the JSON of a whole session is some kilobytes
LINE_END: Final = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)  # a \r at the end may be half of a \r\n


@dataclass(frozen=True, slots=True)
class Event:
    name: str  # empty: a comment, which only says that the gateway is alive
    data: str = ""


def parse(pieces: Iterable[bytes]) -> Iterator[Event]:
    """Events out of a body that may be cut anywhere; one that lacks its blank line is not given out."""
    name, data = "", list[str]()
    for line in _lines(pieces):
        key, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield Event(name or "message", "\n".join(data))
            name, data = "", []
        elif not key:
            yield Event("")
        elif key == "event":
            name = value
        elif key == "data":
            data.append(value)


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for piece in pieces:
        *lines, rest = LINE_END.split(rest + piece)
        for line in lines:
            yield line.decode("utf-8", "replace")
        if len(rest) > MAX_LINE_BYTES:
            return
