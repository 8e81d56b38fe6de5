"""The store of a table partition, and what is staged over it."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tables.staging import StagedPartition
from tables.store import META_KEY, STALE_SECONDS, Identity, MovedAway, PartitionStore, Position, StoreMemory, open_store

IDENTITY = Identity(cluster="c", topic="t-changelog", topic_id="id", partition=3)
MEMORY = StoreMemory(cache_mib=8)
NOW = 1_795_000_000.0  # of the brokers


def contents(store: PartitionStore) -> dict[bytes, bytes]:
    return dict(store.items())


def test_values_and_offset_survive_a_restart_together(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s", IDENTITY, MEMORY)
    assert store.offset == 0
    store.write([(b"a", b"1"), (b"b", b"2")], Position(7, NOW))
    store.write([(b"a", None)], Position(9, NOW))
    store.close()
    again = open_store(tmp_path / "s", IDENTITY, MEMORY)
    assert (again.offset, contents(again)) == (9, {b"b": b"2"})
    again.close()


def test_whoever_reads_on_after_the_partition_was_given_up_is_told_and_does_not_keep_the_store(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s", IDENTITY, MEMORY)
    store.write([(b"a", b"1"), (b"b", b"2")], Position(7, NOW))
    reading = StagedPartition(store).items()
    assert next(reading) == (b"a", b"1")
    store.close()
    again = open_store(tmp_path / "s", IDENTITY, MEMORY)
    with pytest.raises(MovedAway, match="read it again"):
        next(reading)
    with pytest.raises(MovedAway, match="read it again"):
        contents(store)
    assert contents(again) == {b"a": b"1", b"b": b"2"}
    again.close()


@pytest.mark.parametrize("change", ["cluster", "topic_id"])
def test_a_foreign_store_is_moved_aside(tmp_path: Path, change: str, caplog: pytest.LogCaptureFixture) -> None:
    store = open_store(tmp_path / "s", IDENTITY, MEMORY)
    store.write([(b"a", b"1")], Position(7, NOW))
    store.close()
    other = Identity(**{**{f: getattr(IDENTITY, f) for f in Identity.__slots__}, change: "another"})
    fresh = open_store(tmp_path / "s", other, MEMORY)
    assert (fresh.offset, contents(fresh)) == (0, {})
    assert (tmp_path / "s.bad").is_dir()
    assert "moved aside" in caplog.text
    fresh.close()


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST"])
def test_a_corrupt_store_is_moved_aside(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    store = open_store(tmp_path / "s", IDENTITY, MEMORY)
    store.write([(b"a", b"1")], Position(7, NOW))
    store.close()
    for file in (tmp_path / "s").glob(f"{name}*"):
        file.write_bytes(b"garbage")
    fresh = open_store(tmp_path / "s", IDENTITY, MEMORY)
    assert fresh.offset == 0
    assert "moved aside" in caplog.text
    fresh.close()


def test_a_store_that_is_further_behind_than_tombstones_are_kept_may_have_missed_deletes(tmp_path: Path) -> None:
    """How old it is tells the changelog: what the clock of a worker says makes no difference."""
    store = open_store(tmp_path / "s", IDENTITY, MEMORY)
    store.write([(b"a", b"1")], Position(7, NOW))
    store.close()
    again = open_store(tmp_path / "s", IDENTITY, MEMORY)
    assert again.position == Position(7, NOW)
    assert not again.may_have_missed_deletes(NOW + STALE_SECONDS)
    assert again.may_have_missed_deletes(NOW + STALE_SECONDS + 1)
    again.close()


def test_a_store_that_noted_the_time_of_its_worker_is_taken_for_old(tmp_path: Path) -> None:
    """Versions before wrote `written_at`, by a clock that nobody vouches for."""
    store = open_store(tmp_path / "s", IDENTITY, MEMORY)
    store.write([(b"a", b"1")], Position(7, NOW))
    at = json.loads(store._meta.get(META_KEY) or b"")
    del at["appended_at"]
    store._meta.put(META_KEY, json.dumps({**at, "written_at": NOW}).encode())
    store.close()
    again = open_store(tmp_path / "s", IDENTITY, MEMORY)
    assert again.offset == 7
    assert again.may_have_missed_deletes(NOW)
    again.close()


def test_two_workers_cannot_share_a_folder(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s", IDENTITY, MEMORY)
    with pytest.raises(Exception, match="lock"):
        open_store(tmp_path / "s", IDENTITY, MEMORY)
    store.write([(b"a", b"1")], Position(1, NOW))
    assert contents(store) == {b"a": b"1"}
    store.close()


def test_all_stores_share_one_bounded_cache(tmp_path: Path) -> None:
    memory = StoreMemory(cache_mib=4)
    stores = [open_store(tmp_path / str(n), IDENTITY, memory) for n in range(4)]
    for store in stores:
        store.write([(b"%06d" % n, random.randbytes(1000)) for n in range(4000)], Position(1, NOW))
        store.compact()  # to files: now reading needs the cache
    for store in stores:
        assert sum(1 for _ in store.items()) == 4000
    assert memory.cache.get_usage() < 6 << 20  # 16 MB were read; the rest above 4 MiB is what the open files pin
    for store in stores:
        store.close()


def values_on_disk(store: Path) -> int:
    """Tables and write-ahead logs; RocksDB's own diary beside them does not count."""
    return sum(file.stat().st_size for file in store.iterdir() if file.suffix in (".sst", ".log"))


def test_deletes_free_their_space(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s", IDENTITY, MEMORY)
    for n in range(20):
        store.write([(b"%d-%d" % (n, i), random.randbytes(10_000)) for i in range(100)], Position(n, NOW))
    store.close()
    full = values_on_disk(tmp_path / "s")
    store = open_store(tmp_path / "s", IDENTITY, MEMORY)
    for n in range(20):
        store.write([(b"%d-%d" % (n, i), None) for i in range(100)], Position(20 + n, NOW))
    store.compact()
    store.close()
    left = values_on_disk(tmp_path / "s")
    assert left < full / 10, f"{full} bytes before, {left} after all keys are deleted"


KEYS = st.sampled_from([b"a", b"b", b"c"])
WRITES = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=3)), st.booleans()), max_size=30)


@settings(max_examples=30, deadline=None)  # each opens a store on disk
@given(writes=WRITES)
def test_staged_reads_are_those_of_a_dictionary_and_only_settling_writes(
    writes: list[tuple[bytes, bytes | None, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = open_store(tmp_path_factory.mktemp("store") / "s", IDENTITY, MEMORY)
    staged, truth, settled = StagedPartition(store), dict[bytes, bytes](), dict[bytes, bytes]()
    for offset, (key, value, settle) in enumerate(writes, start=1):
        staged.put(key, value)
        if value is None:
            truth.pop(key, None)
        else:
            truth[key] = value
        if settle:
            staged.settle(Position(offset, NOW))
            settled = dict(truth)
        assert dict(staged.items()) == truth
        assert all(staged.get(key) == truth.get(key) for key in (b"a", b"b", b"c"))
        assert contents(store) == settled
    store.close()
