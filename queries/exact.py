"""Sums and means that depend on the numbers only, never on their order or grouping.

Invariant: nothing is rounded before the end. A finite double is a whole multiple of 2**-1074, so a sum of doubles is an
integer number of these units; integers can be added in any order, and travel as text.
"""

import math
from collections.abc import Iterable
from typing import Final

UNITS_PER_ONE: Final = 2**1074


def units(number: float) -> int:
    """A finite double, exactly."""
    numerator, denominator = number.as_integer_ratio()
    return numerator * (UNITS_PER_ONE // denominator)


def exact_sum(numbers: Iterable[float]) -> int:
    """In units; sums are added with `+`."""
    return sum(map(units, numbers))


def rounded(total: int) -> float:
    """Units as the nearest double, ties to even: what `math.fsum` gives; infinite where `math.fsum` would raise."""
    return quotient(total, UNITS_PER_ONE)


def quotient(numerator: int, denominator: int) -> float:
    """The nearest double to the exact quotient: Python rounds the division of two integers once, at any size."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf  # denominators here are positive


def to_text(total: int) -> str:
    """Hexadecimal: as fast to read as to write, and Python sets no limit on its length."""
    return format(total, "x")


def from_text(text: str) -> int:
    return int(text, 16)
