"""The doorway to `plain.c`: its functions, over numpy's arrays. Python's lock is free while they run.

Invariant: what is handed over is as long and of the type that the C code takes for granted; arrays that it fills are
made here. The library is built at set-up (hatch_build.py) and named by the digest of its source, so that a stale one is
never loaded.
"""

import ctypes
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cauce.errors import ConfigError

Signs = NDArray[np.uint8]
Places = NDArray[np.int32]
Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

SOURCE: Final = Path(__file__).with_name("plain.c")
SHORTEST_RATING: Final = len(",1,0.5,1\n")
BYTES_PER_GAP: Final = 128  # in a block of ratings; with less, the layout is another
MARGIN: Final = 32  # zeros before and behind a block, so that words can be read around any place of it


def library() -> Path:
    return SOURCE.with_name(f"_plain_{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}.so")


def _load() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(library()))
    except OSError as error:
        raise ConfigError(f"{library().name} is not beside {SOURCE}: run make setup, which builds it") from error


_plain: Final = _load()
_plain.find_rows.restype = ctypes.c_int64
_plain.count_lines.restype = ctypes.c_int64
_plain.read_ratings.restype = ctypes.c_int64


def with_margins(data: bytes) -> Signs:
    return np.frombuffer(b"".join((bytes(MARGIN), data, bytes(MARGIN))), np.uint8)


def count_lines(data: bytes) -> int:
    """LF, CRLF and lone CR, also within quotes."""
    lines: int = _plain.count_lines(data, ctypes.c_int64(0), ctypes.c_int64(len(data)))
    return lines


def find_rows(
    signs: Signs, separator: str, width: int, columns: Sequence[int], *, is_simple: bool
) -> tuple[Places, Places, Places, Places] | None:
    """Of a block with its margins: where the rows of this width start and end, and a line for each of the columns with
    where its fields start and end. None where lines may not be rows."""
    size = len(signs) - 2 * MARGIN
    room = size // width + 1
    column_of = np.full(width, -1, np.int32)
    column_of[list(columns)] = np.arange(len(columns))
    fields = np.empty((2, len(columns), room), np.int32)
    rows = np.empty((2, room), np.int32)
    count = _plain.find_rows(
        _at(signs),
        ctypes.c_int64(MARGIN),
        ctypes.c_int64(MARGIN + size),
        ctypes.c_uint8(ord(separator)),
        ctypes.c_int64(width),
        _at(column_of),
        ctypes.c_int64(room),
        *map(_at, (*fields, *rows)),
        ctypes.c_int32(is_simple),
    )
    return None if count < 0 else (*rows[:, :count], *fields[:, :, :count])


def read_ratings(signs: Signs) -> tuple[Numbers, Signs, Places] | None:
    """Film and half stars of the rows of a block that are just as everybody has them; and where each stretch of others
    starts and ends. None where lines may not be rows, or many rows are others."""
    size = len(signs) - 2 * MARGIN
    room = size // SHORTEST_RATING + 1
    most_gaps = size // BYTES_PER_GAP + 1
    movies, half_stars, gaps = np.empty(room, np.int64), np.empty(room, np.uint8), np.empty(2 * most_gaps + 1, np.int32)
    count = _plain.read_ratings(
        _at(signs),
        ctypes.c_int64(MARGIN),
        ctypes.c_int64(MARGIN + size),
        _at(movies),
        _at(half_stars),
        ctypes.c_int64(most_gaps),
        _at(gaps),
    )
    if count < 0:
        return None
    # Copied: they are kept until the next transaction, and there is room for three times as many.
    return movies[:count].copy(), half_stars[:count].copy(), gaps[: int(np.argmax(gaps < 0))].reshape(-1, 2)


class Texts:
    """The fields of a column, where they stand in a block."""

    __slots__ = ("ends", "signs", "starts")

    def __init__(self, signs: Signs, starts: Places, ends: Places) -> None:
        self.signs, self.starts, self.ends = signs, np.ascontiguousarray(starts), np.ascontiguousarray(ends)

    def __len__(self) -> int:
        return len(self.starts)

    def at(self, rows: Any) -> "Texts":
        """Of the named rows, or where a mask is true."""
        return Texts(self.signs, self.starts[rows], self.ends[rows])

    @property
    def are_empty(self) -> Mask:
        return np.equal(self.starts, self.ends)

    @property
    def are_bare(self) -> Mask:
        """Not empty, and nothing to trim at either end."""
        return self._filled(_plain.find_bare, np.bool_)[0]

    def joined(self) -> tuple[Places, Signs]:
        """Copied one behind the other; and where each starts, and the last one ends."""
        offsets, texts = np.empty(len(self) + 1, np.int32), np.empty(int(np.sum(self.ends - self.starts)), np.uint8)
        _plain.copy_texts(*self._arguments(), _at(offsets), _at(texts))
        return offsets, texts

    def counts(self, sign: str) -> Places:
        """How often each has this sign."""
        counts = np.empty(len(self), np.int32)
        _plain.count_sign(*self._arguments(), ctypes.c_uint8(ord(sign)), _at(counts))
        return counts

    def numbers(self) -> tuple[Numbers, Numbers, NDArray[np.int8]]:
        """Whole parts, thousandths behind the point, and how many decimals are written: -1 where it is no number of up
        to fifteen digits and three decimals."""
        whole, fraction, decimals = self._filled(_plain.read_numbers, np.int64, np.int64, np.int8)
        return whole, fraction, decimals

    def dates(self) -> tuple[Numbers, Mask]:
        """Days since 1970, and where that is what the text says, as `2024-01-31`."""
        days, are_dates = self._filled(_plain.read_dates, np.int64, np.bool_)
        return days, are_dates

    def time_stamps(self) -> tuple[Numbers, Mask]:
        """Seconds since 1970, and where that is what the text says, as `2024-01-31 23:59:59`."""
        seconds, are_time_stamps = self._filled(_plain.read_time_stamps, np.int64, np.bool_)
        return seconds, are_time_stamps

    def _filled(self, read: Any, *types: Any) -> list[NDArray[Any]]:
        arrays = [np.empty(len(self), type_) for type_ in types]
        read(*self._arguments(), *map(_at, arrays))
        return arrays

    def _arguments(self) -> tuple[Any, ...]:
        return _at(self.signs), ctypes.c_int64(len(self)), _at(self.starts), _at(self.ends)


def _at(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
