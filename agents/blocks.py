"""The state of a query in one partition: columnar blocks in a table, merged as they grow.

Invariant: the blocks together are what `combine` makes of every batch so far. Folding n rows writes O(n log n) bytes: a
small block is replaced, a big one is left alone until there are several of its size.
"""

import json
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from cauce.messages import decode, encode

OPEN_BYTES: Final = 256 << 10  # a block of less takes the next batch in
MERGE_AT: Final = 4  # so many blocks of a size become one
MAX_BLOCK_BYTES: Final = 4 << 20  # a changelog record may have 8 MiB

Combine = Callable[[pa.Table], pa.Table]
Table = MutableMapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Block:
    number: int
    size: int

    @property
    def tier(self) -> int:
        return max(self.size // OPEN_BYTES, 1).bit_length() // 2  # each four times the one before


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
        if self._blocks and self._blocks[-1].size < OPEN_BYTES:
            rows = pa.concat_tables([self._take(self._blocks.pop()), rows])
        self._push(rows)
        while self._several_of_a_size():
            together = [self._take(self._blocks.pop()) for _ in range(MERGE_AT)]
            self._push(pa.concat_tables(together[::-1]))
        self._save()

    def read(self) -> list[pa.Table]:
        return [decode(self._table[self._key(block)]) for block in self._blocks]

    def take(self, at_least: int) -> list[pa.Table]:
        """The blocks of so many bytes and more, no longer kept here."""
        big = [block for block in self._blocks if block.size >= at_least]
        if not big:
            return []
        self._blocks = [block for block in self._blocks if block.size < at_least]
        self._save()
        return [self._take(block) for block in big]

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
        value = encode(self._combine(rows), compression=None)  # the producer compresses; here it is read back soon
        block = Block(number, len(value))
        self._table[self._key(block)] = value
        self._blocks.append(block)

    def _take(self, block: Block) -> pa.Table:
        rows = decode(self._table[self._key(block)])
        del self._table[self._key(block)]
        return rows

    def _several_of_a_size(self) -> bool:
        last = self._blocks[-MERGE_AT:]
        small = sum(block.size for block in last) <= MAX_BLOCK_BYTES
        return len(last) == MERGE_AT and len({block.tier for block in last}) == 1 and small

    def _key(self, block: Block) -> str:
        return f"{self._name}/{block.number}"
