"""The fast way of itineraries gives what the exact way gives, or declines."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queries.flights import ITINERARIES
from queries.flights_blocks import itineraries_block
from tests.unit.gateway import fast_way

HEADER = ITINERARIES.columns
HEADERS = st.permutations([*HEADER, "more", "yet more"]) | st.permutations(HEADER)


def check(data: bytes, header: Sequence[str]) -> bool:
    """Whether the fast way took all of the block."""
    taken = fast_way.check(ITINERARIES, data, header)
    return taken is not None and taken.all


USUAL = {
    "legId": st.text("0123456789abcdef", min_size=1, max_size=32),
    "startingAirport": st.sampled_from(["LAX", "ATL", "B-S", "Ñ", " LAX ", "\u00a0LAX", "\x1cLAX", "LAX\x85"]),
    "destinationAirport": st.sampled_from(["LAX", "ATL", "---", "\u200b", "ATL\t"]),
    "travelDuration": st.sampled_from(
        ["PT4H19M", "P1DT8M", "P1DT", "PT", "P1D", "", " PT2H", "PT99999999999999999999M"]
    ),
    "baseFare": st.sampled_from(["943.26", "320.0", "320", "0", ""]),
    "totalFare": st.sampled_from(["1028.61", "007", "99999999.99", "0.5"]),
    "totalTravelDistance": st.sampled_from(["1943", "1943.0", "12345678.000", ""]),
    "segmentsArrivalAirportCode": st.sampled_from(
        ["ATL", "ORD||ATL", "A||B||C", "A||B||C||D", " A||B||C||D||E ", "||||||", "A|||B||C||D", "", "A||" * 30]
    ),
    "more": st.text("ab |;'é", max_size=5),
    "yet more": st.sampled_from(["", "x\0y", "\\", "\x1e\u2028", "NULL", "#"]),
}
ODD = st.sampled_from(
    [
        *("", " ", "\u3000", "\x1f", '"', '"x"', 'x"', "x\0", "a,b", "NA", "\x7f", "é", " x", "x\u2003", "\ufeff"),
        *("-1.00", "1.234", "5.000", "1e3", " 5.00 ", "9" * 40, "92233720368547758.07", "92233720368547758.08", "٣"),
        *("1943.5", "-7", " 8 ", "None", str(2**63), "0" * 50, "123456789"),
    ]
)
LINE_ENDS = st.sampled_from(["\n", "\n", "\n", "\n", "\r\n"])


@given(st.data())
@settings(deadline=None)
def test_usual_rows_are_taken(data: st.DataObject) -> None:
    header = data.draw(HEADERS)
    rows = data.draw(st.lists(st.tuples(*(USUAL[name] for name in header)), min_size=1, max_size=8))
    line_end = data.draw(LINE_ENDS)
    assert check(fast_way.written(rows, lambda: line_end), header)


@given(st.data())
@settings(deadline=None)
def test_near_misses_are_right_or_declined(data: st.DataObject) -> None:
    header = data.draw(HEADERS)
    fields = [st.one_of(USUAL[name], USUAL[name], USUAL[name], ODD) for name in header]
    rows = data.draw(st.lists(st.tuples(*fields), max_size=5))
    check(fast_way.written(rows, lambda: data.draw(LINE_ENDS)), header)


@given(data=st.text('aP1DTHM|.,,,,,,,\n\n\r "', max_size=60).map(str.encode), header=HEADERS)
@example(b"\n", HEADER)
@example(b"a,b\n", HEADER)
@example(b",,,,,,,\n", HEADER)
@settings(deadline=None, max_examples=200)
def test_any_signs_in_any_order_are_right_or_declined(data: bytes, header: list[str]) -> None:
    fast_way.check_any_signs(ITINERARIES, data, header)


@given(at=st.integers(0, 130), sign=st.binary(max_size=2))
@settings(deadline=None)
def test_one_odd_place_is_right_or_declined(at: int, sign: bytes) -> None:
    good = b"1a,LAX,ATL,PT4H19M,943.26,1028.61,1943,A||B||C||D\n2b,ATL,LAX,PT2H,320.0,349.6,,ATL\n3c,B,C,PT1H,1,2,3,C\n"
    fast_way.check_one_odd_place(ITINERARIES, good, at, sign, HEADER)


@pytest.mark.parametrize(
    ("data", "taken"),
    [
        (b"1a,LAX,ATL,PT4H19M,943.26,1028.61,1943,A||B||C||D\n", True),
        (b"1a,LAX,ATL,PT4H19M,943.26,1028.61,1943,A||B||C||D\r\n2b,A,B,,,,,\r\n", True),
        (b"1a, LAX ,ATL,,,,,\n", True),
        (b"1a,LAX,ATL,,,,," + b"A||" * 1000 + b"\n", True),
        (b"1a,LAX,ATL,,,,,", False),
        (b" 1a,LAX,ATL,,,,,\n", False),
        *((f"{blank}1a,LAX,ATL,,,,,\n".encode(), False) for blank in ("\x1f", "\u00a0", "\u2003")),
        *((f"1a{blank},LAX,ATL,,,,,\n".encode(), False) for blank in (" ", "\x1f", "\u00a0", "\u2003")),
        ("\ufeff1a,LAX,ATL,,,,,\n".encode(), False),  # within a file, this sign belongs to the field
        (b"1a,,ATL,,,,,\n", False),
        (b"1a,LAX, ,,,,,\n", False),
        (b",LAX,ATL,,,,,\n", False),
        (b"1a,LAX,ATL,,,,\n2b,LAX,ATL,,,,,\n", False),
        (b'1a,LAX,ATL,,,,,"A"\n', False),
        (b"1a,LAX,ATL,,,,,\xff\n", False),
        (b"", False),
    ],
)
def test_what_is_taken(data: bytes, taken: bool) -> None:
    assert check(data, HEADER) is taken


def test_odd_rows_are_set_aside_and_the_others_taken() -> None:
    rows = [f"{n:x},LAX,A{n % 7},PT{n % 5}H,{n},{n}.5,{n},A||B||C||D" for n in range(500)]
    odd = ["1a,LAX,ATL", ",LAX,ATL,,,,,", "1a,,ATL,,,,,", " 1a,LAX,ATL,,,,,", "1a,LAX,ATL,,,,,,", "é,LAX,ATL,,,,,"]
    data = "\n".join([odd[0], *rows[:300], *odd[1:4], *rows[300:], *odd[4:], ""]).encode()
    taken = itineraries_block(data, HEADER)
    assert taken is not None
    assert taken[1:] == (len(rows), "\n".join([*odd, ""]).encode())
    assert check(data, HEADER) is False
