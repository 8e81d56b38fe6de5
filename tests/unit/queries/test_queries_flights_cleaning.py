"""What is kept of a flight and of an airport, what is null, and which reason counts."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries.columns import from_rows
from queries.flights import AIRPORTS, ITINERARIES
from queries.flights_cleaning import routes
from queries.keys import text_key, text_keys
from queries.model import Reason, Rejected
from queries.text import coordinate, duration_minutes, fare_cents

FLIGHT = {
    "legId": " 620cd514 ",
    "startingAirport": "\tLAX",
    "destinationAirport": "ATL\u3000",
    "travelDuration": " PT4H19M ",
    "baseFare": " 943.26",
    "totalFare": "1028.61 ",
    "totalTravelDistance": " 1943.0 ",
    "segmentsArrivalAirportCode": " SFO||DEN|| ORD ||ATL ",
}
CLEAN = (text_key("LAX-ATL"), "620cd514", "LAX", "ATL", "SFO|DEN| ORD ", "PT4H19M", 259, 94326, 102861, 1943)
PLACE_OF = {name: place for place, name in enumerate(ITINERARIES.schema.names)}


def flight(**fields: str) -> list[str]:
    return list((FLIGHT | fields).values())


def rejected(reason: str) -> Rejected:
    return Rejected(Reason(reason))


def test_a_flight_is_kept_with_blanks_trimmed_from_fields_and_not_inside_lists() -> None:
    assert ITINERARIES.columns == tuple(FLIGHT)
    assert ITINERARIES.clean_row(flight()) == CLEAN
    assert from_rows(ITINERARIES.schema, [CLEAN]).to_pylist() == [dict(zip(PLACE_OF, CLEAN, strict=True))]


@pytest.mark.parametrize("column", ["legId", "startingAirport", "destinationAirport"])
@pytest.mark.parametrize("blank", ["", " \t\n", "\u3000"])
def test_a_flight_needs_its_id_and_both_airports(column: str, blank: str) -> None:
    assert ITINERARIES.clean_row(flight(**{column: blank})) == rejected(f"no {column}")


def test_the_first_reason_in_the_order_of_the_columns_counts() -> None:
    assert ITINERARIES.clean_row([""] * 8) == rejected("no legId")
    assert ITINERARIES.clean_row(["x", *[""] * 7]) == rejected("no startingAirport")


@pytest.mark.parametrize(
    ("column", "text", "nulls"),
    [
        ("travelDuration", "", ("duration", "duration_minutes")),
        ("travelDuration", "PT", ("duration", "duration_minutes")),
        ("baseFare", "", ("base_cents",)),
        ("baseFare", "943.260", ("base_cents",)),
        ("totalFare", "-0", ("total_cents",)),
        ("totalTravelDistance", "", ("distance_miles",)),
        ("totalTravelDistance", "1943.5", ("distance_miles",)),
        ("segmentsArrivalAirportCode", "", ("stopovers", "duration", "duration_minutes")),
        ("segmentsArrivalAirportCode", "A||B||C", ("stopovers", "duration", "duration_minutes")),
    ],
)
def test_what_does_not_parse_or_is_not_needed_is_null_and_the_flight_stays(
    column: str, text: str, nulls: tuple[str, ...]
) -> None:
    row = ITINERARIES.clean_row(flight(**{column: text}))
    expected = [None if name in nulls else value for name, value in zip(PLACE_OF, CLEAN, strict=True)]
    assert isinstance(row, tuple)
    assert list(row) == expected


@pytest.mark.parametrize(
    ("segments", "stopovers"),
    [
        ("A||B||C||D", "A|B|C"),
        ("A||B||C||D||E", "A|B|C|D"),
        ("A||B||C||", "A|B|C"),
        ("||||||", "||"),
        ("A|||B||C||D", "A||B|C"),
        ("A|B|C|D|E", None),
    ],
)
def test_stopovers_are_all_segments_but_the_last_if_there_are_three(segments: str, stopovers: str | None) -> None:
    row = ITINERARIES.clean_row(flight(segmentsArrivalAirportCode=segments))
    assert isinstance(row, tuple)
    assert row[PLACE_OF["stopovers"]] == stopovers


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        (("YCB", "69.116667", "-105.133333"), (69.116667, -105.133333)),
        (("YCB", " 90 ", " 540.5"), (90.0, 540.5)),
        (("YCB", "-90", "-0"), (-90.0, 0.0)),
        (("YCB", "90.000001", "0"), (None, None)),
        (("YCB", "-91", "0"), (None, None)),
        (("YCB", "", "0"), (None, None)),
        (("YCB", "0", "\\N"), (None, None)),
        (("YCB", "12,5", "0"), (None, None)),
        (("YCB", "0", "9" * 400), (None, None)),
    ],
)
def test_an_airport_is_kept_without_its_place_if_that_is_none(fields: tuple[str, ...], place: object) -> None:
    row = AIRPORTS.clean_row(fields)
    assert isinstance(row, tuple)
    assert row == (text_key("YCB"), "YCB", *row[2:])
    assert row[2:] == place


def test_an_airport_without_a_code_is_read_and_in_no_batch() -> None:
    assert AIRPORTS.clean_row([" ", "1.5", "1.5"]) is None


def test_airports_keep_their_order_and_come_first() -> None:
    assert AIRPORTS.clean_block is None
    assert (AIRPORTS.is_broadcast, AIRPORTS.separator, ITINERARIES.after) == (True, ";", ("airports",))


@settings(deadline=None)  # this machine may be busy
@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), min_size=1))
def test_a_route_has_one_key_by_row_and_by_column(pairs: list[tuple[str, str]]) -> None:
    starts, ends = (pa.array(list(each), pa.string()) for each in zip(*pairs, strict=True))
    assert text_keys(routes(starts, ends)).tolist() == [text_key(f"{start}-{end}") for start, end in pairs]


NO_NUMBERS = ["", "-", "+5", "1e3", "1_0", "1,0", "5.", ".5", "1.2.3", "٥", "５", " 5", "5\n", "inf", "nan", "0x1"]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_fares_and_coordinates_are_ascii_digits_with_one_point_between_them(text: str) -> None:
    assert (fare_cents(text), coordinate(text)) == (None, None)


@pytest.mark.parametrize(
    ("text", "cents"),
    [
        ("1028.61", 102861),
        ("308.6", 30860),
        ("320", 32000),
        ("0", 0),
        ("0.00", 0),
        ("007.05", 705),
        ("0" * 5000 + "1.5", 150),
        ("92233720368547758.07", 2**63 - 1),
        ("92233720368547758.08", None),
        ("9" * 100_000, None),
        ("12.340", None),
        ("-1", None),
        ("-0.00", None),
    ],
)
def test_a_fare_is_cents_of_at_most_two_decimals(text: str, cents: int | None) -> None:
    assert fare_cents(text) == cents


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("PT4H19M", 259),
        ("P1DT8M", 1448),
        ("P1DT", 1440),
        ("PT2H", 120),
        ("PT51M", 51),
        ("PT90M", 90),
        ("PT0M", 0),
        ("P0DT0H0M", 0),
        ("PT" + "0" * 5000 + "7M", 7),
        (f"PT{2**63 - 1}M", 2**63 - 1),
        (f"PT{2**63}M", None),
        (f"P{2**60}DT", None),
        ("PT" + "9" * 100_000 + "M", None),
        *((text, None) for text in ("", "P", "PT", "P1D", "T1H", "PT1M1H", "PT1H1H", "PT4H19M30S", "pt1h", "PT1.0H")),
        *((text, None) for text in ("PT-1H", "-PT1H", "PT1H ", "P1Y", "P1WT", "PT１H", "PT1", "P T1H", "P1DT1H2M3")),
    ],
)
def test_a_duration_is_days_hours_minutes_with_at_least_one_of_them(text: str, minutes: int | None) -> None:
    assert duration_minutes(text) == minutes


@settings(deadline=None)  # this machine may be busy
@given(st.floats(-1000, 1000).map(lambda number: f"{number:.12f}"))
def test_a_coordinate_is_the_nearest_double(text: str) -> None:
    assert coordinate(text) == float(text)


def test_a_coordinate_is_finite() -> None:
    assert coordinate("9" * 308) == float("9" * 308)
    assert coordinate("-" + "9" * 310) is None
    assert coordinate("-0") == 0  # nothing asks for one from zero
