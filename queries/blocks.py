"""The fast way for files of plain numbers: a block of rows parsed as a whole.

Invariant: what is vouched for here is what the exact way gives, row by row, and no row of it is rejected. A row with
anything unusual in it (a blank, a sign, an empty field) is set aside for the exact way; a quote, or a line end missing,
declines the block.

numpy finds all separators of a block in one pass, and all that is checked follows from counts: if as many bytes are
below "0" as there are commas, line ends and points where they belong, then every other byte is a digit. On blocks of
1 MiB, which stay in the cache, this took about half the time of pyarrow.csv, and of polars, on one busy core and with
the checks that those leave out; on a block of 8 MB polars is about as fast.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queries.movies_cleaning import RATINGS_SCHEMA

LINE_END, COMMA, POINT, ZERO, FIVE, NINE = b"\n,.059"
WORD: Final = 8  # digits that are parsed at once

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


def ratings_block(data: bytes, header: Sequence[str]) -> tuple[pa.Table, int, bytes] | None:
    """Film and half stars. A rating is written `4` or `4.5`, a film with at most eight digits."""
    data, odd = data.replace(b"\r\n", b"\n") if b"\r" in data else data, b""
    taken = _plain_ratings(data, header)
    if taken is None and (apart := _set_aside(data, header)) is not None:
        data, odd = apart
        taken = _plain_ratings(data, header)
    return None if taken is None else (*taken, odd)


def _plain_ratings(data: bytes, header: Sequence[str]) -> tuple[pa.Table, int] | None:
    """All of the rows at once, if none of them is odd."""
    text = np.frombuffer(data + bytes(WORD), np.uint8)  # so that a whole word can be read anywhere
    ends = _field_ends(text, len(header))
    if ends is None:
        return None
    film, film_length = _field(ends, header.index("movieId"))
    rating, rating_length = _field(ends, header.index("rating"))
    _, timestamp_length = _field(ends, header.index("timestamp"))
    has_point = text[rating + 1] == POINT
    if not (
        np.count_nonzero(text[:-WORD] < ZERO) == ends.size + np.count_nonzero(has_point)
        and np.array_equal(rating_length, np.where(has_point, 3, 1))
        and film_length.min() > 0
        and film_length.max() <= WORD
        and timestamp_length.min() > 0
    ):
        return None
    movie_id = _integers(text, film, film_length)
    half_stars, parses = _half_stars(text[rating], np.where(has_point, text[rating + 2], ZERO))
    if not parses.all():  # read, and needed by no query
        movie_id, half_stars = movie_id[parses], half_stars[parses]
    return pa.Table.from_arrays([pa.array(movie_id), pa.array(half_stars)], schema=RATINGS_SCHEMA), len(ends)


def _set_aside(data: bytes, header: Sequence[str]) -> tuple[bytes, bytes] | None:
    """The plain rows and the odd ones; None if lines are not rows, or nothing would be gained."""
    if b'"' in data or b"\r" in data or not data.endswith(b"\n"):
        return None
    text = np.frombuffer(data, np.uint8)
    line_ends, commas, points = text == LINE_END, text == COMMA, text == POINT
    last = np.flatnonzero(line_ends)
    first = np.concatenate(([0], last[:-1] + 1))
    ends = np.flatnonzero(line_ends | commas)
    widths = np.diff(np.searchsorted(ends, last), prepend=-1)
    strange = np.flatnonzero((text - ZERO > 9) & ~(line_ends | commas | points))
    plain = widths == len(header)
    plain[np.searchsorted(last, strange)] = False
    ends = ends[np.repeat(plain, widths)].reshape(-1, len(header))
    starts = np.column_stack((first[plain], ends[:, :-1] + 1))
    film, rating, timestamp = (header.index(name) for name in ("movieId", "rating", "timestamp"))
    lengths = ends - starts
    has_point = text[np.minimum(starts[:, rating] + 1, len(text) - 1)] == POINT
    plain[plain] = (
        (lengths[:, film] > 0)
        & (lengths[:, film] <= WORD)
        & (lengths[:, timestamp] > 0)
        & (lengths[:, rating] == np.where(has_point, 3, 1))
        & (_in_each(np.flatnonzero(points), last)[plain] == has_point)
    )
    kept = np.repeat(plain, last - first + 1)
    return (text[kept].tobytes(), text[~kept].tobytes()) if plain.any() else None


def _in_each(places: Places, last: Places) -> Places:
    """How many of the places are in each line."""
    counts: Places = np.diff(np.searchsorted(places, last), prepend=0)
    return counts


def _field_ends(text: Bytes, width: int) -> Places | None:
    """Where the fields end, a line for each row; None if a row has another width, or there is a byte above "9"."""
    line_ends = text == LINE_END
    ends = np.flatnonzero(line_ends | (text == COMMA))
    rows, beyond = divmod(len(ends), width)
    if beyond or not rows or text.max() > NINE or ends[-1] != len(text) - WORD - 1:
        return None
    by_row: Places = ends.reshape(rows, width)
    has_width = np.count_nonzero(line_ends) == rows and line_ends[by_row[:, -1]].all()
    return by_row if has_width else None


def _field(ends: Places, column: int) -> tuple[Places, Places]:
    """Where the fields of a column start, and how long they are."""
    before = ends[:, column - 1] if column else np.concatenate(([-1], ends[:-1, -1]))
    return before + 1, ends[:, column] - before - 1


def _integers(text: Bytes, starts: Places, lengths: Places) -> NDArray[np.int64]:
    """Up to eight digits each. Digits are read as one number of 64 bits whose lowest byte is the first digit; shifting
    puts zeros before them, and neighbours are joined in pairs: 8 digits, 4 of two, 2 of four, 1 of eight."""
    words = np.ndarray(len(text) - WORD + 1, np.dtype("<u8"), text.data, strides=(1,))
    joined = (words[starts] ^ np.uint64(0x3030303030303030)) << (8 * (WORD - lengths)).astype(np.uint64)
    joined = joined * np.uint64(10 * 2**8 + 1) >> np.uint64(8)
    joined = (joined & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(100 * 2**16 + 1) >> np.uint64(16)
    joined = (joined & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(10000 * 2**32 + 1) >> np.uint64(32)
    return joined.view(np.int64)


def _half_stars(whole: Bytes, fraction: Bytes) -> tuple[Bytes, NDArray[np.bool_]]:
    half_stars = 2 * (whole - ZERO) + (fraction == FIVE)
    parses = ((fraction == ZERO) | (fraction == FIVE)) & (half_stars >= 1) & (half_stars <= 10)
    return half_stars, parses
