"""How the four answers about coffee shops come of their rows: the folds, combines, partials and answers.

Invariant: everything here is a sum or an extreme by a total order, so no cut and no order of the rows shows. Sums are
decimals of 38 digits: 2**40 rows of the largest int64 sum up to less than 10**32, so none can overflow. Every table has
the schema declared for it, rows or none.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queries.coffee_cleaning import CLOSES, MENU_SCHEMA, OPENS, STORES_SCHEMA, USERS_SCHEMA
from queries.columns import are_set, keep, rows_of, schema, sum_by, table_of
from queries.model import Given, Mask, Options, Row
from queries.text import DAY, EPOCH

Tables = Mapping[str, pa.Table]
Rows = Sequence[Sequence[str]]
Numbers = NDArray[np.int64]

SUM: Final = pa.decimal128(38, 0)
LISTED: Final = schema(transaction_id=pa.string(), final_amount=pa.int64())
SOLD: Final = schema(month=pa.int64(), item_id=pa.int64(), quantity=SUM, subtotal=SUM)
SOLD_ROWS: Final = SOLD.append(pa.field("rows", pa.int64()))
SOLD_BY_NAME: Final = schema(month=pa.int64(), item_id=pa.int64(), item_name=pa.string(), quantity=SUM, subtotal=SUM)
EARNED: Final = schema(half=pa.int64(), store_id=pa.int64(), final_amount=SUM)
EARNED_BY_NAME: Final = schema(half=pa.int64(), store_id=pa.int64(), store_name=pa.string(), final_amount=SUM)
PURCHASES: Final = schema(store_id=pa.int64(), user_id=pa.int64(), purchases=pa.int64())
FREQUENT: Final = schema(
    store_id=pa.int64(),
    store_name=pa.string(),
    user_id=pa.int64(),
    birthdate=pa.date32(),  # or null
    purchases=pa.int64(),
)

FIRST_YEAR: Final = 2024
MONTH_STARTS: Final = np.array(
    [(date(FIRST_YEAR + month // 12, month % 12 + 1, 1).toordinal() - EPOCH) * DAY for month in range(24)]
)
HALF_STARTS: Final = MONTH_STARTS[::6]
PLACES: Final = 3  # of a store


# --- 1: large transactions during opening hours


def listed(batch: pa.Table, _: Given) -> pa.Table:
    """Cleaning keeps the ids of these alone."""
    return keep(batch.select(LISTED.names), are_set(batch, "transaction_id"))


def transaction_line(transaction: Row) -> Sequence[str]:
    transaction_id, final_amount = transaction
    return transaction_id, money(final_amount)


# --- 2: what sold most and what earned most, month by month


def pack_items(items: pa.Table) -> pa.Table:
    """One row a month and an item: what a transaction of an upload holds, some hundred thousand items, comes down to a
    few dozen."""
    months, ones = pa.array(_since(MONTH_STARTS, items)), pa.array(np.ones(items.num_rows, dtype=np.int64))
    columns: list[Any] = [months, *(items[name] for name in ("item_id", "quantity", "subtotal")), ones]
    return _wide_sums(SOLD_ROWS, pa.table(columns, SOLD_ROWS.names), "month", "item_id")


def sold(batch: pa.Table, _: Given) -> pa.Table:
    return batch.select(SOLD.names)


def sum_sold(blocks: pa.Table) -> pa.Table:
    return sum_by(blocks, "month", "item_id")


def item_names(batch: pa.Table, _: Given) -> pa.Table:
    return batch.select(MENU_SCHEMA.names)


def smallest_item_names(blocks: pa.Table) -> pa.Table:
    return _least_by(blocks, "item_id", "item_name")


def sold_by_name(tables: Tables, _: Options) -> pa.Table:
    sums = tables["transaction_items"]
    names = _names_of(sums["item_id"], tables["menu_items"])
    return table_of(SOLD_BY_NAME, sums["month"], sums["item_id"], names, sums["quantity"], sums["subtotal"])


def best_items(partials: pa.Table, _: Options) -> Rows:
    sums = sorted(rows_of(sum_by(partials, "month", "item_id", "item_name")))
    lines: list[Sequence[str]] = []
    for month, items in groupby(sums, key=lambda row: row[0]):
        ranked = list(items)  # by id, and the first of equals is the largest
        _, most_id, most_name, quantity, _ = max(ranked, key=lambda row: row[3])
        _, best_id, best_name, _, subtotal = max(ranked, key=lambda row: row[4])
        named = f"{FIRST_YEAR + month // 12}-{month % 12 + 1:02d}"
        lines.append((named, "quantity", str(most_id), most_name, str(int(quantity))))
        lines.append((named, "revenue", str(best_id), best_name, money(int(subtotal))))
    return lines


# --- 3: what stores earned during opening hours, half-year by half-year


def are_earned(batch: pa.Table, _: Options) -> Mask:
    """Returns which transactions a store earned something by, during opening hours."""
    second_of_day = batch["created_at"].to_numpy() % DAY
    is_open = (second_of_day >= OPENS) & (second_of_day <= CLOSES)
    return is_open & are_set(batch, "store_id") & are_set(batch, "final_amount")


def earned(batch: pa.Table, given: Given) -> pa.Table:
    needed = batch.select(["created_at", "store_id", "final_amount"])
    taken = keep(needed, are_earned(batch, given.options))
    columns: list[Any] = [pa.array(_since(HALF_STARTS, taken)), taken["store_id"], taken["final_amount"]]
    return _wide_sums(EARNED, pa.table(columns, EARNED.names), "half", "store_id")


def sum_earned(blocks: pa.Table) -> pa.Table:
    return sum_by(blocks, "half", "store_id")


def store_names(batch: pa.Table, _: Given) -> pa.Table:
    return batch.select(STORES_SCHEMA.names)


def smallest_store_names(blocks: pa.Table) -> pa.Table:
    return _least_by(blocks, "store_id", "store_name")


def earned_by_name(tables: Tables, _: Options) -> pa.Table:
    sums = tables["transactions"]
    names = _names_of(sums["store_id"], tables["stores"])
    return table_of(EARNED_BY_NAME, sums["half"], sums["store_id"], names, sums["final_amount"])


def halves_of_stores(partials: pa.Table, _: Options) -> Rows:
    return [
        (f"{FIRST_YEAR + half // 2}-H{half % 2 + 1}", str(store_id), store_name, money(int(final_amount)))
        for half, store_id, store_name, final_amount in sorted(
            rows_of(sum_by(partials, "half", "store_id", "store_name"))
        )
    ]


# --- 4: the most frequent users of each store. All rows of a user are in one partition


def are_of_users(batch: pa.Table, _: Options) -> Mask:
    """Returns which transactions a known user made in a known store."""
    return (batch["key"].to_numpy() > 0) & are_set(batch, "store_id")


def purchases(batch: pa.Table, given: Given) -> pa.Table:
    """One by one: in a batch, hardly a user comes back to a store."""
    taken = keep(batch.select(["key", "store_id"]), are_of_users(batch, given.options))
    return table_of(PURCHASES, taken["store_id"], taken["key"], np.ones(taken.num_rows, dtype=np.int64))


def sum_purchases(blocks: pa.Table) -> pa.Table:
    return sum_by(blocks, "store_id", "user_id")


def birthdates(batch: pa.Table, _: Given) -> pa.Table:
    return batch.select(USERS_SCHEMA.names)


def earliest_birthdates(blocks: pa.Table) -> pa.Table:
    return _least_by(blocks, "user_id", "birthdate")


def frequent_users(tables: Tables, _: Options) -> pa.Table:
    """The first three of a partition are all that can be among the first three of the whole."""
    top = _first_places(tables["transactions"])
    wanted = pc.is_in(tables["users"]["user_id"], value_set=top["user_id"].combine_chunks())
    birthdate_of = dict(rows_of(tables["users"].filter(wanted)))
    found = [birthdate_of.get(user_id) for user_id in top["user_id"].to_pylist()]
    names = _names_of(top["store_id"], tables["stores"])
    return table_of(FREQUENT, top["store_id"], names, top["user_id"], pa.array(found, pa.date32()), top["purchases"])


def most_frequent_users(partials: pa.Table, _: Options) -> Rows:
    return [
        (str(store_id), store_name, str(user_id), birthdate.isoformat() if birthdate else "", str(count))
        for store_id, store_name, user_id, birthdate, count in rows_of(_first_places(partials))
    ]


def _first_places(table: pa.Table) -> pa.Table:
    """By store, its users with the most purchases first; equals by their id."""
    store, user, count = (table[name].to_numpy() for name in PURCHASES.names)
    order = np.lexsort((user, -count, store))
    ranked = store[order]
    place = np.arange(len(order)) - np.searchsorted(ranked, ranked)
    return table.take(order[place < PLACES])


# --- shared


def money(thousandths: int) -> str:
    """Two decimals, a third only where it is not zero."""
    whole, fraction = divmod(thousandths, 1000)
    text = f"{whole}.{fraction:03d}"
    return text.removesuffix("0")


def _since(starts: Numbers, batch: pa.Table) -> Numbers:
    """How many of the periods have passed."""
    return np.searchsorted(starts, batch["created_at"].to_numpy(), side="right") - 1


def _wide_sums(wide: pa.Schema, table: pa.Table, *keys: str) -> pa.Table:
    """The rows of a key summed up. Decimals take ten times as long as int64, and are needed only where that might
    overflow."""
    values = [table[name] for name in table.column_names if name not in keys]
    if all(_largest(column) * table.num_rows < 2**63 for column in values):
        return sum_by(table, *keys).cast(wide)
    return sum_by(table.cast(wide), *keys)


def _largest(column: Any) -> int:
    ends: Any = pc.min_max(column)
    least, most = (ends[name].as_py() or 0 for name in ("min", "max"))
    return max(abs(int(least)), abs(int(most)))


def _least_by(table: pa.Table, key: str, value: str) -> pa.Table:
    """One row a key, with the smallest of its values; text by code point."""
    least = table.group_by(key, use_threads=False).aggregate([(value, "min")])
    return least.select([key, f"{value}_min"]).rename_columns([key, value])


def _names_of(ids: Any, named: pa.Table) -> pa.StringArray:
    """Empty where the list does not know the id."""
    name_of = dict(rows_of(named))
    return pa.array([name_of.get(number, "") for number in ids.to_pylist()], pa.string())
