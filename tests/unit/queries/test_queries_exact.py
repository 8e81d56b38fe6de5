"""Exact sums and quotients, held against `math.fsum` and `Fraction`."""

import math
import random
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from queries.exact import exact_sum, from_text, quotient, rounded, to_text, units

doubles = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)  # this machine may be busy
@given(doubles)
def test_a_double_is_a_whole_number_of_units(number: float) -> None:
    assert Fraction(units(number), 2**1074) == Fraction(number)
    assert rounded(units(number)) == number


@settings(deadline=None)  # this machine may be busy
@given(st.lists(doubles))
def test_a_sum_is_rounded_as_fsum_rounds_it(numbers: list[float]) -> None:
    try:
        expected = math.fsum(numbers)
    except OverflowError:
        assume(False)
    assert rounded(exact_sum(numbers)) == expected


@settings(deadline=None)  # this machine may be busy
@given(st.lists(doubles), st.integers(0, 20), st.randoms(use_true_random=False))
def test_a_sum_does_not_depend_on_order_or_grouping(numbers: list[float], cut: int, rng: random.Random) -> None:
    shuffled = rng.sample(numbers, len(numbers))
    pieces = [to_text(exact_sum(piece)) for piece in (shuffled[:cut], shuffled[cut:])]
    assert sum(map(from_text, pieces)) == exact_sum(numbers)


def test_a_sum_beyond_every_double_is_infinite() -> None:
    largest = 1.7976931348623157e308
    assert rounded(exact_sum([largest, largest])) == math.inf
    assert rounded(exact_sum([-largest, -largest])) == -math.inf
    assert rounded(exact_sum([largest, largest, -largest])) == largest


@settings(deadline=None)  # this machine may be busy
@given(st.integers(), st.integers(1, 10**30))
def test_a_quotient_is_rounded_once(numerator: int, denominator: int) -> None:
    assert quotient(numerator, denominator) == float(Fraction(numerator, denominator))


@settings(deadline=None)  # this machine may be busy
@given(st.integers(-(2**2200), 2**2200))
def test_text_keeps_a_total_of_any_size(total: int) -> None:
    assert from_text(to_text(total)) == total


@pytest.mark.parametrize(("total", "count", "text"), [(8, 2, "4.0"), (20, 6, "3.3333333333333335"), (1, 2, "0.5")])
def test_a_mean_is_written_as_repr_writes_it(total: int, count: int, text: str) -> None:
    assert repr(quotient(total, count)) == text
