"""What parses, and as what. Anything else is None: the row takes no part in the queries that need the field.

Fields come here without outer blanks. Digits are ASCII; there is no `+`, exponent, `_`, `5.` or `.5`.
"""

import ast
import re
import warnings
from datetime import date
from fractions import Fraction
from functools import lru_cache

NUMBER = re.compile(r"(?P<minus>-?)(?P<whole>[0-9]+)(?:\.(?P<decimals>[0-9]+))?")
DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}")
INT64 = range(-(2**63), 2**63)
INT64_DIGITS = 19  # a longer number is out of range; int() itself refuses 4,300 digits

HALF_STARS = {  # a rating without its idle zeros, in half stars
    "0.5": 1,
    "1": 2,
    "1.5": 3,
    "2": 4,
    "2.5": 5,
    "3": 6,
    "3.5": 7,
    "4": 8,
    "4.5": 9,
    "5": 10,
}


@lru_cache(maxsize=1 << 17)  # ids repeat: 26 million ratings name some 45,000 films
def integer(text: str) -> int | None:
    """`862` and `862.0` are 862."""
    found = NUMBER.fullmatch(text)
    if not found or (found["decimals"] or "").strip("0"):
        return None
    digits = found["whole"].lstrip("0") or "0"
    if len(digits) > INT64_DIGITS:
        return None
    value = int(found["minus"] + digits)
    return value if value in INT64 else None


def budget(text: str) -> int | None:
    """An integer ≥ 0 of any size that a double can still hold; `-0` is none."""
    value = revenue(text)
    return int(value) if value is not None and value.denominator == 1 else None


def revenue(text: str) -> Fraction | None:
    """A decimal ≥ 0, exactly, if its double is finite."""
    found = NUMBER.fullmatch(text)
    return None if not found or found["minus"] or float(text) == float("inf") else Fraction(text)


@lru_cache(maxsize=1 << 10)
def half_stars(text: str) -> int | None:
    """A rating goes by value: `4`, `4.0` and `04.00` are eight half stars."""
    found = NUMBER.fullmatch(text)
    if not found or found["minus"]:
        return None
    whole, decimals = found["whole"].lstrip("0") or "0", (found["decimals"] or "").rstrip("0")
    return HALF_STARS.get(f"{whole}.{decimals}" if decimals else whole)


def year(text: str) -> int | None:
    """The year of a real date `YYYY-MM-DD`."""
    found = DATE.fullmatch(text)
    if not found:
        return None
    try:
        return date(*map(int, found.groups())).year
    except ValueError:
        return None


def names(text: str) -> list[str]:
    """The names in a Python literal such as `[{'id': 16, 'name': 'Animation'}]`; an entry without one is skipped."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # '\d' is a name with a backslash, not a reason to warn
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, OverflowError):  # the last of `9…9 + 1j`
        return []
    if not isinstance(value, list):
        return []
    return [entry["name"] for entry in value if isinstance(entry, dict) and is_name(entry.get("name"))]


def is_name(value: object) -> bool:
    """Text that a UTF-8 file can hold: the escape '\\ud800' makes a string that is not."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- flights

DURATION = re.compile(r"P((?P<days>[0-9]+)D)?T((?P<hours>[0-9]+)H)?((?P<minutes>[0-9]+)M)?")
MINUTES = {"days": 24 * 60, "hours": 60, "minutes": 1}


@lru_cache(maxsize=1 << 16)
def cents(text: str) -> int | None:
    """A fare ≥ 0 with at most two decimals, as written; one of more cents than an int64 holds is none."""
    found = NUMBER.fullmatch(text)
    if not found or found["minus"] or len(found["decimals"] or "") > 2:
        return None
    digits = found["whole"] + (found["decimals"] or "").ljust(2, "0")
    return integer(digits)


def minutes(text: str) -> int | None:
    """`PT4H19M`, `P1DT8M` and `P1DT`, not `PT` or `P1D`; one of more minutes than an int64 holds is none."""
    found = DURATION.fullmatch(text)
    if not found:
        return None
    total, parts = 0, {name: number for name, number in found.groupdict().items() if number is not None}
    for name, number in parts.items():
        count = integer(number)
        if count is None:
            return None
        total += count * MINUTES[name]
    return total if parts and total in INT64 else None


def degrees(text: str) -> float | None:
    """Any number, if its double is finite."""
    value = float(text) if NUMBER.fullmatch(text) else float("inf")
    return None if abs(value) == float("inf") else value


# --- coffee


@lru_cache(maxsize=1 << 17)  # prices repeat
def thousandths(text: str) -> int | None:
    """An amount ≥ 0 with at most three decimals as written, if its thousandths fit in 64 bits; `-0` is none."""
    found = NUMBER.fullmatch(text)
    if not found or found["minus"] or len(found["decimals"] or "") > 3:
        return None
    digits = (found["whole"] + (found["decimals"] or "").ljust(3, "0")).lstrip("0") or "0"
    return int(digits) if len(digits) <= INT64_DIGITS and int(digits) in INT64 else None


def user_id(text: str) -> int | None:
    """An integer above zero."""
    number = integer(text)
    return number if number is not None and number > 0 else None


def moment(text: str) -> tuple[str, str] | None:
    """The date and the time of a time stamp `YYYY-MM-DD HH:MM:SS`; as texts they compare as they follow each other."""
    day, blank, time = text[:10], text[10:11], text[11:]
    return (day, time) if blank == " " and is_time(time) and is_date(day) else None


@lru_cache(maxsize=1 << 17)  # a day has fewer seconds
def is_time(text: str) -> bool:
    found = TIME.fullmatch(text)
    return bool(found) and int(text[:2]) < 24 and int(text[3:5]) < 60 and int(text[6:]) < 60


@lru_cache(maxsize=1 << 17)
def is_date(text: str) -> bool:
    return year(text) is not None
