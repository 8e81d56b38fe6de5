"""What parses, rule by rule, as QUERIES.md says it."""

import math
from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries.text import day, decimal, half_stars, integer, whole

NO_NUMBERS = [
    "",
    "-",
    "+5",
    "1e3",
    "1_000",
    "1,000",
    "5.",
    ".5",
    "1.2.3",
    "٥",
    "５",
    "²",
    " 5",
    "5\n",
    "0x10",
    "inf",
    "nan",
]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_a_number_is_ascii_digits_with_one_point_between_them(text: str) -> None:
    assert (integer(text), decimal(text), whole(text), half_stars(text)) == (None, None, None, None)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("862", 862),
        ("862.0", 862),
        ("-7", -7),
        ("-7.0", -7),
        ("007", 7),
        ("0", 0),
        ("-0", 0),
        ("0" * 5000 + "1", 1),
        ("862.00", 862),
        ("862.5", None),
        ("--1", None),
    ],
)
def test_an_integer_has_nothing_but_zeros_behind_the_point(text: str, number: int | None) -> None:
    assert integer(text) == number


def test_an_integer_that_does_not_fit_in_an_int64_does_not_parse() -> None:
    assert integer(str(2**63 - 1)) == 2**63 - 1
    assert integer(str(-(2**63))) == -(2**63)
    assert integer(str(2**63)) is None
    assert integer(str(-(2**63) - 1)) is None
    assert integer("9" * 100_000) is None


@pytest.mark.parametrize("text", ["0", "12", "12.340", "007.5", "0.0", "1" + "0" * 308, "0." + "0" * 400 + "1"])
def test_a_finite_decimal_is_kept_as_it_is_written(text: str) -> None:
    assert decimal(text) == text


@pytest.mark.parametrize("text", ["-1", "-0", "-0.0", "1" + "0" * 309, "9" * 100_000])
def test_a_decimal_that_is_negative_or_infinite_is_null(text: str) -> None:
    assert decimal(text) is None
    assert whole(text) is None


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("30000000", "30000000"),
        ("30.00", "30"),
        ("007", "7"),
        ("0", "0"),
        ("000.0", "0"),
        ("0.5", None),
        ("12.01", None),
    ],
)
def test_a_budget_is_integral(text: str, digits: str | None) -> None:
    assert whole(text) == digits


@settings(deadline=None)  # this machine may be busy
@given(st.integers(0, 10**320), st.integers(0, 5000), st.integers(0, 50))
def test_whole_keeps_the_value_of_any_integer_that_is_finite_as_a_double(
    number: int, zeros: int, decimals: int
) -> None:
    text = "0" * zeros + str(number) + ("." + "0" * decimals if decimals else "")
    assert whole(text) == (str(number) if math.isfinite(float(text)) else None)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.5", 1), ("1", 2), ("4", 8), ("4.00", 8), ("4.50", 9), ("5.0", 10), ("005", 10)]
    + [(text, None) for text in ("0", "0.0", "5.5", "5.01", "4.25", "6", "10", "-1", "-0.5", "4.")],
)
def test_a_rating_is_half_stars_by_value(text: str, number: int | None) -> None:
    assert half_stars(text) == number


@settings(deadline=None)  # this machine may be busy
@given(st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3})?", fullmatch=True))
def test_a_rating_parses_if_and_only_if_its_value_is_a_half_from_one_to_ten(text: str) -> None:
    halves = Fraction(text) * 2
    assert half_stars(text) == (int(halves) if halves in range(1, 11) else None)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "1",
            "1995",
            "1995-2-3",
            "19950203",
            "1995-W05-1",
            "1995/02/03",
            "2001-02-29",
            "2000-13-01",
            "2000-00-10",
        ),
        *("0000-01-01", "12000-01-01", "-200-01-01", "２０００-01-01", "2000-01-01 00:00:00", "2000-01-01\n"),
    ],
)
def test_a_date_that_is_written_otherwise_or_not_real_is_null(text: str) -> None:
    assert day(text) is None


@settings(deadline=None)  # this machine may be busy
@given(st.dates())
def test_every_real_date_parses(any_day: date) -> None:
    assert day(any_day.isoformat()) == any_day
