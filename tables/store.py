"""One table partition on disk: its values, and the changelog offset at which they are true.

Invariant: values and offset change in one write batch, so a store is always exactly what its changelog says up to its
offset, whenever the process died. It may be behind Kafka, never ahead of it.
"""

import json
import logging
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, cast
from weakref import WeakSet

from rocksdict import BlockBasedOptions, Cache, Options, Rdict, RdictIter, WriteBatch, WriteBufferManager

from cauce.errors import CauceError, StoreCorrupt

log = logging.getLogger(__name__)

META: Final = "meta"  # a column family of its own: no key of a user's table can collide with ours
META_KEY: Final = b"at"
# A changelog may forget its tombstones 24 h after they were appended: a store that is further behind may miss deletes.
STALE_SECONDS: Final = 12 * 3600
MIB: Final = 1 << 20
NOT_CORRUPT: Final = ("lock hold by", "lock file", "No space left", "Permission denied", "Too many open files")
DISTRUSTED: Final = "DISTRUSTED"  # a file in the folder of a store in which damage was found; RocksDB leaves it alone


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose state a store holds. Another cluster or a topic made anew has other values at the same offsets."""

    cluster: str
    topic: str
    topic_id: str
    partition: int


@dataclass(frozen=True, slots=True)
class Position:
    """How far a store has applied its changelog. Both are Kafka's word: no clock of a worker's has a part in it."""

    offset: int  # the next record to apply
    appended_at: float  # when the one before was appended, by its broker's clock; 0.0 where that is not known


NOTHING: Final = Position(0, 0.0)


class StoreMemory:
    """Bounds what all stores of a process take: one block cache, and one budget for write buffers inside it."""

    def __init__(self, cache_mib: int) -> None:
        self.cache = Cache(cache_mib * MIB)
        self.buffers = WriteBufferManager.new_write_buffer_manager_with_cache(
            cache_mib * MIB // 2, allow_stall=False, cache=self.cache
        )

    def options(self) -> Options:
        blocks = BlockBasedOptions()
        blocks.set_block_cache(self.cache)  # rocksdict's default is 2 GiB for every store
        blocks.set_cache_index_and_filter_blocks(True)
        blocks.set_bloom_filter(10, block_based=False)
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        options.set_block_based_table_factory(blocks)
        options.set_write_buffer_manager(self.buffers)
        options.set_write_buffer_size(8 * MIB)
        options.set_max_background_jobs(2)
        options.set_keep_log_file_num(2)
        options.set_max_open_files(64)
        # a run of deletes is compacted away soon, not when the level fills up: ended sessions must free their space
        options.add_compact_on_deletion_collector_factory(1024, 256, 0.25)
        return options


class MovedAway(CauceError):
    """Whoever reads a whole table without an event, a timer or a view, reads it again."""


class Walk:
    """Somebody reads all of a store, a timer perhaps, and may be anywhere in it when its partition moves away."""

    def __init__(self, entries: RdictIter | None) -> None:
        self._entries = entries

    @property
    def entries(self) -> RdictIter:
        if self._entries is None:
            raise MovedAway("partitions came and went while their table was read; read it again")
        return self._entries

    def end(self) -> None:
        self._entries = None


class PartitionStore:
    """Keys and values as bytes, and how far they have applied their changelog."""

    def __init__(self, path: Path, identity: Identity, memory: StoreMemory) -> None:
        self.path = path
        self.identity = identity
        self._walks: WeakSet[Walk] = WeakSet()
        mark = path / DISTRUSTED
        if mark.exists():
            raise StoreCorrupt(f"store {path}: {mark.read_text(encoding='utf-8')}")
        try:
            self._db = Rdict(str(path), options=memory.options(), column_families={META: memory.options()})
            self._meta = self._db.get_column_family(META)
            self._meta_handle = self._db.get_column_family_handle(META)
            self.position = self._read_position()
        except StoreCorrupt:
            self.close()
            raise
        except Exception as error:  # rocksdict raises bare Exception for everything
            self.close()
            if any(sign in str(error) for sign in NOT_CORRUPT):
                raise
            raise StoreCorrupt(f"store {path}: {error}") from error

    @property
    def offset(self) -> int:
        """Returns the next changelog record to apply."""
        return self.position.offset

    def _read_position(self) -> Position:
        """Where to go on from; the beginning for a new store. Refuses a store that is somebody else's."""
        raw = self._meta.get(META_KEY)
        if raw is None:
            if next(iter(self._db.keys()), None) is not None:
                raise StoreCorrupt(f"store {self.path}: has values but no changelog offset")
            return NOTHING
        at = json.loads(raw)
        if at["identity"] != asdict(self.identity):
            raise StoreCorrupt(f"store {self.path}: belongs to {at['identity']}, not to {asdict(self.identity)}")
        # an older version noted the worker's own time instead: such a store is taken for old
        return Position(int(at["offset"]), float(at.get("appended_at", 0.0)))

    def may_have_missed_deletes(self, newest_at: float) -> bool:
        """Says whether tombstones behind our position may be gone. `newest_at`: the largest append time in the
        changelog. Kafka removes tombstones only while it takes in others, so that says how late it is."""
        return newest_at - self.position.appended_at > STALE_SECONDS

    def get(self, key: bytes) -> bytes | None:
        try:
            return cast("bytes | None", self._db.get(key))
        except Exception as error:
            self._distrust(error)
            raise

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Everything, by key. Rdict's own items() ends quietly at a damaged block, as if there were no more."""
        walk = Walk(self._db.iter() if "_db" in self.__dict__ else None)
        self._walks.add(walk)
        walk.entries.seek_to_first()
        while walk.entries.valid():
            yield cast("bytes", walk.entries.key()), cast("bytes", walk.entries.value())
            walk.entries.next()
        try:
            walk.entries.status()
        except Exception as error:
            self._distrust(error)
            raise

    def _distrust(self, error: Exception) -> None:
        """A damaged block is found only when it is read. Leave a mark: the next start moves the store aside."""
        if "Corruption" in str(error):
            (self.path / DISTRUSTED).write_text(str(error), encoding="utf-8")
            raise StoreCorrupt(f"store {self.path}: {error}; a restart restores it from its changelog") from error

    def write(self, changes: Iterable[tuple[bytes, bytes | None]], position: Position) -> None:
        """Apply the changes (None deletes) and move to `position`, all at once."""
        batch = WriteBatch(raw_mode=True)
        for key, value in changes:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        at = {"identity": asdict(self.identity), **asdict(position)}
        batch.put(META_KEY, json.dumps(at).encode(), self._meta_handle)
        try:
            self._db.write(batch)
        except Exception as error:
            self._distrust(error)
            raise
        self.position = position

    def compact(self) -> None:
        """Give the space of deleted and overwritten values back now, instead of when RocksDB finds it worth it."""
        self._db.compact_range(None, None)

    def close(self) -> None:
        # rocksdict keeps the folder locked until every handle of it is gone
        for walk in list(self._walks):
            walk.end()
        for name in ("_meta_handle", "_meta", "_db"):
            handle = self.__dict__.pop(name, None)
            if isinstance(handle, Rdict):
                handle.close()


def open_store(path: Path, identity: Identity, memory: StoreMemory) -> PartitionStore:
    """Open the store, or move one that cannot be trusted aside and begin anew: its changelog has everything."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return PartitionStore(path, identity, memory)
    except StoreCorrupt as reason:
        aside = set_aside(path)
        log.warning(
            "store moved aside, restoring from its changelog", extra={"reason": str(reason), "aside": str(aside)}
        )
        return PartitionStore(path, identity, memory)


def set_aside(path: Path) -> Path:
    """Keep one bad copy for a person to look at; an older one makes room."""
    aside = path.with_name(path.name + ".bad")
    shutil.rmtree(aside, ignore_errors=True)
    path.rename(aside)
    return aside
