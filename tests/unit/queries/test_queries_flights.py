"""The five answers on small examples: conditions, order and ties, and no rows at all."""

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from gateway.parse import Parser
from infra.generate.flights import generate
from infra.oracle import flights as oracle
from infra.oracle.rows import as_csv
from queries.flights import AIRPORTS, FLIGHTS_DATASET, ITINERARIES, Q1, Q2, Q3, Q4, Q5
from queries.flights_answers import NEVER, far_miles, first_places
from queries.model import File, Listing, Query
from tests.unit.queries.pipeline import Batches, answer, answer_of_pieces, batch

THREE = "A||B||C||end"
PLACES = [("LAX", "33.9425", "-118.408056"), ("SFO", "37.618889", "-122.375"), ("N", "90", "0"), ("S", "-90", "0")]


def flight(
    leg: str = "1",
    route: str = "LAX SFO",
    segments: str = THREE,
    duration: str = "PT1H",
    base: str = "1.00",
    total: str = "1.00",
    distance: str = "",
) -> list[str]:
    start, end = route.split(" ")
    return [leg, start, end, duration, base, total, distance, segments]


def flights(*rows: list[str], airports: Sequence[Sequence[str]] = PLACES) -> Batches:
    return {"itineraries": batch(ITINERARIES, rows), "airports": batch(AIRPORTS, airports)}


def test_query_1_takes_flights_with_three_stopovers_or_more_and_a_fare() -> None:
    rows = flights(
        flight("b", total="1028.6"),
        flight("a", "A B", "X||Y||Z||W||B", total="5"),
        flight("c", segments="A||B||C"),
        flight("d", segments=""),
        flight("e", total="1.234"),
        flight("f", total=""),
        flight("g", duration="", base="", total="0"),
    )
    assert answer(Q1, rows) == [
        ("a", "A-B", "5.00", "X|Y|Z|W"),
        ("b", "LAX-SFO", "1028.60", "A|B|C"),
        ("g", "LAX-SFO", "0.00", "A|B|C"),
    ]


def test_query_1_keeps_duplicates_and_ties_go_by_route_then_fare_by_value_then_stopovers() -> None:
    rows = flights(
        flight("1", "B A"),
        flight("1", "A C", total="10.00"),
        flight("1", "A C", total="9.00", segments="Z||B||C||D"),
        flight("1", "A C", total="9.0"),
        flight("1", "A C", total="9"),
        flight("É"),
        flight("z"),
        flight("Z"),
        flight("\U0001f600"),
        flight("\uffff"),
    )
    assert [(leg, route, fare, stops[0]) for leg, route, fare, stops in answer(Q1, rows)] == [
        ("1", "A-C", "9.00", "A"),
        ("1", "A-C", "9.00", "A"),
        ("1", "A-C", "9.00", "Z"),
        ("1", "A-C", "10.00", "A"),
        ("1", "B-A", "1.00", "A"),
        *((leg, "LAX-SFO", "1.00", "A") for leg in ("Z", "z", "É", "\uffff", "\U0001f600")),
    ]


def test_query_2_takes_flights_of_more_than_four_times_the_direct_distance() -> None:
    """337.43 miles from Los Angeles to San Francisco: 1349.7 is the limit."""
    rows = flights(
        flight("b", distance="1350", segments="SFO", total="", duration=""),
        flight("a", distance="01350.0"),
        flight("c", distance="1349"),
        flight("d", distance=""),
        flight("e", distance="1350.9"),
        flight("f", "SFO LAX", distance="9000"),
        flight("g", distance="-9000"),
    )
    assert answer(Q2, rows) == [("a", "LAX-SFO", "1350"), ("b", "LAX-SFO", "1350"), ("f", "SFO-LAX", "9000")]


def test_query_2_knows_no_airport_without_a_place_and_the_first_row_counts() -> None:
    places = [("LAX", "33.9", "-118.4"), ("LAX", "x", "0"), ("BAD", "x", "0"), ("BAD", "1", "1"), ("lax", "1", "1")]
    rows = flights(
        *(flight(route, route, distance="99999") for route in ("LAX LAX", "LAX BAD", "BAD LAX", "LAX ?", "? ?")),
        flight("near", "LAX lax", distance="99999"),
        airports=places,
    )
    assert answer(Q2, rows) == [("LAX LAX", "LAX-LAX", "99999"), ("near", "LAX-lax", "99999")]


def test_query_2_takes_any_positive_distance_from_an_airport_to_itself() -> None:
    rows = flights(
        flight("a", "N N", distance="1"), flight("b", "LAX LAX", distance="1"), flight("c", "LAX LAX", distance="0")
    )
    assert answer(Q2, rows) == [("a", "N-N", "1"), ("b", "LAX-LAX", "1")]


def test_query_2_compares_integers_that_are_no_doubles() -> None:
    limit = far_miles(90.0, 0.0, -90.0, 0.0)
    assert limit == int(4 * 20003931.4586 / 1609.344)  # half of the meridian
    rows = flights(*(flight(str(n), "N S", distance=str(n)) for n in (limit, limit + 1, 2**63 - 1)))
    assert answer(Q2, rows) == [(str(n), "N-S", str(n)) for n in (limit + 1, 2**63 - 1)]
    assert far_miles(None, None, 0.0, 0.0) == far_miles(0.0, 0.0, None, None) == NEVER
    assert answer(Q2, flights(flight("a", "N ?", distance=str(2**63 - 1)))) == []


def test_query_3_finds_the_two_fastest_flights_of_a_route() -> None:
    rows = flights(
        flight("slow", duration="PT3H1M"),
        flight("b", duration="PT3H", total="none"),
        flight("a", duration="P0DT181M"),
        flight("few", duration="PT1H", segments="A||B||C"),
        flight("null", duration="PT"),
        flight("back", "SFO LAX", duration="P1DT"),
    )
    assert answer(Q3, rows) == [
        ("LAX-SFO", "b", "A|B|C", "PT3H"),
        ("LAX-SFO", "a", "A|B|C", "P0DT181M"),
        ("SFO-LAX", "back", "A|B|C", "P1DT"),
    ]


def test_query_3_gives_a_tie_to_the_leg_then_stopovers_then_duration_and_one_leg_may_take_both_places() -> None:
    rows = flights(
        flight("b", duration="PT60M"),
        flight("a", duration="PT60M", segments="B||B||B||B"),
        flight("a", duration="PT60M"),
        flight("a", duration="PT1H"),
        flight("a", duration="PT1H"),
    )
    assert answer(Q3, rows) == [("LAX-SFO", "a", "A|B|C", "PT1H")] * 2


def test_routes_that_are_written_alike_are_two_routes() -> None:
    rows = flights(
        *(flight(leg, "A-B C", duration="PT2H", total="30") for leg in "xyz"),
        *(flight(leg, "A B-C", duration="PT1H", total="20") for leg in "xyz"),
        flight("cheap", "D E", total="0", duration=""),
    )
    assert [leg for _, leg, _, _ in answer(Q3, rows)] == ["x", "y", "x", "y"]
    assert answer(Q4, rows) == [("A-B-C", "30.0", "30.00")]
    assert answer(Q4, flights(*(flight(route=route, total=total) for route, total in TWO_ROUTES))) == [
        ("A-B-C", "20.0", "20.00"),
        ("A-B-C", "30.0", "30.00"),
    ]


TWO_ROUTES = (("A-B C", "30"), ("A B-C", "20"), ("D E", "0"), ("D E", "0"))


def test_query_4_takes_fares_above_the_mean_of_all_flights() -> None:
    rows = flights(
        flight(route="B C", total="0.01"),
        flight(route="A B", total="3.00"),
        flight(route="A B", total="3.01"),
        flight(route="A B", total="4.1"),
        flight(route="B C", total="4.88"),
        flight(route="B C", total=""),
        flight(route="B C", total="9.999"),
    )
    assert answer(Q4, rows) == [("A-B", "3.555", "4.10"), ("B-C", "4.88", "4.88")]


def test_query_4_has_no_row_where_all_fares_are_the_mean() -> None:
    assert answer(Q4, flights(flight(total="3.33"), flight(total="3.33"), flight("2", "A B", total="3.33"))) == []


def test_query_4_is_exact_where_doubles_are_not() -> None:
    large = 2**63 - 1
    fares = [large, large - 1, large - 1]
    rows = flights(*(flight(total=f"{cents // 100}.{cents % 100:02d}") for cents in fares))
    assert answer(Q4, rows) == [("LAX-SFO", repr(large / 100), "92233720368547758.07")]


def test_query_5_finds_the_most_frequent_fares_of_an_airport_in_the_order_of_their_value() -> None:
    rows = flights(
        *(flight(route=f"B {end}", base=base) for end, base in zip("xyz", ("10.00", "9.5", "9.50"), strict=True)),
        *(flight(route="B w", base=base, total="") for base in ("10", "1.00", "", "1.000", "-1.00", "-1.00", "-1.00")),
        flight(route="A B", base="0"),
    )
    assert answer(Q5, rows) == [("A", "0.00", "1"), ("B", "9.50", "2"), ("B", "10.00", "2")]


@pytest.mark.parametrize("query", FLIGHTS_DATASET.queries, ids=lambda query: query.name)
def test_no_rows_give_an_answer_with_no_rows(query: Query) -> None:
    assert answer(query, flights()) == []
    assert answer(query, flights(airports=())) == []
    assert answer(Q2, flights(flight(distance="9"), airports=())) == []


def test_the_first_row_of_an_airport_counts_however_blocks_are_grouped() -> None:
    rows = batch(AIRPORTS, [("A", "1", "1"), ("B", "x", "1"), ("A", "2", "2"), ("B", "2", "2"), ("C", "3", "3")])
    fold = Q2.inputs[0].fold
    blocks = [fold(rows.slice(place, 1), None) for place in range(5)]  # type: ignore[arg-type]  # it is not looked at
    left = first_places(pa.concat_tables([first_places(pa.concat_tables(blocks[:3])), *blocks[3:]]))
    right = first_places(pa.concat_tables([*blocks[:2], first_places(pa.concat_tables(blocks[2:]))]))
    assert left == right == first_places(pa.concat_tables(blocks))
    assert left["latitude"].to_pylist() == [1.0, None, 3.0]


def test_the_dataset_names_its_files_and_queries() -> None:
    assert [query.name for query in FLIGHTS_DATASET.queries] == [f"flights-q{number}" for number in range(1, 6)]
    assert [file.filename for file in FLIGHTS_DATASET.files] == ["airports-codepublic.csv", "itineraries.csv"]
    assert all(file.batch_schema.field(file.key).type == pa.int64() for file in FLIGHTS_DATASET.all_files)
    for query in (Q1, Q2):
        assert isinstance(query, Listing)
        assert len([each for each in query.inputs if not each.file.is_broadcast]) == 1


def parsed(folder: Path, file: File) -> pa.Table:
    parser = Parser(file)
    pieces = parser.feed((folder / file.filename).read_bytes()), parser.finish()
    return pa.concat_tables([piece.table for piece in pieces])


def check_against_the_oracle(folder: Path) -> None:
    rows = {file.kind: parsed(folder, file) for file in FLIGHTS_DATASET.files}
    rows["airports"] = first_places(rows["airports"])  # for pieces are put together in any order here
    expected = oracle.answer(folder).files
    rng = random.Random(3)
    for query in FLIGHTS_DATASET.queries:
        lines = answer_of_pieces(query, rows, 4, rng)
        assert as_csv(",".join(query.header), lines) == expected[f"{query.name}.csv"]
        assert lines


def test_generated_rows_give_the_oracles_bytes(tmp_path: Path) -> None:
    generate(tmp_path, rows=3000, seed=11)
    check_against_the_oracle(tmp_path)


REAL = Path(__file__).parents[4] / "shared" / "data" / "flights"


@pytest.mark.skipif(not REAL.is_dir(), reason=f"the real rows are not at {REAL}: NOTHING REAL WAS CHECKED")
def test_real_rows_give_the_oracles_bytes() -> None:
    check_against_the_oracle(REAL)
