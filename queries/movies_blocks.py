"""The fast way for ratings: a block of rows parsed as a whole.

Invariant: what is vouched for here is what the exact way gives, row by row, and no row of it is rejected; a row with
anything unusual in it is set aside for the exact way.

Ratings are most of the bytes that Cauce reads, so the layout in which everybody has them, `1,31,2.5,1260759144`, is
read from the ends of the lines: that takes a quarter of the places that looking for every separator would find, and
half of the time. Whatever it cannot vouch for, such as columns in another order, goes by its marks (queries/plain.py).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from queries import fields, plain
from queries.fields import WORD, Numbers, Words
from queries.movies_cleaning import RATINGS_SCHEMA
from queries.plain import LINE_END, RETURN, Mask, Signs
from queries.quotes import Places

Block = tuple[pa.Table, int, bytes]

USUAL_HEADER: Final = ("userId", "movieId", "rating", "timestamp")
COMMA, POINT, ZERO, FIVE = b",.05"
TIME_LENGTHS: Final = (9, 10)  # of a time stamp: those from 1973 to 2286
HALF_STAR: Final = 500  # thousandths
MOST_ODD: Final = 16  # a share of the rows; where there are more, the layout is another


def ratings_block(data: bytes, header: Sequence[str]) -> Block | None:
    """Film and half stars."""
    usual = _usual_block(data) if tuple(header) == USUAL_HEADER else None
    return usual or _any_block(data, header)


def _any_block(data: bytes, header: Sequence[str]) -> Block | None:
    rows = plain.read(data, header)
    if rows is None:
        return None
    movies, ratings = fields.numbers(rows.texts("movieId"), rows.texts("rating"))
    is_right = movies.are_integers & ratings.are_plain & fields.are_bare(rows.texts("timestamp"))
    half_stars, rest = np.divmod(ratings.thousandths, HALF_STAR)
    table = _table(movies.whole, half_stars, is_right & (rest == 0))
    return table, int(np.count_nonzero(is_right)), rows.apart(~is_right)


def _usual_block(data: bytes) -> Block | None:
    """A line ends in three commas at places that follow from each other, and in a rating like `2.5`. The lines that do
    are rows of four fields if there are no other commas: so the block's are counted, less those of the lines that do
    not."""
    if not data.endswith(b"\n") or b'"' in data or not data.isascii():
        return None
    signs = plain.with_margins(data)
    line_ends = np.flatnonzero(signs == LINE_END)
    ends = line_ends
    if b"\r" in data:
        ends = line_ends - 1
        if np.count_nonzero(signs == RETURN) != len(ends) or (signs[ends] != RETURN).any():
            return None
    third = ends - 1 - np.where(signs[ends - 1 - TIME_LENGTHS[1]] == COMMA, TIME_LENGTHS[1], TIME_LENGTHS[0])
    second = third - len(",2.5")
    words, digits = _digits_before(signs, second)
    first = second - 1 - digits
    starts = plain.starts_of(line_ends)
    is_right = (signs[first] == COMMA) & (signs[second] == COMMA) & (signs[third] == COMMA) & (first >= starts)
    whole, fraction = signs[second + 1], signs[third - 1]
    is_right &= (digits > 0) & (signs[third - 2] == POINT) & (whole - ZERO <= 9) & (fraction - ZERO <= 9)
    is_right &= fields.is_sign(signs[ends - 1])  # so the time stamp is not empty, whatever else it is
    odd = np.flatnonzero(~is_right)
    if len(odd) * MOST_ODD > len(ends):
        return None
    lines = [signs[start:end].tobytes() for start, end in zip(starts[odd], line_ends[odd] + 1, strict=True)]
    commas = int(np.count_nonzero(signs == COMMA)) - sum(line.count(b",") for line in lines)
    if commas != 3 * (len(ends) - len(odd)):
        return None
    half_stars = 2 * (whole - ZERO) + (fraction == FIVE)
    table = _table(fields.joined(words), half_stars, is_right & ((fraction == ZERO) | (fraction == FIVE)))
    return table, len(ends) - len(odd), b"".join(lines)


def _digits_before(signs: Signs, places: Places) -> tuple[Words, Places]:
    """The digits that end at each place, up to eight, as a word with zeros before them; and how many there are."""
    words = fields.words_at(signs, places - WORD) ^ fields.ZEROS
    others = fields.beyond(words)
    # The exponent of a double tells its highest bit: the last sign that is no digit. None: zero has an exponent, too.
    highest = (others.astype(np.float64).view(np.int64) >> 52) - 1023
    digits = np.where(others == 0, WORD, 7 - (highest >> 3))
    keep = np.where(digits > 0, 8 * (WORD - digits), 0).astype(np.uint64)
    return words >> keep << keep, digits


def _table(movie_id: Numbers, half_stars: Numbers, is_right: Mask) -> pa.Table:
    """Of the rows that some query needs."""
    is_kept = is_right & (half_stars >= 1) & (half_stars <= 10)
    if not is_kept.all():
        movie_id, half_stars = movie_id[is_kept], half_stars[is_kept]
    return pa.Table.from_arrays([pa.array(movie_id), pa.array(half_stars.astype(np.uint8))], schema=RATINGS_SCHEMA)
