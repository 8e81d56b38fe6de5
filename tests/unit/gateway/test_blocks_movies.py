"""The fast way gives what the exact way gives, or declines."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries.movies_blocks import _usual_block, ratings_block
from tests.unit.gateway import fast_way
from tests.unit.gateway.test_parse import RATINGS

HEADER = ("userId", "movieId", "rating", "timestamp")
HEADERS = st.permutations([*HEADER, "more"]) | st.permutations(HEADER) | st.permutations(HEADER[1:])


def check(data: bytes, header: Sequence[str]) -> bool:
    """Whether the fast way took all of the block."""
    taken = fast_way.check(RATINGS, data, header)
    return taken is not None and taken.all


NUMBERS = st.integers(0, 10**8 - 1).map(str)
POINTED = st.sampled_from(["0.5", "1.0", "3.5", "5.0", "0.0", "5.5", "9.5", "3.7"])
WHOLE = st.sampled_from(["0", "1", "4", "5", "9"])
STARS = st.one_of(POINTED, WHOLE)
ODD = st.sampled_from(
    [
        *(
            "",
            " ",
            "4.",
            ".5",
            "4.00",
            "04.5",
            "4..5",
            "1.2.3",
            ".",
            "..5",
            "4.5.",
            "-1",
            "+1",
            "1e3",
            "862.0",
            "862.5",
        ),
        *(
            "007",
            "0" * 30 + "5",
            "9" * 8,
            "1" * 9,
            "9" * 18,
            "9" * 19,
            "9" * 25,
            "abc",
            '"3"',
            "3\0",
            "٣",
            "1/2",
            "1:2",
        ),
    ]
)
LINE_ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n"])


@given(st.data())
@settings(deadline=None)
def test_plain_numbers_are_taken(data: st.DataObject) -> None:
    """Ratings with a point or without, alike in all rows."""
    header = data.draw(HEADERS)
    stars = data.draw(st.sampled_from([POINTED, WHOLE]))
    fields = [stars if name == "rating" else NUMBERS for name in header]
    rows = data.draw(st.lists(st.tuples(*fields), min_size=1, max_size=8))
    line_end = data.draw(LINE_ENDS)
    assert check(fast_way.written(rows, lambda: line_end), header)


@given(st.data())
@settings(deadline=None)
def test_near_misses_are_right_or_declined(data: st.DataObject) -> None:
    header = data.draw(HEADERS)
    fields = [st.one_of(STARS if name == "rating" else NUMBERS, ODD) for name in header]
    rows = data.draw(st.lists(st.tuples(*fields), max_size=4))
    check(fast_way.written(rows, lambda: data.draw(LINE_ENDS)), header)


@given(data=st.text("0159..,,,\n\n\r", max_size=30).map(str.encode), header=HEADERS)
@settings(deadline=None, max_examples=500)
def test_digits_points_and_separators_in_any_order_are_right_or_declined(data: bytes, header: list[str]) -> None:
    fast_way.check_any_signs(RATINGS, data, header)


@given(at=st.integers(0, 30), sign=st.binary(min_size=0, max_size=2), header=st.permutations(HEADER))
@settings(deadline=None)
def test_one_odd_place_is_right_or_declined(at: int, sign: bytes, header: list[str]) -> None:
    good = b"1,2,3.0,4\n5,6,7.0,8\n9,1,2.5,3\n"
    fast_way.check_one_odd_place(RATINGS, good, at, sign, header)


@pytest.mark.parametrize(
    ("data", "taken"),
    [
        (b"1,31,2.5,1260759144\n", True),
        (b"1,31,2.5,1260759144\r\n2,3,4.0,5\r\n", True),
        (b"1,31,2,1260759144\r\n2,3,4,5\r\n", True),
        (b"1,31,2.5,1260759144\r\n2,3,4,5\r\n", True),
        (b"1,31,2.5,1260759144\r\n2,3,4.0,5\n", True),
        (b"1,31,2.5,1260759144\n2,3,4.0,5\r\n", True),
        (b"1,31,2.5,12607\r59144\r\n", False),
        (b"1,00000031,2.5,1260759144\n", True),
        (b"1,99999999,5.0,0\n", True),
        (b"1,31,5.5,1260759144\n1,2,3.0,4\n1,2,0.0,4\n", True),  # read, and not kept
        (b",31,2.5,1260759144\n", True),  # nobody needs the user
        (b"1,31,2.5,1260759144", False),
        (b"1,123456789,2.5,1260759144\n", True),
        (b"1,1234567890123456,2.5,1260759144\n", False),
        (b"1,862.0,2.5,1260759144\n", True),
        (b"1,31,2.50,1260759144\n", True),
        (b"1,31,2.5,\n", False),
        (b"1,,2.5,3\n", False),
        (b"1,31,2.5,1260759144\n\n", False),
        (b"1,31,2.5\n1,31,2.5,4,5\n", False),
        (b"1,31,2.5,4\r5,6,2.5,7\n", False),
        (b'1,"31",2.5,4\n', False),
        (b"", False),
        (b"\n", False),
    ],
)
def test_what_is_taken(data: bytes, taken: bool) -> None:
    assert check(data, HEADER) is taken


@pytest.mark.parametrize("since", [0, 1_000_000_000])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_odd_rows_are_set_aside_and_the_others_taken(since: int, line_end: str) -> None:
    rows = [f"{n},{n},{n % 10 / 2 + 0.5},{since + n}" for n in range(1000)]
    short = ["", "1,2,3", "1,2,3.0,", "1,2,3.0, "]
    odd = ["1,,3.0,4", *short, "1,2,x,4", "1,1234567890123456,3.0,4", "1, 2,3.0,4", "1,2,3.0,4,5", "1,2, 3.0,4"]
    if line_end == "\n":
        odd += [row.replace("4", "1260759144") for row in odd]
    data = line_end.join([odd[0], *rows[:300], *odd[1:6], *rows[300:], *odd[6:], ""]).encode()
    taken = ratings_block(data, HEADER)
    assert taken is not None
    assert taken[1] == len(rows)
    assert taken[2] == line_end.join([*odd, ""]).encode()
    assert check(data, HEADER) is False


@pytest.mark.parametrize(
    ("data", "is_usual"),
    [
        (b"1,31,2.5,1260759144\n", True),
        (b"1,31,2.5,126075914\r\n", True),
        (b",1,0.5,126075914\n", True),
        (b"x2,12345678,5.0,126075914\n", True),
        (b"1 2,12345678,5.0,126075914\n", False),
        (b"1,31,2.5,12607591\n", True),
        (b"1,31,2.5,1260759144\r\n1,31,2.5,1260759144\n", True),
        (b"1,31,2.5,1260759144\r1,31,2.5,1260759144\n", False),
        (b'"1",31,2.5,1260759144\n', False),
        (b"1,31,2.5,1260759144\n,1,31,2.5,1260759144\n", False),  # one comma too many
        (b"1,31,2.5,126,759144\n", False),
        (b"1,31,2.5,,260759144\n", False),
        (b"1\n,31,2.5,1260759144\n", False),
        (b"31,2.5,1260759144\n", False),
        ("é,31,2.5,1260759144\n".encode(), False),
    ],
)
def test_the_usual_layout_is_recognised(data: bytes, is_usual: bool) -> None:
    assert (_usual_block(data) is not None) is is_usual
    check(data, HEADER)


@given(data=st.data())
@settings(deadline=None, max_examples=300)
def test_near_misses_of_the_usual_layout_are_right_or_declined(data: st.DataObject) -> None:
    """Many rows, so that a few odd ones do not decline the block."""
    good = ["1,31,2.5,1260759144", "270896,176275,0.5,866525193", "7,2,5.5,1260759144", ",99999999,4.0,126075914"]
    near = st.builds(
        lambda row, at, sign, cut: row[:at] + sign + row[at + cut :],
        st.sampled_from(good),
        st.integers(0, 20),
        st.text("019,. \n\0", max_size=2),
        st.integers(0, 2),
    )
    rows = data.draw(st.lists(near, max_size=3))
    lines = [*good * 8, *rows, *good * 8]
    check("\n".join([*lines, ""]).encode(), HEADER)


def test_a_large_block_is_taken_whole() -> None:
    rows = [f"{n},{n * 7919 % 10**8},{n % 10 / 2 + 0.5},{n}" for n in range(10_000)]
    assert check("\n".join([*rows, ""]).encode(), HEADER)
