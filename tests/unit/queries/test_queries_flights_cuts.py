"""No cut, no order, no number of partitions shows in an answer; and it is the one that plain Python gives."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from geographiclib.geodesic import Geodesic  # type: ignore[import-untyped]  # it ships no types
from hypothesis import given, settings
from hypothesis import strategies as st

from queries.columns import from_rows
from queries.flights import AIRPORTS, FLIGHTS_DATASET, ITINERARIES, Q1, Q2, Q3, Q4, Q5
from queries.keys import text_key
from queries.model import Query
from tests.unit.queries.pipeline import Answer, check_cuts, check_schemas

Rows = Sequence[Any]  # tuples in the order of the schema

CODES = ["LAX", "SFO", "A", "A-B", "B", "B-A", "É"]
PAIRS = [(start, end) for start in CODES for end in CODES[:4]]  # A-B to A and A to B-A are written alike
LONG = [
    (stopovers, *duration)
    for stopovers in ("A|B|C", "A|B|D", "||")
    for duration in ((None, None), ("PT1H", 60), ("PT60M", 60), ("PT9M", 9))
]
POINTS = [(33.9425, -118.408056), (37.618889, -122.375), (0.0, 0.0), (90.0, 7.5), (-12.25, 179.5), (None, None)]

cents = st.sampled_from([None, 0, 0, 1, 1, 2, 2, 99, 100, 2**53 + 1, 2**63 - 1])
miles = st.sampled_from([None, -1, 0, 1, 1500, 5000, 30_000, 2**63 - 1])
itineraries = st.builds(
    lambda leg, pair, long, base, total, distance: (text_key("-".join(pair)), leg, *pair, *long, base, total, distance),
    st.sampled_from(["a", "b", "É", "\U0001f600"]),
    st.sampled_from([("A", "B"), ("LAX", "SFO"), *PAIRS]),
    st.sampled_from([(None, None, None), *LONG]),
    cents,
    cents,
    miles,
)
airports = st.permutations(POINTS).map(
    lambda points: [(text_key(code), code, *point) for code, point in zip(CODES, points, strict=False)]
)
TABLES = {
    "itineraries": st.lists(itineraries, max_size=14).map(lambda rows: from_rows(ITINERARIES.schema, rows)),
    "airports": airports.map(lambda rows: from_rows(AIRPORTS.schema, rows)),
}


def batches_of(query: Query) -> st.SearchStrategy[dict[str, pa.Table]]:
    return st.fixed_dictionaries({each.file.kind: TABLES[each.file.kind] for each in query.inputs})


def money(amount: int) -> str:
    return f"{amount // 100}.{amount % 100:02d}"


def plain_q1(rows: Rows) -> Answer:
    found = sorted((row[1], f"{row[2]}-{row[3]}", row[8], row[4]) for row in rows if None not in (row[4], row[8]))
    return [(leg, route, money(fare), stopovers) for leg, route, fare, stopovers in found]


def plain_q2(known: Rows, rows: Rows) -> Answer:
    places = {code: place for _, code, *place in known if None not in place}
    found = []
    for row in rows:
        if row[2] in places and row[3] in places and row[9] is not None:
            metres = Geodesic.WGS84.Inverse(*places[row[2]], *places[row[3]])["s12"]
            if row[9] > 4 * (metres / 1609.344):
                found.append((row[1], f"{row[2]}-{row[3]}", row[9]))
    return [(leg, route, str(distance)) for leg, route, distance in sorted(found)]


def plain_q3(rows: Rows) -> Answer:
    found: list[Any] = []
    for pair in {(row[2], row[3]) for row in rows}:
        of_pair = [row for row in rows if (row[2], row[3]) == pair and row[6] is not None]
        found += sorted(("-".join(pair), row[6], row[1], row[4], row[5]) for row in of_pair)[:2]
    return [(route, leg, stopovers, duration) for route, _, leg, stopovers, duration in sorted(found)]


def plain_q4(rows: Rows) -> Answer:
    fares = [row[8] for row in rows if row[8] is not None]
    found = []
    for pair in {(row[2], row[3]) for row in rows}:
        of_pair = [row[8] for row in rows if (row[2], row[3]) == pair and row[8] is not None]
        dear = [fare for fare in of_pair if fare > Fraction(sum(fares), len(fares))]
        if dear:
            found.append(("-".join(pair), float(Fraction(sum(dear), 100 * len(dear))), max(dear)))
    return [(route, repr(mean), money(highest)) for route, mean, highest in sorted(found)]


def plain_q5(rows: Rows) -> Answer:
    lines: Answer = []
    for start in sorted({row[2] for row in rows}):
        counts = Counter(row[7] for row in rows if row[2] == start and row[7] is not None)
        most = [fare for fare in counts if counts[fare] == max(counts.values())]
        lines += [(start, money(fare), str(counts[fare])) for fare in sorted(most)]
    return lines


PLAIN: list[tuple[Query, Callable[..., Answer]]] = [
    (Q1, plain_q1),
    (Q2, plain_q2),
    (Q3, plain_q3),
    (Q4, plain_q4),
    (Q5, plain_q5),
]


@pytest.mark.parametrize(("query", "plain"), PLAIN, ids=lambda each: getattr(each, "name", ""))
@settings(deadline=None, max_examples=50)  # this machine may be busy
@given(data=st.data(), partitions=st.integers(1, 4), rng=st.randoms(use_true_random=False))
def test_an_answer_does_not_depend_on_how_rows_are_cut(
    query: Query, plain: Callable[..., Answer], data: st.DataObject, partitions: int, rng: random.Random
) -> None:
    """The codes of airports are distinct here; that the first of two counts has a test of its own."""
    check_cuts(query, plain, data.draw(batches_of(query)), partitions, rng)


@pytest.mark.parametrize("query", FLIGHTS_DATASET.queries, ids=lambda query: query.name)
@settings(deadline=None, max_examples=10)  # this machine may be busy
@given(data=st.data())
def test_blocks_and_partials_keep_one_schema_rows_or_none(query: Query, data: st.DataObject) -> None:
    check_schemas(query, data.draw(batches_of(query)))
