"""Fields of plain rows as numbers, dates and time stamps: eight signs at a time, for all rows at once.

Invariant: where a mask here is true, the value is what the exact way makes of that text; elsewhere it may be anything.

Eight signs are read as one number of 64 bits whose lowest byte is the first sign. With the sign that is expected taken
off each byte (XOR), a digit is 0 to 9 and a separator 0, which one addition and one mask check in all eight.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from queries.plain import MARGIN, Mask, Signs, Texts
from queries.quotes import Places
from queries.text import DAY

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]

WORD: Final = 8  # digits that are parsed at once
POINT, FIRST_SIGN, LAST_SIGN = b".!~"
MOST_DECIMALS: Final = 3
HIGH_BITS: Final = np.uint64(0x8080808080808080)
ZEROS: Final = np.uint64(0x3030303030303030)
DIGITS: Final = np.uint64(0x7676767676767676)  # added to more than 9, a byte has its high bit set
# The day on which each month starts, from that of year 0 to what the digits of year 9999 and month 99 could ask for.
MONTH_STARTS: Final = np.arange(-1970 * 12, (9999 - 1970) * 12 + 100).astype("M8[M]").astype("M8[D]").astype(np.int64)


def are_bare(texts: Texts) -> Mask:
    """Not empty, and nothing to trim at either end."""
    return ~texts.are_empty & is_sign(texts.signs[texts.starts]) & is_sign(texts.signs[texts.ends - 1])


def is_sign(byte: Signs) -> Mask:
    """One of ASCII that nobody would trim."""
    return np.subtract(byte, FIRST_SIGN) <= LAST_SIGN - FIRST_SIGN


# --- numbers


@dataclass(frozen=True, slots=True)
class Decimals:
    """Numbers like `862`, `862.0`, `78.125`: up to eight digits, and up to three decimals behind a point. What is none
    has 0 as its whole part."""

    whole: Numbers
    fraction: Numbers  # in thousandths
    decimals: Numbers  # how many are written
    are_plain: Mask

    @property
    def are_integers(self) -> Mask:
        return self.are_plain & np.equal(self.fraction, 0)

    @property
    def thousandths(self) -> Numbers:
        return self.whole * 1000 + self.fraction


def numbers(*columns: Texts) -> list[Decimals]:
    """Of several columns of the same rows at once: a call of numpy costs as much as some hundred numbers."""
    first = columns[0]
    starts, ends = (np.concatenate([getattr(each, name) for each in columns]) for name in ("starts", "ends"))
    both = _numbers(Texts(first.signs, starts, ends))
    count = len(first.starts)
    parts = (slice(column * count, (column + 1) * count) for column in range(len(columns)))
    return [Decimals(both.whole[at], both.fraction[at], both.decimals[at], both.are_plain[at]) for at in parts]


def _numbers(texts: Texts) -> Decimals:
    length = texts.ends - texts.starts
    tail = words_at(texts.signs, texts.ends - WORD)
    decimals = np.zeros(len(length), np.int64)
    for count in range(1, MOST_DECIMALS + 1):  # a point further to the left may be the one of the field before
        decimals[(_byte(tail, WORD - 1 - count) == POINT) & (length > count) & (decimals == 0)] = count
    digits = np.where(decimals > 0, length - decimals - 1, length)
    are_plain = (digits > 0) & (digits <= WORD)
    digits = np.where(are_plain, digits, 1)
    whole = (words_at(texts.signs, texts.starts) ^ ZEROS) << (8 * (WORD - digits)).astype(np.uint64)
    # Shifted out by half a word twice: a shift by all of its 64 bits would be undefined.
    half = (4 * (WORD - decimals)).astype(np.uint64)
    fraction = (tail ^ ZEROS) >> half >> half
    are_plain &= (beyond(whole) | beyond(fraction)) == 0
    thousandths = _byte(fraction, 0) * 100 + _byte(fraction, 1) * 10 + _byte(fraction, 2)
    return Decimals(np.where(are_plain, joined(whole), 0), thousandths, decimals, are_plain)


def joined(digits: Words) -> Numbers:
    """Neighbours are joined in pairs: 8 digits, 4 of two, 2 of four, 1 of eight. The first digit is the highest."""
    joined = digits * np.uint64(10 * 2**8 + 1) >> np.uint64(8)
    joined = (joined & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(100 * 2**16 + 1) >> np.uint64(16)
    joined = (joined & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(10000 * 2**32 + 1) >> np.uint64(32)
    return joined.view(np.int64)


# --- dates


def time_stamps(texts: Texts) -> tuple[Numbers, Mask]:
    """Seconds since 1970, and where that is what the text says, as `2024-01-31 23:59:59`."""
    months, are_months = _pairs(texts, 0, b"0000-00-")
    days, are_days = _pairs(texts, 8, b"00 00:00")
    times, are_times = _pairs(texts, 11, b"00:00:00")
    are_like = are_months & are_days & are_times & (texts.ends - texts.starts == 19)
    days_since, are_dates = _days(months, _byte(days, 0), are_like)
    hour, minute, second = _byte(times, 0), _byte(times, 3), _byte(times, 6)
    seconds = days_since * DAY + hour * 3600 + minute * 60 + second
    return seconds, are_dates & (hour < 24) & (minute < 60) & (second < 60)


def dates(texts: Texts) -> tuple[Numbers, Mask]:
    """Days since 1970, and where that is what the text says, as `2024-01-31`."""
    months, are_months = _pairs(texts, 0, b"0000-00-")
    days, are_days = _pairs(texts, 2, b"00-00-00")
    return _days(months, _byte(days, 6), are_months & are_days & (texts.ends - texts.starts == 10))


def _days(words: Words, day: Numbers, are_like: Mask) -> tuple[Numbers, Mask]:
    words = np.where(are_like, words, np.uint64(0))
    year, month = _byte(words, 0) * 100 + _byte(words, 2), _byte(words, 5)
    months = year * 12 + month - (month > 0)
    first, days = MONTH_STARTS[months], MONTH_STARTS[months + 1] - MONTH_STARTS[months]
    is_right = are_like & (year > 0) & (month > 0) & (month <= 12) & (day > 0) & (day <= days)
    return first + day - 1, is_right


def _pairs(texts: Texts, at: int, pattern: bytes) -> tuple[Words, Mask]:
    """Each byte is ten times its digit plus the next one, so that of a pair of digits is their number. And where the
    text is like the pattern, whose zeros stand for digits."""
    signs = np.frombuffer(pattern, np.uint8)
    limits = np.where(signs == ord("0"), 0x76, 0x7F).astype(np.uint8)  # a separator must be the one of the pattern
    words = words_at(texts.signs, texts.starts + at) ^ signs.view("<u8")[0]
    are_like = beyond(words, limits.view("<u8")[0]) == 0
    words = np.where(are_like, words, np.uint64(0))
    return words * np.uint64(10) + (words >> np.uint64(8)), are_like


# --- words


def words_at(signs: Signs, places: Places) -> Words:
    """The eight signs from each place on; the margins let one look past the ends of the block."""
    every = np.ndarray(len(signs) - WORD + 1, np.dtype("<u8"), signs.data, strides=(1,))
    words: Words = every[places]
    return words


def _byte(words: Words, place: int) -> Numbers:
    return ((words >> np.uint64(8 * place)) & np.uint64(0xFF)).view(np.int64)


def beyond(words: Words, limits: np.uint64 = DIGITS) -> Words:
    """The high bit of each byte that is more than its limit allows: by default, that is no digit."""
    return ((words + limits) | words) & HIGH_BITS


assert 3 * WORD <= MARGIN, "a time stamp is read in three words, wherever it starts"
