"""What a worker wrote since the last commit: visible to it at once, on disk only after Kafka has it.

Invariant: a read sees the staged value first, then the store's. Nothing staged reaches the store, and nothing is
forgotten, before `settle`, which is called once Kafka has committed it.
"""

from collections.abc import Iterator, Mapping

from tables.store import PartitionStore, Position

Changes = Mapping[bytes, bytes | None]


class StagedPartition:
    """One table partition: the store, and the writes over it that are not committed yet."""

    def __init__(self, store: PartitionStore) -> None:
        self.store = store
        self._staged: dict[bytes, bytes | None] = {}
        self.staged_bytes = 0

    def get(self, key: bytes) -> bytes | None:
        if key in self._staged:
            return self._staged[key]
        return self.store.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Stage a value, or a delete (None). The last write of a key before a commit is the only one that counts."""
        self.staged_bytes += len(key) + len(value or b"")
        self._staged[key] = value

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self.store.items():
            if key not in self._staged:
                yield key, value
        for key, staged in list(self._staged.items()):
            if staged is not None:
                yield key, staged

    @property
    def changes(self) -> Changes:
        return self._staged

    def settle(self, position: Position) -> None:
        """The changes are committed in Kafka: write them, with the changelog's position that follows them."""
        self.store.write(self._staged.items(), position)
        self._staged = {}
        self.staged_bytes = 0
