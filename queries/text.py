"""What parses, and to what: the one reading of numbers and dates for every file.

Invariant: a text has one meaning. Blanks are already trimmed; digits are ASCII; what is not written exactly so is None,
never a guess. Texts of any length cost no more than their length.
"""

import math
import re
from datetime import date
from typing import Final

INT64: Final = range(-(2**63), 2**63)
INTEGER: Final = re.compile(r"(-?)0*([0-9]{1,19})(?:\.0+)?")  # no int64 has more than 19 digits
DECIMAL: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
STARS: Final = re.compile(r"0*([0-5])(?:\.([05])0*)?")
HALF_STARS: Final = range(1, 11)


def integer(text: str) -> int | None:
    """`862`, or `862.0` with any number of zeros. One that does not fit in an int64 is read like one that does not
    parse, for batches hold int64."""
    match = INTEGER.fullmatch(text)
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if number in INT64 else None


def decimal(text: str) -> str | None:
    """A finite decimal ≥ 0, as it is written: a double would lose digits. None where its double would be infinite."""
    return text if DECIMAL.fullmatch(text) and math.isfinite(float(text)) else None


def whole(text: str) -> str | None:
    """A finite decimal ≥ 0 without a fraction (`30`, `30.00`), as digits without leading zeros: at most 309 of them."""
    if decimal(text) is None:
        return None
    digits, _, fraction = text.partition(".")
    return None if fraction.strip("0") else digits.lstrip("0") or "0"


def day(text: str) -> date | None:
    """`YYYY-MM-DD`, and real. The pattern comes first: Python itself also reads `20100131` and `2010-W01-1`."""
    if DATE.fullmatch(text) is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def half_stars(text: str) -> int | None:
    """A rating of 0.5, 1.0 … 5.0, by value (`4`, `4.00`), as 1 to 10."""
    match = STARS.fullmatch(text)
    if match is None:
        return None
    number = 2 * int(match[1]) + (match[2] == "5")
    return number if number in HALF_STARS else None
