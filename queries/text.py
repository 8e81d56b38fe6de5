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
AMOUNT: Final = re.compile(r"0*([0-9]{1,16})(?:\.([0-9]{1,3}))?")  # 2**63 thousandths have 16 digits before the point
TIME_STAMP: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}) ([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])")
EPOCH: Final = date(1970, 1, 1).toordinal()
DAY: Final = 86400  # seconds
FARE: Final = re.compile(r"0*([0-9]{1,17})(?:\.([0-9]{1,2}))?")  # no int64 of cents has more than 17 digits of units
DURATION: Final = re.compile(r"P(?:0*([0-9]{1,19})D)?T(?:0*([0-9]{1,19})H)?(?:0*([0-9]{1,19})M)?")
DEGREES: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


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


def fare_cents(text: str) -> int | None:
    """A fare ≥ 0 with at most two decimals, in cents; one that does not fit in an int64 is read like an `integer`."""
    match = FARE.fullmatch(text)
    if match is None:
        return None
    cents = 100 * int(match[1]) + int((match[2] or "").ljust(2, "0"))
    return cents if cents in INT64 else None


def duration_minutes(text: str) -> int | None:
    """`P[nD]T[nH][nM]` with at least one of the three; one that does not fit in an int64 is read like an `integer`."""
    match = DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes = (int(number or 0) for number in match.groups())
    total = (24 * days + hours) * 60 + minutes
    return total if total in INT64 else None


def coordinate(text: str) -> float | None:
    """Degrees north or east; a finite double."""
    degrees = float(text) if DEGREES.fullmatch(text) else math.inf
    return degrees if math.isfinite(degrees) else None


def thousandths(text: str) -> int | None:
    """An amount: a decimal ≥ 0 with at most three decimals, counted as written (`1.2500` is none). One whose
    thousandths do not fit in an int64 is read like such an `integer`."""
    match = AMOUNT.fullmatch(text)
    if match is None:
        return None
    number = int(match[1] + (match[2] or "").ljust(3, "0"))
    return number if number in INT64 else None


def positive(text: str) -> int | None:
    """A user id."""
    number = integer(text)
    return number if number is not None and number > 0 else None


def seconds(text: str) -> int | None:
    """A time stamp `YYYY-MM-DD HH:MM:SS`, real, in seconds since 1970. No time zone, no 24:00:00, no leap second."""
    match = TIME_STAMP.fullmatch(text)
    at = match and day(match[1])
    if match is None or at is None:
        return None
    return (at.toordinal() - EPOCH) * DAY + int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4])
