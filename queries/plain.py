"""Blocks of plain rows, for the fast ways: no quotes, one line a row, all as wide as the header.

Invariant: what is read here is what the exact way reads. A block with bytes that are not UTF-8, or with a lone CR
outside quotes, is declined; rows with quotes, rows of another width (an empty line, too) and those that the caller
finds odd are handed back as they stood.

One pass of numpy finds the marks, separators and line ends; in a plain block each row has as many as the header, so
they make a table, and a field lies between two of them. Nothing is copied until somebody asks for a column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queries.quotes import QUOTE, Places, outside, quotes_of

LINE_END, RETURN = b"\n\r"
MARGIN: Final = 32  # zeros before and behind the block, so that a few words can be read around any place

Signs = NDArray[np.uint8]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Texts:
    """The fields of a column, where they stand in the block."""

    signs: Signs  # of the whole block, with its margins
    starts: Places
    ends: Places

    @property
    def are_empty(self) -> Mask:
        return np.equal(self.starts, self.ends)

    def column(self, rows: Any = None) -> pa.StringArray:
        """Copied; those of the named rows, a null giving a null. The rest of the block stands between two fields, as a
        text that nobody takes."""
        bounds = np.empty(2 * len(self.starts), np.int32)
        bounds[::2], bounds[1::2] = self.starts, self.ends
        texts = pa.StringArray.from_buffers(
            max(0, len(bounds) - 1), pa.py_buffer(bounds.data), pa.py_buffer(self.signs.data)
        )
        places: Any = pa.array(np.arange(len(self.starts), dtype=np.int64)) if rows is None else rows
        fields: Any = pc.multiply(places, 2)
        return texts.take(fields)


@dataclass(frozen=True, slots=True)
class Plain:
    """Rows of the right width, in the order of the block."""

    count: int
    _header: Sequence[str]
    _signs: Signs
    _marks: Places  # a line for each row
    _line_ends: Places  # of all lines
    _lines: Places | None  # of each row; None: every line is a row

    def texts(self, name: str) -> Texts:
        column = self._header.index(name)
        before = self._marks[:, column - 1] if column else starts_of(self._line_ends)[self._rows()] - 1
        ends = self._marks[:, column]
        if column == len(self._header) - 1:
            ends = ends - (self._signs[ends - 1] == RETURN)
        return Texts(self._signs, before + 1, ends)

    def apart(self, odd: Mask) -> bytes:
        """The text of the odd rows and of those that have another width."""
        if self._lines is None and not odd.any():
            return b""
        are_apart = np.ones(len(self._line_ends), np.bool_)
        are_apart[self._rows()] = odd
        lines = np.flatnonzero(are_apart)
        bounds = zip(starts_of(self._line_ends)[lines].tolist(), self._line_ends[lines].tolist(), strict=True)
        return b"".join(self._signs[start : end + 1].tobytes() for start, end in bounds)

    def _rows(self) -> Any:
        return slice(None) if self._lines is None else self._lines


def read(data: bytes, header: Sequence[str], separator: str = ",") -> Plain | None:
    """Of whole rows. None where lines may not be rows."""
    if not data.endswith(b"\n") or not _is_utf8(data):
        return None
    if len(header) == 1:  # an empty line would be a row
        return None
    signs = with_margins(data)
    marks = np.flatnonzero((signs == ord(separator)) | (signs == LINE_END))
    edges = np.empty(0, np.int64)
    if b'"' in data:
        edges = quotes_of(separator.encode()).edges(b"\n" + data) + MARGIN - 1
        if len(edges) % 2:
            return None
        marks = outside(edges, marks)
    returns = outside(edges, np.flatnonzero(signs == RETURN)) if b"\r" in data else edges[:0]
    if (signs[returns + 1] != LINE_END).any():  # a lone one ends a row, too
        return None
    width, last = len(header), np.flatnonzero(signs[marks] == LINE_END)  # the last mark of each line
    line_ends = marks[last]
    are_rows = np.diff(last, prepend=-1) == width
    if len(edges):
        are_rows[np.searchsorted(line_ends, np.flatnonzero(signs == QUOTE))] = False
    if are_rows.all():
        return Plain(len(last), header, signs, marks.reshape(-1, width), line_ends, None)
    rows = np.flatnonzero(are_rows)
    return Plain(len(rows), header, signs, marks[last[rows, None] + np.arange(1 - width, 1)], line_ends, rows)


def with_margins(data: bytes) -> Signs:
    return np.frombuffer(b"".join((bytes(MARGIN), data, bytes(MARGIN))), np.uint8)


def starts_of(line_ends: Places) -> Places:
    return np.concatenate(([MARGIN], line_ends[:-1] + 1))


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
