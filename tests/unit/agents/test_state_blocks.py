"""Blocks of state: the same rows whatever the sizes, few bytes written, nothing left after a delete."""

from collections.abc import Iterator, MutableMapping

import pyarrow as pa
import pytest

from agents.blocks import MAX_BLOCK_BYTES, MERGE_AT, Blocks
from cauce.messages import encode

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])


class Counting(MutableMapping[str, bytes]):
    """A table that knows how many bytes were written to it."""

    def __init__(self) -> None:
        self.values_by_key: dict[str, bytes] = {}
        self.written = 0

    def __getitem__(self, key: str) -> bytes:
        return self.values_by_key[key]

    def __setitem__(self, key: str, value: bytes) -> None:
        self.written += len(value)
        self.values_by_key[key] = value

    def __delitem__(self, key: str) -> None:
        del self.values_by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_key)

    def __len__(self) -> int:
        return len(self.values_by_key)


def rows(start: int, count: int) -> pa.Table:
    numbers = pa.array(range(start, start + count), pa.int64())
    return pa.table([numbers, numbers], schema=SCHEMA)


def keep(table: pa.Table) -> pa.Table:
    return table.combine_chunks()


def test_every_row_is_there_once_and_in_order() -> None:
    table = Counting()
    for start in range(0, 100_000, 1000):
        Blocks(table, "state", keep).add(rows(start, 1000))
    read = pa.concat_tables(Blocks(table, "state", keep).read())
    assert read.column("key").to_pylist() == list(range(100_000))


def test_bytes_written_grow_with_the_rows_and_little_more() -> None:
    table = Counting()
    batches, size = 800, len(encode(rows(0, 4000), compression=None))
    for number in range(batches):
        Blocks(table, "state", keep).add(rows(number * 4000, 4000))
    assert sum(map(len, table.values())) >= 0.9 * batches * size  # a block has one head, whatever its rows
    assert table.written < 10 * batches * size, "the whole state again at every batch would be 400 times"
    assert max(map(len, table.values())) <= MAX_BLOCK_BYTES + size


def test_a_state_that_does_not_grow_stays_a_few_small_blocks() -> None:
    def last(table: pa.Table) -> pa.Table:
        return table.slice(table.num_rows - 10)

    table = Counting()
    for start in range(0, 5000, 100):
        Blocks(table, "state", last).add(rows(start, 100))
    assert len(table) <= MERGE_AT  # fewer blocks than that, and the list of them
    state = last(pa.concat_tables(Blocks(table, "state", last).read()))
    assert state.column("key").to_pylist() == list(range(4990, 5000))


@pytest.mark.parametrize("counts", [(1000, 4), (4, 1000), (10_000, 1000, 4), (100_000, 4, 4, 4, 4), (4, 4, 4, 70_000)])
def test_batches_of_any_sizes_come_to_few_blocks(counts: tuple[int, ...]) -> None:
    table, start = Counting(), 0
    for _ in range(50):
        for count in counts:
            Blocks(table, "state", keep).add(rows(start, count))
            start += count
    read = Blocks(table, "state", keep).read()
    assert pa.concat_tables(read).column("key").to_pylist() == list(range(start))
    big = sum(map(len, table.values())) // (MAX_BLOCK_BYTES // 4)  # these are full
    assert len(read) <= big + MERGE_AT * 6


def test_delete_leaves_nothing() -> None:
    table = Counting()
    for start in range(0, 50_000, 1000):
        Blocks(table, "state", keep).add(rows(start, 1000))
    Blocks(table, "state", keep).delete()
    assert len(table) == 0
    Blocks(table, "state", keep).delete()


def test_no_rows_are_no_block() -> None:
    table = Counting()
    Blocks(table, "state", keep).add(rows(0, 0))
    assert len(table) == 0
    assert Blocks(table, "state", keep).read() == []
