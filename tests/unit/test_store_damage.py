"""Damage in the middle of a store is found when a block is read: the next start must not trust the store again."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cauce.errors import StoreCorrupt
from tables.store import Identity, PartitionStore, Position, StoreMemory, open_store

IDENTITY = Identity("cluster", "changelog", "id", 0)


def damaged_store(path: Path, memory: StoreMemory) -> PartitionStore:
    """It opens: what is broken is a block of values."""
    store = open_store(path, IDENTITY, memory)
    store.write([(b"%d" % number, os.urandom(100)) for number in range(2000)], Position(7, 0.0))
    store.close()
    open_store(path, IDENTITY, memory).close()  # moves the values from the log of the store into a file of blocks
    largest = max(path.glob("*.sst"), key=lambda file: file.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[: len(content) // 2] = os.urandom(len(content) // 2)
    largest.write_bytes(content)
    return PartitionStore(path, IDENTITY, memory)


def get_all(store: PartitionStore) -> None:
    for number in range(2000):
        store.get(b"%d" % number)


def list_all(store: PartitionStore) -> None:
    list(store.items())


@pytest.mark.parametrize("read", [get_all, list_all])
def test_damage_found_while_reading_has_the_store_moved_aside_at_the_next_start(
    read: Callable[[PartitionStore], None], tmp_path: Path
) -> None:
    path, memory = tmp_path / "s", StoreMemory(8)
    store = damaged_store(path, memory)
    assert store.offset == 7
    with pytest.raises(StoreCorrupt, match="a restart restores it from its changelog"):
        read(store)
    store.close()
    store = open_store(path, IDENTITY, memory)
    assert (store.offset, list(store.items())) == (0, [])
    store.close()
    assert (tmp_path / "s.bad").exists()
