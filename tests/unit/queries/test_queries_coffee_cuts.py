"""Coffee: no cut, no order, no number of partitions shows in an answer; and it is the one that plain Python gives."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries.coffee import COFFEE_DATASET, MENU_ITEMS, Q1, Q2, Q3, Q4, STORES, TRANSACTION_ITEMS, TRANSACTIONS, USERS
from queries.columns import from_rows
from queries.model import Query
from tests.unit.queries.pipeline import Answer, check_cuts, check_schemas

Rows = Sequence[Any]  # tuples in the order of the schema

TIMES = ["00:00:00", "05:59:59", "06:00:00", "12:34:56", "23:00:00", "23:00:01", "23:59:59"]
DAYS = ["2024-01-01", "2024-06-30", "2024-07-01", "2025-01-31", "2025-02-01", "2025-12-31"]
moments = st.sampled_from(
    [int(datetime.fromisoformat(f"{day} {time}").replace(tzinfo=UTC).timestamp()) for day in DAYS for time in TIMES]
)
ids = st.sampled_from([-(2**63), -1, 1, 2, 10, 2**63 - 1])
user_ids = st.sampled_from([1, 2, 3, 4, 10, 2**63 - 1])
amounts = st.sampled_from([0, 1, 10, 1500, 75_000, 99_125, 2**63 - 1])
quantities = st.sampled_from([-(2**63), -1, 0, 1, 3, 2**63 - 1])
names = st.sampled_from(["", "a", "b", "É", "\U0001f600", "\uffff"])
birthdates = st.sampled_from([date(1, 1, 1), date(1969, 12, 31), date(2000, 2, 29), date(9999, 12, 31)])


def transaction(key: int, name: str | None, store: int | None, amount: int | None, at: int) -> tuple[Any, ...]:
    """As cleaning leaves it: whoever has no user has a key that comes of the time."""
    return key or -at, name if amount is not None else None, store, amount, at


TABLES: dict[str, st.SearchStrategy[pa.Table]] = {
    "transactions": st.lists(
        st.builds(transaction, user_ids | st.just(0), st.none() | names, st.none() | ids, st.none() | amounts, moments),
        max_size=15,
    ).map(lambda rows: from_rows(TRANSACTIONS.schema, rows)),
    "transaction_items": st.lists(st.tuples(moments, ids, quantities, amounts), max_size=15).map(
        lambda rows: from_rows(TRANSACTION_ITEMS.schema, rows)
    ),
    "users": st.lists(st.tuples(user_ids, birthdates), max_size=12).map(lambda rows: from_rows(USERS.schema, rows)),
    "stores": st.lists(st.tuples(ids, names), max_size=6).map(lambda rows: from_rows(STORES.schema, rows)),
    "menu_items": st.lists(st.tuples(ids, names), max_size=6).map(lambda rows: from_rows(MENU_ITEMS.schema, rows)),
}


def batches_of(query: Query) -> st.SearchStrategy[dict[str, pa.Table]]:
    return st.fixed_dictionaries({each.file.kind: TABLES[each.file.kind] for each in query.inputs})


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def name_of(number: int, named: Rows) -> str:
    return min((name for known, name in named if known == number), default="")


def money(thousandths: int) -> str:
    whole, third = f"{thousandths // 1000}.{thousandths % 1000 // 10:02d}", thousandths % 10
    return f"{whole}{third}" if third else whole


def plain_q1(transactions: Rows) -> Answer:
    listed = sorted((name, amount) for _, name, _, amount, _ in transactions if name is not None)
    return [(name, money(amount)) for name, amount in listed]


def plain_q2(items: Rows, menu: Rows) -> Answer:
    lines: Answer = []
    for month in sorted({f"{at(seconds):%Y-%m}" for seconds, *_ in items}):
        quantity, subtotal = Counter[int](), Counter[int]()
        for seconds, item, sold, earned in items:
            if f"{at(seconds):%Y-%m}" == month:
                quantity[item] += sold
                subtotal[item] += earned
        for best, sums, text in (("quantity", quantity, str), ("revenue", subtotal, money)):
            item, value = min(sums.items(), key=lambda each: (-each[1], each[0]))
            lines.append((month, best, str(item), name_of(item, menu), text(value)))
    return lines


def plain_q3(transactions: Rows, stores: Rows) -> Answer:
    sums = Counter[tuple[str, int]]()
    for _, _, store, amount, seconds in transactions:
        time = f"{at(seconds):%H:%M:%S}"
        if store is not None and amount is not None and "06:00:00" <= time <= "23:00:00":
            sums[f"{at(seconds).year}-H{(at(seconds).month + 5) // 6}", store] += amount
    return [(half, str(store), name_of(store, stores), money(amount)) for (half, store), amount in sorted(sums.items())]


def plain_q4(transactions: Rows, users: Rows, stores: Rows) -> Answer:
    counts = Counter((row[2], row[0]) for row in transactions if row[2] is not None and row[0] > 0)
    lines: Answer = []
    for store in sorted({store for store, _ in counts}):
        ranked = sorted((-count, user) for (shop, user), count in counts.items() if shop == store)
        for count, user in ranked[:3]:
            born = min((birthdate.isoformat() for known, birthdate in users if known == user), default="")
            lines.append((str(store), name_of(store, stores), str(user), born, str(-count)))
    return lines


PLAIN: list[tuple[Query, Callable[..., Answer]]] = [(Q1, plain_q1), (Q2, plain_q2), (Q3, plain_q3), (Q4, plain_q4)]


@pytest.mark.parametrize(("query", "plain"), PLAIN, ids=lambda each: getattr(each, "name", ""))
@settings(deadline=None, max_examples=50)  # this machine may be busy
@given(data=st.data(), partitions=st.integers(1, 4), rng=st.randoms(use_true_random=False))
def test_an_answer_does_not_depend_on_how_rows_are_cut(
    query: Query, plain: Callable[..., Answer], data: st.DataObject, partitions: int, rng: random.Random
) -> None:
    check_cuts(query, plain, data.draw(batches_of(query)), partitions, rng)


@pytest.mark.parametrize("query", COFFEE_DATASET.queries, ids=lambda query: query.name)
@settings(deadline=None, max_examples=20)  # this machine may be busy
@given(data=st.data())
def test_blocks_and_partials_keep_one_schema_rows_or_none(query: Query, data: st.DataObject) -> None:
    check_schemas(query, data.draw(batches_of(query)))
