"""Bytes of a CSV file, arriving in any pieces, cut into whole rows.

Invariant: how the pieces were cut changes nothing, and every byte is scanned once, however long its row is. (Whoever
resumes from a stored tail scans that tail once more.)

Rows end where Python's `csv.reader` ends them, over a file opened with newline="": at LF, at CRLF and at a lone CR,
outside quotes (queries/quotes.py). All of these signs are ASCII, hence no byte of a longer UTF-8 character, and a cut
through a character does no harm.
"""

from codecs import BOM_UTF8
from typing import Final

import numpy as np

from cauce.errors import BadUpload
from queries.compiled import count_lines
from queries.quotes import Places, outside, quotes_of

MAX_ROW_BYTES: Final = 4 << 20  # with its line end. A tail is stored with the upload's progress, and is no longer
BLOCK_BYTES: Final = 2 << 20  # each costs a hundred calls of numpy and Arrow; below MAX_ROW_BYTES, see `Rows.cut`

LF, CR = b"\n\r"

# What came before, as far as quotes are concerned: scanning these bytes leads to the same state.
FIELD_START: Final = b"\n"  # a quote opens a field; behind a quote that closed one, it is the other half of ""
PLAIN: Final = b"x"  # a quote is text
QUOTED: Final = b'\n"'  # a quote closes the field, or is the first half of ""


class Rows:
    """Takes pieces, gives whole rows; the unfinished row stays in `tail`, and starts in `line`."""

    def __init__(self, file: str, separator: str = ",", tail: bytes = b"", line: int = 1, *, at_start: bool) -> None:
        """`at_start`: the tail, or the first piece, is the start of the file and may have a byte order mark."""
        self.line = line
        self._file = file
        self._at_start = at_start
        self._tail = bytearray()  # scanned
        self._held = b""  # not scanned yet, as it takes the next byte to tell: a CR at the end, a part of a BOM
        self._ends = Ends(separator.encode())
        for at in range(0, len(tail), BLOCK_BYTES):
            if self.cut(tail[at : at + BLOCK_BYTES]):
                raise ValueError(f"{file}, line {line}: a tail is one unfinished row, this one has more")

    @property
    def tail(self) -> bytes:
        return bytes(self._tail) + self._held

    def cut(self, piece: bytes) -> bytes:
        """The rows that end in this piece, whole. A piece has at most BLOCK_BYTES: then only the first of these rows
        can be too long, or the tail where none ends."""
        data, start = self._hold(self._held + piece)
        first, last = self._ends.row_ends(data, start)
        if not last:
            self._tail += data
            self._check_length(len(self._tail))
            return b""
        self._check_length(len(self._tail) + first)
        whole = b"".join((self._tail, memoryview(data)[:last]))
        self._tail = bytearray(memoryview(data)[last:])
        self.line += count_lines(whole)
        return whole

    def close(self) -> bytes:
        """The last row, where the file ends without a line end."""
        whole = self.tail
        self._check_length(len(whole))
        if self._ends.before == QUOTED:
            raise BadUpload(self._file, self.line, "a quoted field of this row is never closed; add the quote")
        self._tail, self._held = bytearray(), b""
        self.line += count_lines(whole)
        return whole

    def _hold(self, data: bytes) -> tuple[bytes, int]:
        """What of the data can be scanned now, and from where: a byte order mark is not part of the first field."""
        start = 0
        self._held = b""
        if self._at_start:
            if len(data) < len(BOM_UTF8) and BOM_UTF8.startswith(data):
                self._held = data
                return b"", 0
            self._at_start = False
            start = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0
        if data.endswith(b"\r"):
            self._held = b"\r"
            data = data[:-1]
        return data, start

    def _check_length(self, length: int) -> None:
        if length > MAX_ROW_BYTES:
            reason = f"this row is longer than {MAX_ROW_BYTES >> 20} MiB; is a quote missing that closes a field?"
            raise BadUpload(self._file, self.line, reason)


class Ends:
    """Finds the ends of rows; remembers from one piece to the next whether a quoted field is open."""

    def __init__(self, separator: bytes) -> None:
        self.before = FIELD_START
        self._quotes = quotes_of(separator)

    def row_ends(self, data: bytes, start: int = 0) -> tuple[int, int]:
        """Behind the first and behind the last line end outside quotes; 0 and 0 where there is none.

        The data has no CR at its end: it takes the next byte to tell whether the row ends there."""
        if start == len(data):
            return 0, 0
        if self.before in {FIELD_START, PLAIN} and b'"' not in data:  # most blocks of most files
            self.before = self._after_plain(data)
            line_feed = data.rfind(b"\n", start)
            last = max(line_feed, data.rfind(b"\r", max(line_feed, start)))
            return (_first_end(data, start), last + 1) if last >= 0 else (0, 0)
        text = self.before + data[start:]
        shift = start - len(self.before)
        edges = self._quotes.edges(text)
        ends = _ends_outside(text, edges, len(self.before))
        closed = len(edges) > 0 and edges[-1] == len(text) - 1
        self.before = QUOTED if len(edges) % 2 else FIELD_START if closed else self._after_plain(text)
        return (_first_end(text, int(ends[0])) + shift, int(ends[-1]) + 1 + shift) if len(ends) else (0, 0)

    def _after_plain(self, text: bytes) -> bytes:
        return FIELD_START if text[-1] in self._quotes.starts else PLAIN


def _ends_outside(text: bytes, edges: Places, start: int) -> Places:
    signs = np.frombuffer(text, np.uint8)
    return outside(edges, np.flatnonzero((signs[start:] == LF) | (signs[start:] == CR)) + start)


def _first_end(text: bytes, start: int) -> int:
    """Behind the first line end from here on; there is one."""
    line_feed = text.find(b"\n", start)
    carriage_return = text.find(b"\r", start, line_feed if line_feed >= 0 else len(text))
    return 1 + (line_feed if carriage_return in {-1, line_feed - 1} else carriage_return)
