"""The fast ways of coffee give what the exact way gives, or set a row aside."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries.coffee import TRANSACTION_ITEMS, TRANSACTIONS, USERS
from queries.model import File
from tests.unit.gateway import fast_way

FILES = (TRANSACTIONS, TRANSACTION_ITEMS, USERS)
BY_KIND = {file.kind: file for file in FILES}
OTHERS = {
    "transactions": ("payment_method_id", "voucher_id", "original_amount", "discount_applied"),
    "transaction_items": ("unit_price",),
    "users": ("gender", "registered_at"),
}


def check(file: File, data: bytes, header: Sequence[str]) -> int | None:
    """How many rows the fast way took."""
    taken = fast_way.check(file, data, header)
    return None if taken is None else taken.rows


days = st.dates().map(str) | st.sampled_from(["2024-02-29", "2025-12-31", "2024-01-01", "1999-12-31", "0001-01-01"])
times = st.times().map(lambda time: time.strftime("%H:%M:%S")) | st.sampled_from(
    ["05:59:59", "06:00:00", "23:00:00", "23:00:01", "00:00:00", "23:59:59"]
)
whole = st.integers(0, 10**8 - 1).map(str)
PLAIN = {
    "transaction_id": st.sampled_from(["ac6f851c-649f-42fb-a606-72be0fdcf8d2", "a", "a b", "a é z"]),
    "store_id": st.sampled_from(["1", "10", "5.0", "00000007", "99999999.000"]),
    "item_id": whole,
    "quantity": whole,
    "user_id": st.sampled_from(["", "17272.0", "1127833.0", "5", "0", "0.0"]),
    "final_amount": st.sampled_from(["", "87.0", "74.999", "75", "75.0", "99999999.999", "0.5", "00.010"]),
    "subtotal": st.sampled_from(["87.0", "74.999", "0", "99999999.999"]),
    "birthdate": days | st.just(""),
    "created_at": st.builds("{} {}".format, days | st.dates().map(lambda day: f"2024-{day:%m-%d}"), times),
}
ODD_TEXTS = [
    *("", " ", "\u00a0", "-1", "-0", "+1", "1e3", "1_0", "5.", ".5", ".", "..", "1.2.3", "1..2", "1.2500", "8.0000"),
    *("123456789", "9" * 19, "9" * 25, "9223372036854775.807", "9223372036854775.808", "0" * 30 + "5", "abc", "٣"),
    *("1.5", "1.05", " 1", "1\t", "\u20031", "1\x1c", "1\0", "a ", "é", "1/2", "1:2", '"3"', "x\x7f"),
    *("2024-02-30 10:00:00", "2023-02-29 10:00:00", "2024-00-10 10:00:00", "2024-13-10 10:00:00"),
    *("2024-01-00 10:00:00", "0000-01-01 00:00:00", "2024-01-01 24:00:00", "2024-01-01 10:60:00"),
    *("2024-01-01 10:00:60", "2024-01-01T10:00:00", "2024-01-01 10:00", "2024-01-01 10:00:00.0"),
    *(" 2024-01-01 10:00:0", "2024-01-01  10:00:00", "2024-99-99 99:99:99", "9999-99-99 99:99:99"),
    *("2024-01-01 10:00:0:", "2024-01-01 1é:00:0", "２024-01-01 10:00", "0000-00-00", "9999-12-31", "9999-99-99"),
    *("2024-02-30", "2023-02-29", "2024-1-1", "2024/01/01", "20240101", "2024-01-01 ", "0000-01-01"),
]
ODD = st.sampled_from(ODD_TEXTS)
near = st.text("019.-: \n", max_size=2).map(str.encode)
LINE_ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n"])


def headers(file: File) -> st.SearchStrategy[list[str]]:
    return st.permutations([*file.columns, *OTHERS[file.kind]]) | st.permutations(file.columns)


def plain(file: File, column: str) -> st.SearchStrategy[str]:
    if file is USERS and column == "user_id":
        return whole | st.just("5.0")
    return PLAIN.get(column, st.sampled_from(["", "x", "1.0"]))


@pytest.mark.parametrize("kind", BY_KIND)
@given(data=st.data())
@settings(deadline=None)
def test_plain_rows_are_taken(kind: str, data: st.DataObject) -> None:
    file = BY_KIND[kind]
    header = data.draw(headers(file))
    rows = data.draw(st.lists(st.tuples(*(plain(file, name) for name in header)), min_size=1, max_size=4))
    line_end = data.draw(LINE_ENDS)
    assert check(file, fast_way.written(rows, lambda: line_end), header) == len(rows)


@pytest.mark.parametrize("kind", BY_KIND)
@given(data=st.data())
@settings(deadline=None)
def test_near_misses_are_right_or_set_aside(kind: str, data: st.DataObject) -> None:
    file = BY_KIND[kind]
    header = data.draw(headers(file))
    fields = [st.one_of(plain(file, name), plain(file, name), ODD) for name in header]
    rows: list[Sequence[str]] = data.draw(
        st.lists(st.tuples(*fields) | st.lists(ODD, min_size=1, max_size=7), max_size=3)
    )
    check(file, fast_way.written(rows, lambda: data.draw(LINE_ENDS)), header)


GOOD = {
    "transactions": "ab,2,17.0,76.5,2025-01-01 07:22:08",
    "transaction_items": "ab,5,2,18.25,2024-02-29 15:15:53",
    "users": "17,2003-01-06",
}


@pytest.mark.parametrize("kind", BY_KIND)
def test_each_odd_text_in_each_column_is_right_or_set_aside(kind: str) -> None:
    file, fields = BY_KIND[kind], GOOD[kind].split(",")
    for place in range(len(fields)):
        rows = [[*fields[:place], odd, *fields[place + 1 :]] for odd in ODD_TEXTS if '"' not in odd]
        taken = check(file, fast_way.written([fields, *rows], lambda: "\n"), file.columns)
        assert taken is not None
        assert 0 < taken <= len(rows)


@pytest.mark.parametrize("kind", BY_KIND)
@given(data=st.data())
@settings(deadline=None)
def test_any_one_byte_is_right_or_set_aside(kind: str, data: st.DataObject) -> None:
    file, good = BY_KIND[kind], f"{GOOD[kind]}\n".encode() * 2
    at, sign = data.draw(st.integers(0, len(good))), data.draw(st.binary(max_size=2) | near)
    check(file, good[:at] + sign + good[at + data.draw(st.integers(0, 1)) :], file.columns)


@given(data=st.text('0159..,,,\n\n\r-: "', max_size=40).map(str.encode))
@settings(deadline=None)
def test_digits_points_and_separators_in_any_order(data: bytes) -> None:
    for file in FILES:
        check(file, data + b"\n", file.columns)


@pytest.mark.parametrize(
    ("row", "taken"),
    [
        ("a,2,17.0,76.5,2025-01-01 07:22:08", 1),
        ("a,2,,,2025-01-01 07:22:08", 1),  # no user and no amount: null, and not rejected
        ("a,2,17.0,76.5,2023-01-01 07:22:08", 1),  # read, and not kept
        ("a,12345678,17,76.500,2024-02-29 07:22:08", 1),
        (",2,17.0,76.5,2025-01-01 07:22:08", 0),
        ("a ,2,17.0,76.5,2025-01-01 07:22:08", 0),
        ("a,,17.0,76.5,2025-01-01 07:22:08", 0),
        ("a,x,17.0,76.5,2025-01-01 07:22:08", 0),
        ("a,2,17.5,76.5,2025-01-01 07:22:08", 0),
        ("a,2,17.0,76.5000,2025-01-01 07:22:08", 0),
        ("a,123456789,17,76.5,2024-02-29 07:22:08", 1),
        ("a,1234567890123456,17,76.5,2024-02-29 07:22:08", 0),
        ("a,2,17.0,76.5,2025-02-29 07:22:08", 0),
        ("a,2,17.0,76.5", 0),
        ('a,2,"17.0",76.5,2025-01-01 07:22:08', 0),
        ('a,2,"17\n.0",76.5,2025-01-01 07:22:08\na,2,17.0,76.5,2025-01-01 07:22:08', 1),  # a row of two lines
        ('a"b,2,17.0,76.5,2025-01-01 07:22:08\r\na,2,17.0,76.5,2025-01-01 07:22:08\r', 2),  # a quote that opens nothing
        ('a,2,"17.0,76.5,2025-01-01 07:22:08\na,2,17.0,76.5,2025-01-01 07:22:08', None),  # never closed
        ("a,2,17.0,76.5,2025-01-01 07:22:08\n", 1),  # an empty line
        ("a,2,17.0\r,76.5,2025-01-01 07:22:08", None),
    ],
)
def test_what_is_taken(row: str, taken: int | None) -> None:
    assert check(TRANSACTIONS, f"{row}\n".encode(), TRANSACTIONS.columns) == taken


def test_odd_rows_are_set_aside_and_the_others_taken() -> None:
    rows = [f"{n},{n % 9},{n},{n}.{n % 1000},2024-01-{n % 28 + 1:02d} 10:00:{n % 60:02d}" for n in range(1, 1001)]
    odd = ["a,2,17.0,76.5,never", "a,2", "a, 2,17,1,2024-01-01 10:00:00", ",2,,1,2024-01-01 10:00:00"]
    assert TRANSACTIONS.clean_block is not None
    data = "\n".join([odd[0], *rows[:300], *odd[1:3], *rows[300:], odd[3], ""]).encode()
    taken = TRANSACTIONS.clean_block(data, TRANSACTIONS.columns)
    assert taken is not None
    assert taken[1:] == (len(rows), "\n".join([*odd, ""]).encode())
    assert check(TRANSACTIONS, data, TRANSACTIONS.columns) == len(rows)
