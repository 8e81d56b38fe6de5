"""No cut, no order, no number of partitions shows in an answer; and it is the one that plain Python gives."""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries import ratings
from queries.columns import from_rows, rows_of
from queries.model import Options, Query
from queries.movies import CREDITS, MOVIES, MOVIES_DATASET, OVERVIEWS, Q1, Q2, Q3, Q4, Q5, RATINGS
from tests.unit.queries.pipeline import Answer, check_cuts, check_schemas

Rows = Sequence[Any]  # tuples in the order of the schema
LABELLED = OVERVIEWS.schema.append(pa.field("label", pa.string()))

ids = st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 40, 2**40, 2**63 - 1])
countries = st.lists(st.sampled_from(["Argentina", "Argentina", "Spain", "United States of America", ""]), max_size=3)
budgets = st.none() | st.sampled_from(["0", "1", "3", str(2**60), str(10**300)])
revenues = st.none() | st.sampled_from(["0", "0.0", "7", "0.1", str(10**300)])
titles = st.sampled_from(["a", "b", "É", "\U0001f600"])
names = st.lists(st.sampled_from(["Ana", "Bo", "Cy", "", "É", *"defghijklm"]), max_size=4)
languages = st.lists(st.sampled_from(["English", "Español"]), max_size=2)
years = st.none() | st.sampled_from([1999, 2000, 2009, 2010])

movie_rows = st.lists(
    st.tuples(ids, titles, names, years, titles, countries, languages, budgets, revenues), max_size=12
)
rating_rows = st.lists(st.tuples(ids | st.integers(0, 5), st.integers(1, 10)), max_size=30)
credit_rows = st.lists(st.tuples(ids, names), max_size=12)
labels = st.sampled_from(["POSITIVE", "NEGATIVE"])
overview_rows = st.lists(st.tuples(ids, titles, st.floats(0, 1e300), labels), max_size=20)
TABLES = {
    "movies": movie_rows.map(lambda rows: from_rows(MOVIES.schema, rows)),
    "ratings": rating_rows.map(lambda rows: from_rows(RATINGS.schema, rows)),
    "credits": credit_rows.map(lambda rows: from_rows(CREDITS.schema, rows)),
    "overviews": overview_rows.map(lambda rows: from_rows(LABELLED, rows)),
}


def batches_of(query: Query) -> st.SearchStrategy[dict[str, pa.Table]]:
    return st.fixed_dictionaries({each.file.kind: TABLES[each.file.kind] for each in query.inputs})


def plain_q1(films: Rows) -> Answer:
    both = [film for film in films if {"Argentina", "Spain"} <= set(film[5]) and film[3] in range(2000, 2010)]
    return [(str(film), *rest) for film, *rest in sorted((film[0], film[1], "|".join(film[2])) for film in both)]


def plain_q2(films: Rows) -> Answer:
    sums = Counter[str]()
    for film in films:
        if len(film[5]) == 1 and film[7] is not None:
            sums[film[5][0]] += int(film[7])
    return [(name, str(total)) for name, total in sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:5]]


def plain_q3(films: Rows, rated: Rows) -> Answer:
    means = []
    for movie_id, title in {(film[0], film[1]) for film in films if "Argentina" in film[5] and (film[3] or 0) >= 2000}:
        stars = [half_stars for rated_id, half_stars in rated if rated_id == movie_id]
        if stars:
            means.append((Fraction(sum(stars), 2 * len(stars)), movie_id, title))
    if not means:
        return []
    best, worst = min(means, key=lambda row: (-row[0], row[1:])), min(means)
    return [
        (word, str(movie_id), title, repr(float(mean)))
        for word, (mean, movie_id, title) in (("highest", best), ("lowest", worst))
    ]


def plain_q4(films: Rows, cast: Rows) -> Answer:
    counts = Counter(
        actor
        for film in films
        for movie_id, actors in cast
        for actor in actors
        if film[0] == movie_id and "Argentina" in film[5] and (film[3] or 0) >= 2000
    )
    return [(name, str(count)) for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]]


def plain_q5(overviews: Rows) -> Answer:
    rates = {label: [row[2] for row in overviews if row[3] == label] for label in ("NEGATIVE", "POSITIVE")}
    return [(label, str(len(each)), repr(math.fsum(each) / len(each))) for label, each in rates.items() if each]


PLAIN: list[tuple[Query, Callable[..., Answer]]] = [
    (Q1, plain_q1),
    (Q2, plain_q2),
    (Q3, plain_q3),
    (Q4, plain_q4),
    (Q5, plain_q5),
]


@pytest.mark.parametrize(("query", "plain"), PLAIN, ids=lambda each: getattr(each, "name", ""))
@settings(deadline=None)  # this machine may be busy
@given(data=st.data(), partitions=st.integers(1, 4), rng=st.randoms(use_true_random=False))
def test_an_answer_does_not_depend_on_how_rows_are_cut(
    query: Query, plain: Callable[..., Answer], data: st.DataObject, partitions: int, rng: random.Random
) -> None:
    check_cuts(query, plain, data.draw(batches_of(query)), partitions, rng)


@settings(deadline=None)  # this machine may be busy
@given(whole=TABLES["movies"], scope=st.sampled_from(["us", "all"]), cut=st.integers(0, 12))
def test_overviews_are_chosen_row_by_row(whole: pa.Table, scope: Any, cut: int) -> None:
    select, options = MOVIES_DATASET.derived[0].select, Options(scope=scope)
    pieces = pa.concat_tables([select(whole.slice(0, cut), options), select(whole.slice(cut), options)])
    assert pieces.to_pylist() == select(whole, options).to_pylist()
    assert rows_of(pieces) == [
        (film[0], film[4], float(film[8]) / float(film[7]))
        for film in rows_of(whole)
        if film[7] not in {None, "0"} and film[8] not in {None, "0", "0.0"}
        if scope == "all" or ("English" in film[6] and "United States of America" in film[5] and (film[3] or 0) >= 2000)
    ]


@pytest.mark.parametrize("query", MOVIES_DATASET.queries, ids=lambda query: query.name)
@settings(deadline=None, max_examples=20)  # this machine may be busy
@given(data=st.data())
def test_blocks_and_partials_keep_one_schema_rows_or_none(query: Query, data: st.DataObject) -> None:
    check_schemas(query, data.draw(batches_of(query)))


@pytest.mark.parametrize("largest", [50, 5_000, 2**62])
def test_ratings_are_counted_and_grouped_alike(largest: int) -> None:
    rng = np.random.default_rng(largest)
    movie_ids, half_stars = rng.integers(0, largest, 1000), rng.integers(1, 11, 1000).astype(np.uint8)
    expected = [
        (movie_id, int(half_stars[movie_ids == movie_id].sum(dtype=int)), int((movie_ids == movie_id).sum()))
        for movie_id in np.unique(movie_ids).tolist()
    ]
    batch = pa.table([pa.array(movie_ids), pa.array(half_stars)], schema=RATINGS.schema)
    assert sorted(rows_of(ratings.pack(batch))) == expected
