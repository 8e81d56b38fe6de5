"""The fast ways for transactions, their items and users: a block of plain rows, column by column.

Invariant: what is vouched for here is what the exact way gives, and no row of it is rejected. A number is plain with up
to eight digits and at most three decimals, a date or a time stamp with nothing around it; where a field is written in
any other way, its row is set aside for the exact way.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from queries import coffee_cleaning as cleaning
from queries import plain
from queries.fields import Numbers, are_bare, dates, numbers, time_stamps
from queries.plain import Mask
from queries.text import DAY

Block = tuple[pa.Table, int, bytes]


def transactions_block(data: bytes, header: Sequence[str]) -> Block | None:
    rows = plain.read(data, header)
    if rows is None:
        return None
    ids, store, user, amount, created = (rows.texts(name) for name in cleaning.TRANSACTION_COLUMNS)
    stores, users, amounts = numbers(store, user, amount)
    created_at, is_time = time_stamps(created)
    has_user, has_amount = users.are_integers, amounts.are_plain
    is_right = (
        are_bare(ids) & stores.are_integers & (has_user | user.are_empty) & (has_amount | amount.are_empty) & is_time
    )
    kept = np.flatnonzero(is_right & _is_asked_for(created_at))
    users_kept, created_at, final_amount = users.whole[kept], created_at[kept], amounts.thousandths[kept]
    no_amount = ~has_amount[kept]
    second = created_at % DAY
    is_open = (second >= cleaning.OPENS) & (second <= cleaning.CLOSES)
    is_listed = is_open & ~no_amount & (final_amount >= cleaning.LISTED_FROM)
    table = pa.Table.from_arrays(
        [
            pa.array(np.where(users_kept > 0, users_kept, -created_at)),
            ids.column(pa.array(kept, pa.int64(), mask=~is_listed)),
            pa.array(stores.whole[kept]),
            pa.array(final_amount, mask=no_amount),
            pa.array(created_at),
        ],
        schema=cleaning.TRANSACTIONS_SCHEMA,
    )
    return table, int(np.count_nonzero(is_right)), rows.apart(~is_right)


def items_block(data: bytes, header: Sequence[str]) -> Block | None:
    rows = plain.read(data, header)
    if rows is None:
        return None
    ids, item, count, amount, created = (rows.texts(name) for name in cleaning.ITEM_COLUMNS)
    items, counts, amounts = numbers(item, count, amount)
    created_at, is_time = time_stamps(created)
    is_right = are_bare(ids) & items.are_integers & counts.are_integers & amounts.are_plain & is_time
    kept = np.flatnonzero(is_right & _is_asked_for(created_at))
    columns = [created_at[kept], items.whole[kept], counts.whole[kept], amounts.thousandths[kept]]
    table = pa.Table.from_arrays([pa.array(column) for column in columns], schema=cleaning.ITEMS_SCHEMA)
    return table, int(np.count_nonzero(is_right)), rows.apart(~is_right)


def users_block(data: bytes, header: Sequence[str]) -> Block | None:
    rows = plain.read(data, header)
    if rows is None:
        return None
    user, birthdate = (rows.texts(name) for name in cleaning.USER_COLUMNS)
    (users,) = numbers(user)
    days, is_date = dates(birthdate)
    is_right = users.are_integers & (is_date | birthdate.are_empty)
    kept = np.flatnonzero(is_right & is_date & (users.whole > 0))
    table = pa.Table.from_arrays(
        [pa.array(users.whole[kept]), pa.array(days[kept].astype(np.int32)).view(pa.date32())],
        schema=cleaning.USERS_SCHEMA,
    )
    return table, int(np.count_nonzero(is_right)), rows.apart(~is_right)


def _is_asked_for(created_at: Numbers) -> Mask:
    return (created_at >= cleaning.FIRST_SECOND) & (created_at < cleaning.END_SECOND)
