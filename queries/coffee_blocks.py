"""The fast ways for transactions, their items and users: a block of plain rows, column by column.

Invariant: what is vouched for here is what the exact way gives, and no row of it is rejected. A number is plain with up
to fifteen digits and at most three decimals, a date or a time stamp with nothing around it; where a field is written in
any other way, its row is set aside for the exact way.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from queries import coffee_cleaning as cleaning
from queries import plain
from queries.compiled import Mask, Numbers
from queries.plain import Decimals
from queries.text import DAY

Block = tuple[pa.Table, int, bytes]


def transactions_block(data: bytes, header: Sequence[str]) -> Block | None:
    rows = plain.read(data, header, cleaning.TRANSACTION_COLUMNS)
    if rows is None:
        return None
    ids, store, user, amount, created = rows.columns
    stores, users, amounts = map(Decimals.of, (store, user, amount))
    created_at, is_time = created.time_stamps()
    has_user, has_amount = users.are_integers, amounts.are_plain
    is_right = (
        ids.are_bare & stores.are_integers & (has_user | user.are_empty) & (has_amount | amount.are_empty) & is_time
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
            plain.strings(ids.at(kept), is_listed),
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
    ids, item, count, amount, created = rows.columns
    items, counts, amounts = map(Decimals.of, (item, count, amount))
    created_at, is_time = created.time_stamps()
    is_right = ids.are_bare & items.are_integers & counts.are_integers & amounts.are_plain & is_time
    kept = np.flatnonzero(is_right & _is_asked_for(created_at))
    columns = [created_at[kept], items.whole[kept], counts.whole[kept], amounts.thousandths[kept]]
    table = pa.Table.from_arrays([pa.array(column) for column in columns], schema=cleaning.ITEMS_SCHEMA)
    return table, int(np.count_nonzero(is_right)), rows.apart(~is_right)


def users_block(data: bytes, header: Sequence[str]) -> Block | None:
    rows = plain.read(data, header, cleaning.USER_COLUMNS)
    if rows is None:
        return None
    user, birthdate = rows.columns
    users = Decimals.of(user)
    days, is_date = birthdate.dates()
    is_right = users.are_integers & (is_date | birthdate.are_empty)
    kept = np.flatnonzero(is_right & is_date & (users.whole > 0))
    table = pa.Table.from_arrays(
        [pa.array(users.whole[kept]), pa.array(days[kept].astype(np.int32)).view(pa.date32())],
        schema=cleaning.USERS_SCHEMA,
    )
    return table, int(np.count_nonzero(is_right)), rows.apart(~is_right)


def _is_asked_for(created_at: Numbers) -> Mask:
    return (created_at >= cleaning.FIRST_SECOND) & (created_at < cleaning.END_SECOND)
