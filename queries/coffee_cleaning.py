"""What is kept of a row of the coffee shops' five files, and why a row is rejected.

Invariant: the outcome depends on this row only. The first reason counts, in the order of the columns below; a field
that is present and does not parse is null. A batch holds what some query needs and no more: all of them ask for 2024
and 2025, only query 1 for the ids of transactions, and those of a few.
"""

from collections.abc import Sequence
from datetime import date
from typing import Final

import pyarrow as pa

from queries.columns import schema
from queries.model import Reason, Rejected, Row
from queries.text import DAY, EPOCH, day, integer, positive, seconds, thousandths

TRANSACTION_COLUMNS: Final = ("transaction_id", "store_id", "user_id", "final_amount", "created_at")
ITEM_COLUMNS: Final = ("transaction_id", "item_id", "quantity", "subtotal", "created_at")
USER_COLUMNS: Final = ("user_id", "birthdate")
STORE_COLUMNS: Final = ("store_id", "store_name")
MENU_COLUMNS: Final = ("item_id", "item_name")

# Time stamps are in seconds since 1970, amounts in thousandths.
TRANSACTIONS_SCHEMA: Final = schema(
    key=pa.int64(),  # the user where it is positive; otherwise there is none, and it is the time stamp, negated
    transaction_id=pa.string(),  # or null: query 1 does not list it
    store_id=pa.int64(),  # or null
    final_amount=pa.int64(),  # or null
    created_at=pa.int64(),
)
ITEMS_SCHEMA: Final = schema(created_at=pa.int64(), item_id=pa.int64(), quantity=pa.int64(), subtotal=pa.int64())
USERS_SCHEMA: Final = schema(user_id=pa.int64(), birthdate=pa.date32())
STORES_SCHEMA: Final = schema(store_id=pa.int64(), store_name=pa.string())
MENU_SCHEMA: Final = schema(item_id=pa.int64(), item_name=pa.string())

FIRST_SECOND: Final = (date(2024, 1, 1).toordinal() - EPOCH) * DAY
END_SECOND: Final = (date(2026, 1, 1).toordinal() - EPOCH) * DAY
YEARS: Final = range(FIRST_SECOND, END_SECOND)
OPENS, CLOSES = 6 * 3600, 23 * 3600  # seconds of a day, both included
LISTED_FROM: Final = 75_000  # thousandths


def clean_transaction(fields: Sequence[str]) -> Row | Rejected | None:
    transaction_id, store, user, amount, time_stamp = (field.strip() for field in fields)
    if not transaction_id:
        return Rejected(Reason("no transaction_id"))
    if not store:
        return Rejected(Reason("no store_id"))
    created_at = _created_at(time_stamp)
    if isinstance(created_at, Rejected):
        return created_at
    if created_at not in YEARS:
        return None
    final_amount = thousandths(amount)
    return (
        positive(user) or -created_at,
        transaction_id if _is_listed(created_at, final_amount) else None,
        integer(store),
        final_amount,
        created_at,
    )


def clean_item(fields: Sequence[str]) -> Row | Rejected | None:
    """One query takes items, and needs all that is kept of them."""
    transaction_id, item, count, amount, time_stamp = (field.strip() for field in fields)
    if not transaction_id:
        return Rejected(Reason("no transaction_id"))
    if not item:
        return Rejected(Reason("no item_id"))
    created_at = _created_at(time_stamp)
    if isinstance(created_at, Rejected):
        return created_at
    row = created_at, integer(item), integer(count), thousandths(amount)
    return None if created_at not in YEARS or None in row else row


def clean_user(fields: Sequence[str]) -> Row | Rejected | None:
    """A user without a birthdate is like one that is not listed."""
    user, birthdate = (field.strip() for field in fields)
    if not user:
        return Rejected(Reason("no user_id"))
    row = positive(user), day(birthdate)
    return None if None in row else row


def clean_name(fields: Sequence[str]) -> Row | None:
    """Of a store or an item. Such a row is never rejected; without an id it names nothing."""
    number, name = integer(fields[0].strip()), fields[1].strip()
    return None if number is None else (number, name)


def _created_at(text: str) -> int | Rejected:
    if not text:
        return Rejected(Reason("no created_at"))
    created_at = seconds(text)
    return Rejected(Reason("created_at is not a time stamp")) if created_at is None else created_at


def _is_listed(created_at: int, final_amount: int | None) -> bool:
    return final_amount is not None and final_amount >= LISTED_FROM and OPENS <= created_at % DAY <= CLOSES
