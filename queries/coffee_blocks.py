"""The fast ways for transactions, their items and users: a block of plain rows parsed column by column.

Invariant: what is vouched for here is what the exact way gives, and no row of it is rejected. A number is plain with up
to eight digits and at most three decimals, a date or a time stamp with nothing around it; where a field is written in
any other way, its row is set aside for the exact way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queries import coffee_cleaning as cleaning
from queries import plain

Signs = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Block = tuple[pa.Table, int, bytes]

ZERO, POINT, FIRST_SIGN, LAST_SIGN = b"0.!~"  # the last two: all that ASCII has and nobody would trim
WORD: Final = 8  # digits that are parsed at once
TIMES: Final = np.array([0, 100, 10, 1])  # thousandths, by the number of decimals
TIME_STAMP: Final = np.frombuffer(b"0000-00-00 00:00:00", np.uint8)
DATE: Final = TIME_STAMP[:10]  # a pattern: zeros stand for digits
# The day on which each month starts, from that of year 0 to what the digits of year 9999 and month 99 could ask for.
MONTH_STARTS: Final = np.arange(-1970 * 12, (9999 - 1970) * 12 + 100).astype("M8[M]").astype("M8[D]").astype(np.int64)


def transactions_block(data: bytes, header: Sequence[str]) -> Block | None:
    rows = plain.read(data, header, cleaning.TRANSACTION_COLUMNS)
    if rows is None:
        return None
    ids, store, user, amount, created = (_texts(rows.columns[name]) for name in cleaning.TRANSACTION_COLUMNS)
    stores, users, amounts = _numbers(store), _numbers(user), _numbers(amount)
    created_at, is_time = _time_stamps(created)
    has_user, has_amount = users.are_integers, amounts.are_plain
    is_right = (
        _are_bare(ids) & stores.are_integers & (has_user | user.are_empty) & (has_amount | amount.are_empty) & is_time
    )
    kept = np.flatnonzero(is_right & _is_asked_for(created_at))
    users_kept, created_at, final_amount = users.whole[kept], created_at[kept], amounts.thousandths[kept]
    no_amount = ~has_amount[kept]
    second = created_at % cleaning.DAY
    is_open = (second >= cleaning.OPENS) & (second <= cleaning.CLOSES)
    is_listed = is_open & ~no_amount & (final_amount >= cleaning.LISTED_FROM)
    table = pa.Table.from_arrays(
        [
            pa.array(np.where(users_kept > 0, users_kept, -created_at)),
            rows.columns["transaction_id"].take(pa.array(kept, pa.int64(), mask=~is_listed)),
            pa.array(stores.whole[kept]),
            pa.array(final_amount, mask=no_amount),
            pa.array(created_at),
        ],
        schema=cleaning.TRANSACTIONS_SCHEMA,
    )
    return table, int(np.count_nonzero(is_right)), rows.apart(~is_right)


def items_block(data: bytes, header: Sequence[str]) -> Block | None:
    rows = plain.read(data, header, cleaning.ITEM_COLUMNS)
    if rows is None:
        return None
    ids, item, count, amount, created = (_texts(rows.columns[name]) for name in cleaning.ITEM_COLUMNS)
    items, counts, amounts = _numbers(item), _numbers(count), _numbers(amount)
    created_at, is_time = _time_stamps(created)
    is_right = _are_bare(ids) & items.are_integers & counts.are_integers & amounts.are_plain & is_time
    kept = np.flatnonzero(is_right & _is_asked_for(created_at))
    columns = [created_at[kept], items.whole[kept], counts.whole[kept], amounts.thousandths[kept]]
    table = pa.Table.from_arrays([pa.array(column) for column in columns], schema=cleaning.ITEMS_SCHEMA)
    return table, int(np.count_nonzero(is_right)), rows.apart(~is_right)


def users_block(data: bytes, header: Sequence[str]) -> Block | None:
    rows = plain.read(data, header, cleaning.USER_COLUMNS)
    if rows is None:
        return None
    user, birthdate = (_texts(rows.columns[name]) for name in cleaning.USER_COLUMNS)
    users = _numbers(user)
    days, is_date = _dates(birthdate)
    is_right = users.are_integers & (is_date | birthdate.are_empty)
    kept = np.flatnonzero(is_right & is_date & (users.whole > 0))
    table = pa.Table.from_arrays(
        [pa.array(users.whole[kept]), pa.array(days[kept].astype(np.int32)).view(pa.date32())],
        schema=cleaning.USERS_SCHEMA,
    )
    return table, int(np.count_nonzero(is_right)), rows.apart(~is_right)


def _is_asked_for(created_at: Numbers) -> Mask:
    return (created_at >= cleaning.FIRST_SECOND) & (created_at < cleaning.END_SECOND)


# --- texts


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts as it lies in memory: one after the other."""

    padded: Signs  # zeros follow, so that a whole word can be read anywhere
    starts: Numbers
    ends: Numbers

    @property
    def signs(self) -> Signs:
        return self.padded[: -2 * WORD]

    @property
    def are_empty(self) -> Mask:
        return np.equal(self.starts, self.ends)


def _texts(column: Any) -> Texts:
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
    signs = np.frombuffer(data or b"", np.uint8)[: bounds[-1]]
    return Texts(np.concatenate((signs, np.zeros(2 * WORD, np.uint8))), bounds[:-1], bounds[1:])


def _are_bare(texts: Texts) -> Mask:
    """Not empty, and nothing to trim at either end."""
    first, last = texts.padded[texts.starts], texts.padded[texts.ends - 1]
    are_signs = (first >= FIRST_SIGN) & (first <= LAST_SIGN) & (last >= FIRST_SIGN) & (last <= LAST_SIGN)
    return ~texts.are_empty & are_signs


# --- numbers


@dataclass(frozen=True, slots=True)
class Decimals:
    """Numbers like `862`, `862.0`, `78.125`; 0 for an empty text, and anything for one that is not plain."""

    whole: Numbers
    fraction: Numbers  # in thousandths
    are_plain: Mask

    @property
    def are_integers(self) -> Mask:
        return self.are_plain & np.equal(self.fraction, 0)

    @property
    def thousandths(self) -> Numbers:
        return self.whole * 1000 + self.fraction


def _numbers(texts: Texts) -> Decimals:
    signs, point = texts.signs, texts.ends.copy()  # where a text has no point, it would be at the end
    points = np.flatnonzero(signs == POINT)
    rows = np.searchsorted(texts.ends, points, side="right")
    point[rows] = points
    has_point = point < texts.ends
    digits, decimals = point - texts.starts, texts.ends - point - has_point
    are_plain = (digits > 0) & (digits <= WORD) & (decimals < len(TIMES)) & (has_point == (decimals > 0))
    are_plain[rows[1:][rows[1:] == rows[:-1]]] = False  # two points
    strange = np.flatnonzero((signs - ZERO > 9) & (signs != POINT))
    are_plain[np.searchsorted(texts.ends, strange, side="right")] = False
    decimals = np.where(are_plain, decimals, 0)
    whole = _integers(texts.padded, texts.starts, np.minimum(digits, WORD))
    return Decimals(whole, _integers(texts.padded, point + 1, decimals) * TIMES[decimals], are_plain)


def _integers(padded: Signs, starts: Numbers, lengths: Numbers) -> Numbers:
    """Up to eight digits each. Digits are read as one number of 64 bits whose lowest byte is the first digit; shifting
    puts zeros before them, and neighbours are joined in pairs: 8 digits, 4 of two, 2 of four, 1 of eight."""
    words = np.ndarray(len(padded) - WORD + 1, np.dtype("<u8"), padded.data, strides=(1,))
    joined = (words[starts] ^ np.uint64(0x3030303030303030)) << (8 * (WORD - lengths)).astype(np.uint64)
    joined = joined * np.uint64(10 * 2**8 + 1) >> np.uint64(8)
    joined = (joined & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(100 * 2**16 + 1) >> np.uint64(16)
    joined = (joined & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(10000 * 2**32 + 1) >> np.uint64(32)
    return joined.view(np.int64)


# --- dates


def _time_stamps(texts: Texts) -> tuple[Numbers, Mask]:
    """Seconds since 1970, and where that is what the text says."""
    *date, hour, minute, second = _pairs(texts, TIME_STAMP)
    days, are_dates = _days(*date)
    seconds = days * cleaning.DAY + hour * 3600 + minute * 60 + second
    return seconds, are_dates & (hour < 24) & (minute < 60) & (second < 60)


def _dates(texts: Texts) -> tuple[Numbers, Mask]:
    """Days since 1970, and where that is what the text says."""
    return _days(*_pairs(texts, DATE))


def _days(century: Numbers, year: Numbers, month: Numbers, day: Numbers) -> tuple[Numbers, Mask]:
    year = century * 100 + year
    months = year * 12 + month - (month > 0)
    first, days = MONTH_STARTS[months], MONTH_STARTS[months + 1] - MONTH_STARTS[months]
    return first + day - 1, (year > 0) & (month > 0) & (month <= 12) & (day > 0) & (day <= days)


def _pairs(texts: Texts, pattern: Signs) -> Numbers:
    """The digits of a pattern two by two, a line for each pair; zeros where a text is not like it."""
    are_digits, fits = pattern == ZERO, texts.ends - texts.starts == len(pattern)
    if fits.all():
        laid_out = texts.signs[texts.signs.size - fits.size * pattern.size :].reshape(-1, pattern.size)
    else:
        laid_out = np.zeros((fits.size, pattern.size), np.uint8)
        laid_out[fits] = texts.signs[texts.starts[fits][:, None] + np.arange(pattern.size)]
    lines = np.ascontiguousarray(laid_out.T)
    digits, others = lines[are_digits] - ZERO, lines[~are_digits]
    is_like = (digits <= 9).all(axis=0) & (others == pattern[~are_digits][:, None]).all(axis=0)
    digits = np.where(is_like, digits, 0)
    return (10 * digits[::2] + digits[1::2]).astype(np.int64)
