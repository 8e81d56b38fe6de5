"""What is kept of a row of the coffee shops, what is null, and which reason counts."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries.coffee import MENU_ITEMS, STORES, TRANSACTION_ITEMS, TRANSACTIONS, USERS
from queries.model import Reason, Rejected
from queries.text import positive, seconds, thousandths

TRANSACTION = {
    "transaction_id": " ac6f ",
    "store_id": "5",
    "user_id": "17272.0",
    "final_amount": "75.5",
    "created_at": "2024-01-01 10:06:50",
}
ITEM = {
    "transaction_id": "ac6f",
    "item_id": "8",
    "quantity": "2",
    "subtotal": "18.125",
    "created_at": "2025-12-31 23:59:59",
}
AT, LAST = 1704103610, 1767225599
BLANKS = ["", " \t", "\u3000"]


def transaction(**fields: str) -> Any:
    return TRANSACTIONS.clean_row(list((TRANSACTION | fields).values()))


def item(**fields: str) -> Any:
    return TRANSACTION_ITEMS.clean_row(list((ITEM | fields).values()))


def rejected(reason: str) -> Rejected:
    return Rejected(Reason(reason))


def test_the_columns_are_those_of_the_rule() -> None:
    assert TRANSACTIONS.columns == tuple(TRANSACTION)
    assert TRANSACTION_ITEMS.columns == tuple(ITEM)
    assert USERS.columns == ("user_id", "birthdate")
    assert (STORES.columns, MENU_ITEMS.columns) == (("store_id", "store_name"), ("item_id", "item_name"))


def test_a_transaction_is_kept_under_its_user() -> None:
    assert transaction() == (17272, "ac6f", 5, 75_500, AT)


@pytest.mark.parametrize("user", ["", " ", "0", "-3", "17.5", "x", str(2**63)])
def test_a_transaction_without_a_user_is_kept_under_a_negative_number(user: str) -> None:
    assert transaction(user_id=user) == (-AT, "ac6f", 5, 75_500, AT)


@pytest.mark.parametrize(
    ("fields", "is_listed"),
    [
        ({"final_amount": "75"}, True),
        ({"final_amount": "74.999"}, False),
        ({"final_amount": "x"}, False),
        ({"created_at": "2024-01-01 06:00:00"}, True),
        ({"created_at": "2024-01-01 23:00:00"}, True),
        ({"created_at": "2024-01-01 05:59:59"}, False),
        ({"created_at": "2024-01-01 23:00:01"}, False),
        ({"store_id": "x"}, True),
    ],
)
def test_the_id_is_kept_where_query_1_lists_it(fields: dict[str, str], is_listed: bool) -> None:
    assert transaction(**fields)[1] == ("ac6f" if is_listed else None)


@pytest.mark.parametrize("amount", ["", "-1", "-0", "1.2500", "1e2", "5.", ".5", "9223372036854775.808"])
def test_an_amount_that_does_not_parse_is_null_and_the_transaction_stays(amount: str) -> None:
    assert transaction(final_amount=amount) == (17272, None, 5, None, AT)


@pytest.mark.parametrize("store", ["x", "1.5", str(2**63)])
def test_a_store_that_does_not_parse_is_null(store: str) -> None:
    assert transaction(store_id=store) == (17272, "ac6f", None, 75_500, AT)


@pytest.mark.parametrize("year", ["2023", "2026"])
def test_rows_of_other_years_are_read_and_in_no_batch(year: str) -> None:
    assert transaction(created_at=f"{year}-01-01 10:00:00") is None
    assert item(created_at=f"{year}-12-31 23:59:59") is None


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("clean", [transaction, item])
def test_transactions_and_items_need_ids_and_a_time_stamp(clean: Any, blank: str) -> None:
    other = "store_id" if clean is transaction else "item_id"
    assert clean(transaction_id=blank, **{other: blank}, created_at=blank) == rejected("no transaction_id")
    assert clean(**{other: blank}, created_at="x") == rejected(f"no {other}")
    assert clean(created_at=blank) == rejected("no created_at")
    assert clean(created_at="2024-02-30 10:00:00") == rejected("created_at is not a time stamp")


def test_an_item_is_kept_with_its_month_quantity_and_subtotal() -> None:
    assert item() == (LAST, 8, 2, 18_125)
    assert item(item_id="8.0", quantity="-2", created_at="2024-01-01 00:00:00") == (1704067200, 8, -2, 18_125)


@pytest.mark.parametrize("fields", [{"item_id": "x"}, {"quantity": "1.5"}, {"quantity": ""}, {"subtotal": "-1"}])
def test_an_item_with_a_null_is_read_and_in_no_batch(fields: dict[str, str]) -> None:
    assert item(**fields) is None


def test_a_user_is_a_birthdate() -> None:
    assert USERS.clean_row([" 5.0 ", " 1988-05-15"]) == (5, date(1988, 5, 15))
    assert [USERS.clean_row([blank, "1988-05-15"]) for blank in BLANKS] == [rejected("no user_id")] * 3


@pytest.mark.parametrize(
    "row", [("0", "1988-05-15"), ("x", "1988-05-15"), ("5", ""), ("5", "1990-02-30"), ("5", "1988-05-15 00:00:00")]
)
def test_a_user_without_a_birthdate_or_a_number_is_read_and_in_no_batch(row: tuple[str, str]) -> None:
    assert USERS.clean_row(row) is None


@pytest.mark.parametrize("file", [STORES, MENU_ITEMS])
def test_names_are_never_rejected(file: Any) -> None:
    assert file.clean_row([" 3.0 ", " Latte\t"]) == (3, "Latte")
    assert file.clean_row(["-3", ""]) == (-3, "")
    assert [file.clean_row([number, "Latte"]) for number in ("", "x", "1.5")] == [None] * 3


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("75", 75_000), ("1.5", 1_500), ("01.25", 1_250), ("0.125", 125), ("0" * 5000 + "1", 1000)]
    + [("9223372036854775.807", 2**63 - 1), ("9223372036854775.808", None), ("9" * 17, None), ("9" * 100_000, None)]
    + [(text, None) for text in ("", "-1", "-0", "+1", "1.", ".5", "1.2500", "1.0000", "1e3", "1_0", "٥", " 1", "1\n")],
)
def test_an_amount_is_exact_in_thousandths(text: str, value: int | None) -> None:
    assert thousandths(text) == value


def test_a_user_id_is_positive() -> None:
    assert [positive(text) for text in ("1", "17272.0", "0", "-1", "1.5", "")] == [1, 17272, None, None, None, None]


@settings(deadline=None)  # this machine may be busy
@given(st.datetimes())
def test_every_real_time_stamp_parses(at: datetime) -> None:
    at = at.replace(microsecond=0, tzinfo=UTC)
    assert seconds(at.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")) == int(at.timestamp())


@pytest.mark.parametrize(
    "text",
    [
        *("", "2024-01-01", "2024-01-01T10:00:00", "2024-01-01 10:00", "2024-01-01 24:00:00", "2024-01-01 10:60:00"),
        *("2024-01-01 10:00:60", "2023-02-29 10:00:00", "0000-01-01 10:00:00", "2024-01-01 10:00:00Z"),
        *("2024-1-1 1:0:0", "2024-01-01  10:00:00", "2024-01-01 10:00:00\n", "２024-01-01 10:00:00"),
    ],
)
def test_a_time_stamp_that_is_written_otherwise_or_not_real_is_null(text: str) -> None:
    assert seconds(text) is None
