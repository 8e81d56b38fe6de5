"""The few moves that folds are made of: masks, sums by key, and the way from columns to Python rows and back.

The doorway to Arrow's untyped corners: a table says its types in its schema, and `Any` stands for them here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queries.model import Given, Mask, Options, Reads


def schema(**types: pa.DataType) -> pa.Schema:
    return pa.schema(types)


def table_of(schema_: pa.Schema, *columns: Any) -> pa.Table:
    """Columns as Arrow, numpy or lists, in the order of the schema."""
    return pa.table(list(columns), schema=schema_)


def keep(table: pa.Table, mask: Mask) -> pa.Table:
    return table.filter(pa.array(mask))


def lists_have(table: pa.Table, column: str, name: str) -> Mask:
    """Which rows have this very name in their list."""
    lists: Any = table[column].combine_chunks()
    rows = pc.list_parent_indices(lists).filter(pc.equal(pc.list_flatten(lists), pa.scalar(name)))
    mask = np.zeros(table.num_rows, dtype=np.bool_)
    mask[rows.to_numpy()] = True
    return mask


def list_lengths(table: pa.Table, column: str) -> NDArray[np.int32]:
    lists: Any = table[column]
    lengths: NDArray[np.int32] = pc.list_value_length(lists).to_numpy()
    return lengths


def numbers(table: pa.Table, column: str, null: int) -> NDArray[Any]:
    """With `null` in place of nulls."""
    values: Any = table[column]
    filled: NDArray[Any] = values.fill_null(null).to_numpy()
    return filled


def are_set(table: pa.Table, column: str) -> Mask:
    """Which rows have no null there."""
    return table[column].is_valid().to_numpy()


def having(*columns: str) -> Reads:
    """Returns a condition: the rows that have no null in any of these columns."""
    return lambda rows, _: np.logical_and.reduce([are_set(rows, column) for column in columns])


def joining(table: pa.Table, other: pa.Table, column: str) -> pa.Table:
    """The rows whose key the other table has, too: a semi-join."""
    return table.filter(pc.is_in(table[column], value_set=other[column].combine_chunks()))


def sum_by(table: pa.Table, *keys: str) -> pa.Table:
    """One row a key, every other column summed; the keys come first in the schema, and the schema stays. With no other
    column: the distinct rows."""
    values = [name for name in table.column_names if name not in keys]
    codes = _codes(table, keys)
    if codes is None or not all(_is_int64(table[name]) for name in values):
        grouped = table.group_by(list(keys), use_threads=False).aggregate([(name, "sum") for name in values])
        return grouped.select([*keys, *(f"{name}_sum" for name in values)]).rename_columns([*keys, *values])
    # Sorting one number a row takes a third of the time of Arrow's groups of several columns.
    order = np.argsort(codes)
    codes = codes[order]
    firsts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
    of_keys = table.select(keys).combine_chunks().take(order[firsts])
    sums = [np.add.reduceat(table[name].to_numpy()[order], firsts) for name in values]
    fields = [table.schema.field(name) for name in (*keys, *values)]
    return pa.table([*of_keys.columns, *map(pa.array, sums)], schema=pa.schema(fields))


def _codes(table: pa.Table, keys: Sequence[str]) -> NDArray[np.int64] | None:
    """One number a row, the same where all keys are the same; None where there are no rows, or it would not fit."""
    codes, width = np.zeros(table.num_rows, np.int64), 1
    for name in keys:
        column: Any = table[name].combine_chunks()
        if column.null_count or not len(column):
            return None
        if column.type == pa.string():
            encoded = column.dictionary_encode()
            numbers_, least, most = encoded.indices.to_numpy(), 0, len(encoded.dictionary) - 1
        elif column.type == pa.int64():
            numbers_ = column.to_numpy()
            least, most = int(numbers_.min()), int(numbers_.max())
        else:
            return None
        width *= most - least + 1
        if width >= 2**63:
            return None
        codes *= most - least + 1
        codes += numbers_
        codes -= least
    return codes


def _is_int64(column: Any) -> bool:
    return bool(column.type == pa.int64()) and not column.null_count


def of_pairs(firsts: Any, seconds: Any, value: Callable[[str, str], int]) -> NDArray[np.int64]:
    """For each row of two dictionary arrays of texts, the value of its pair; computed once for each pair there is."""
    first, second = firsts.dictionary.to_pylist(), seconds.dictionary.to_pylist()
    codes = firsts.indices.to_numpy().astype(np.int64) * len(second) + seconds.indices.to_numpy()
    pairs, pair_of = np.unique(codes, return_inverse=True)
    values = [value(first[pair // len(second)], second[pair % len(second)]) for pair in pairs.tolist()]
    return np.array(values, np.int64)[pair_of]


def rows_of(table: pa.Table) -> list[Any]:
    """Tuples in the order of the columns, for tables that are small by now."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def from_rows(schema_: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.Table:
    return table_of(schema_, *(list(column) for column in zip(*rows, strict=True))) if rows else schema_.empty_table()


def as_it_is(batch: pa.Table, _: Given) -> pa.Table:
    """The fold of rows that need none."""
    return batch


def as_they_are(blocks: pa.Table) -> pa.Table:
    """The combine of rows that are kept one by one."""
    return blocks


def in_order(blocks: pa.Table) -> pa.Table:
    """The combine of a `Listing`: the rows sorted by all columns, left to right, text by code point."""
    return blocks.sort_by([(name, "ascending") for name in blocks.column_names])


def only_input(tables: Mapping[str, pa.Table], _: Options) -> pa.Table:
    """The partial of a query with one input: what was combined."""
    (table,) = tables.values()
    return table
