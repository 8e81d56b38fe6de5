"""What is kept of a row of the films' three files, and why a row is rejected.

Invariant: the outcome depends on this row only. The first reason counts, in the order of the columns below; a field
that is present and does not parse is null (a list: empty), and the row stays for the queries that do not need it.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from queries.columns import schema
from queries.literals import names
from queries.model import Reason, Rejected, Row
from queries.text import day, decimal, half_stars, integer, whole

MOVIE_COLUMNS: Final = (
    *("id", "title", "genres", "release_date", "overview"),
    *("production_countries", "spoken_languages", "budget", "revenue"),
)
RATING_COLUMNS: Final = ("movieId", "rating", "timestamp")
CREDITS_COLUMNS: Final = ("id", "cast")

NAMES: Final = pa.list_(pa.string())
MOVIES_SCHEMA: Final = schema(
    movie_id=pa.int64(),
    title=pa.string(),
    genres=NAMES,
    year=pa.int16(),  # or null
    overview=pa.string(),
    countries=NAMES,
    languages=NAMES,
    budget=pa.string(),  # or null; digits: an integer of any size
    revenue=pa.string(),  # or null; a decimal ≥ 0 as it is written
)
RATINGS_SCHEMA: Final = schema(movie_id=pa.int64(), half_stars=pa.uint8())
CREDITS_SCHEMA: Final = schema(movie_id=pa.int64(), cast=NAMES)


def clean_movie(fields: Sequence[str]) -> Row | Rejected:
    texts = [field.strip() for field in fields]
    movie_id = integer(texts[0])
    if texts[0] and movie_id is None:
        return Rejected(Reason("id is not an integer"))
    if "" in texts:
        return _missing(MOVIE_COLUMNS, texts)
    _, title, genres, release_date, overview, countries, languages, budget, revenue = texts
    released = day(release_date)
    return (
        movie_id,
        title,
        names(genres),
        released and released.year,
        overview,
        names(countries),
        names(languages),
        whole(budget),
        decimal(revenue),
    )


def clean_rating(fields: Sequence[str]) -> Row | Rejected | None:
    texts = [field.strip() for field in fields]
    if "" in texts:
        return _missing(RATING_COLUMNS, texts)
    row = integer(texts[0]), half_stars(texts[1])
    return None if None in row else row


def clean_credits(fields: Sequence[str]) -> Row | Rejected | None:
    texts = [field.strip() for field in fields]
    if "" in texts:
        return _missing(CREDITS_COLUMNS, texts)
    movie_id = integer(texts[0])
    return None if movie_id is None else (movie_id, names(texts[1]))


def _missing(columns: Sequence[str], texts: Sequence[str]) -> Rejected:
    return Rejected(Reason(f"no {columns[texts.index('')]}"))
