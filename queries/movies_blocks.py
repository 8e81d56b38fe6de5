"""The fast way for ratings: a block of rows parsed as a whole.

Invariant: what is vouched for here is what the exact way gives, row by row, and no row of it is rejected; a row with
anything unusual in it is set aside for the exact way.

Ratings are most of the bytes that Cauce reads, so the layout in which everybody has them is read in one pass. A block
for which that cannot vouch, such as one with columns in another order, goes by its fields (queries/plain.py).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from queries import plain
from queries.compiled import Numbers, Signs, read_ratings, with_margins
from queries.movies_cleaning import RATING_COLUMNS, RATINGS_SCHEMA
from queries.plain import Decimals

Block = tuple[pa.Table, int, bytes]

USUAL_HEADER: Final = ("userId", "movieId", "rating", "timestamp")
MOST_ODD: Final = 16  # a share of the bytes; where there are more, the layout is another
HALF_STAR: Final = 500  # thousandths
MOST_HALF_STARS: Final = 10


def ratings_block(data: bytes, header: Sequence[str]) -> Block | None:
    """Film and half stars, of the rows that some query needs."""
    usual = _usual_block(data) if tuple(header) == USUAL_HEADER else None
    return usual or _any_block(data, header)


def _usual_block(data: bytes) -> Block | None:
    if not data.endswith(b"\n") or not data.isascii():
        return None
    signs = with_margins(data)
    taken = read_ratings(signs)
    if taken is None:
        return None
    movie_id, half_stars, gaps = taken
    if np.sum(gaps[:, 1] - gaps[:, 0]) * MOST_ODD > len(data):
        return None
    odd = b"".join(signs[start:end].tobytes() for start, end in gaps.tolist())
    return _table(movie_id, half_stars), len(movie_id), odd


def _any_block(data: bytes, header: Sequence[str]) -> Block | None:
    rows = plain.read(data, header, RATING_COLUMNS)
    if rows is None:
        return None
    movie, rating, time_stamp = rows.columns
    movies, ratings = map(Decimals.of, (movie, rating))
    is_right = movies.are_integers & ratings.are_plain & time_stamp.are_bare
    half_stars, rest = np.divmod(ratings.thousandths, HALF_STAR)
    is_kept = is_right & (rest == 0) & (half_stars >= 1) & (half_stars <= MOST_HALF_STARS)
    table = _table(movies.whole[is_kept], half_stars[is_kept].astype(np.uint8))
    return table, int(np.count_nonzero(is_right)), rows.apart(~is_right)


def _table(movie_id: Numbers, half_stars: Signs) -> pa.Table:
    return pa.Table.from_arrays([pa.array(movie_id), pa.array(half_stars)], schema=RATINGS_SCHEMA)
