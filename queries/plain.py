"""Blocks of plain rows, for the fast ways: no quoted fields, one line a row, all as wide as the header.

Invariant: what is read here is what the exact way reads. A block with bytes that are not UTF-8, or with a lone CR
outside quotes, is declined; rows with quoted fields, rows of another width (an empty line, too) and those that the
caller finds odd are handed back as they stood.

One pass of compiled code finds the rows and where the wanted fields lie (plain.c). Nothing is copied until somebody
asks for a column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queries.compiled import MARGIN, Mask, Numbers, Places, Signs, Texts, find_rows, with_margins


@dataclass(frozen=True, slots=True)
class Plain:
    """Rows of the right width, in the order of the block."""

    columns: Sequence[Texts]  # that were asked for
    _signs: Signs
    _starts: Places  # of the rows
    _ends: Places

    @property
    def count(self) -> int:
        return len(self._starts)

    def apart(self, odd: Mask) -> bytes:
        """The text of the odd rows, and all that lies between the rows."""
        starts, ends = self._starts, self._ends
        if odd.any():
            starts, ends = starts[~odd], ends[~odd]
        before = np.concatenate(([MARGIN], ends))
        after = np.concatenate((starts, [len(self._signs) - MARGIN]))
        gaps = np.flatnonzero(before < after)
        return b"".join(self._signs[before[gap] : after[gap]].tobytes() for gap in gaps.tolist())


def read(data: bytes, header: Sequence[str], columns: Sequence[str], separator: str = ",") -> Plain | None:
    """Of whole rows. None where lines may not be rows."""
    if not data.endswith(b"\n") or not _is_utf8(data):
        return None
    if len(header) == 1:  # an empty line would be a row
        return None
    signs = with_margins(data)
    places = [header.index(column) for column in columns]
    is_simple = b'"' not in data and b"\r" not in data
    found = find_rows(signs, separator, len(header), places, is_simple=is_simple)
    if found is None:
        return None
    row_starts, row_ends, starts, ends = found
    return Plain([Texts(signs, *both) for both in zip(starts, ends, strict=True)], signs, row_starts, row_ends)


def strings(texts: Texts, are_set: Mask | None = None) -> pa.StringArray:
    """Copied into a column; null where a mask says that they are not set."""
    are_valid = None
    if are_set is not None:
        texts = Texts(texts.signs, texts.starts, np.where(are_set, texts.ends, texts.starts))
        are_valid = _buffer(np.packbits(are_set, bitorder="little"))
    offsets, signs = texts.joined()
    return pa.StringArray.from_buffers(len(texts), _buffer(offsets), _buffer(signs), are_valid)


@dataclass(frozen=True, slots=True)
class Decimals:
    """Numbers like `862`, `862.0`, `78.125`: up to fifteen digits, and up to three decimals behind a point. What is
    none has 0 as its whole part."""

    whole: Numbers
    fraction: Numbers  # in thousandths
    decimals: NDArray[np.int8]  # how many are written; -1 where it is none

    @classmethod
    def of(cls, texts: Texts) -> "Decimals":
        return cls(*texts.numbers())

    @property
    def are_plain(self) -> Mask:
        return np.greater_equal(self.decimals, 0)

    @property
    def are_integers(self) -> Mask:
        return self.are_plain & np.equal(self.fraction, 0)

    @property
    def thousandths(self) -> Numbers:
        return self.whole * 1000 + self.fraction


def _buffer(array: Any) -> pa.Buffer:
    return pa.py_buffer(array)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
