"""The state of a query in one partition: columnar blocks in a table, merged as they grow.

Invariant: what `combine` makes of the blocks is what it would make of every batch so far. Folding n rows writes
O(n log n) bytes: a block is left alone until what follows has grown to its size.
"""

import json
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from cauce.messages import decode, encode

SMALL_BYTES: Final = 16 << 10  # blocks of less are all of a size
MERGE_AT: Final = 4  # so many blocks become one
MAX_BLOCK_BYTES: Final = 4 << 20  # a changelog record may have 8 MiB

Combine = Callable[[pa.Table], pa.Table]
Table = MutableMapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Block:
    number: int
    size: int

    @property
    def tier(self) -> int:
        return (self.size // SMALL_BYTES).bit_length() + 1 >> 1  # each four times the one before


class Blocks:
    """One state. `name` is unique in the table; the list of blocks is under it, the blocks are under `name/number`."""

    def __init__(self, table: Table, name: str, combine: Combine) -> None:
        self._table = table
        self._name = name
        self._combine = combine
        listed = table.get(name)
        self._blocks = [Block(*each) for each in json.loads(listed)] if listed else []

    def add(self, rows: pa.Table) -> None:
        if rows.num_rows == 0:
            return
        self._push(rows)
        while self._are_to_be_merged():
            together = [self._take(self._blocks.pop()) for _ in range(MERGE_AT)]
            self._push(self._combine(pa.concat_tables(together[::-1])))
        self._save()

    def read(self) -> list[pa.Table]:
        return [decode(self._table[self._key(block)]) for block in self._blocks]

    def take(self, at_least: int) -> list[pa.Table]:
        """The blocks of so many bytes and more, each combined, no longer kept here."""
        big = [block for block in self._blocks if block.size >= at_least]
        if not big:
            return []
        self._blocks = [block for block in self._blocks if block.size < at_least]
        self._save()
        return [self._combine(self._take(block)) for block in big]

    def delete(self) -> None:
        for block in self._blocks:
            del self._table[self._key(block)]
        self._blocks = []
        self._save()

    def _save(self) -> None:
        if self._blocks:
            self._table[self._name] = json.dumps([(block.number, block.size) for block in self._blocks]).encode()
        elif self._table.get(self._name) is not None:
            del self._table[self._name]

    def _push(self, rows: pa.Table) -> None:
        number = self._blocks[-1].number + 1 if self._blocks else 0
        value = encode(rows, compression=None)  # the producer compresses; here it is read back soon
        block = Block(number, len(value))
        self._table[self._key(block)] = value
        self._blocks.append(block)

    def _take(self, block: Block) -> pa.Table:
        rows = decode(self._table[self._key(block)])
        del self._table[self._key(block)]
        return rows

    def _are_to_be_merged(self) -> bool:
        """The last few, unless the first of them is bigger than the others: then it waits until they have caught up. So
        there are less than MERGE_AT of a size."""
        last = self._blocks[-MERGE_AT:]
        if len(last) < MERGE_AT or sum(block.size for block in last) > MAX_BLOCK_BYTES:
            return False
        first, *others = (block.tier for block in last)
        return first <= max(others)

    def _key(self, block: Block) -> str:
        return f"{self._name}/{block.number}"
