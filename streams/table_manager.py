"""The tables of an app over assignments: open, restore, stage, settle, and in the end forget.

Invariant: a table partition can be used only between the end of its restore and the moment it is given up.
"""

import asyncio
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faust.tables.manager import TableManager
from faust.types import TP

from cauce.errors import ConfigError, Unsupported
from streams.even import refuse_uneven
from streams.forgotten import refuse_forgotten
from streams.recovery import Changelogs, Progress, Restore
from tables.staging import StagedPartition
from tables.store import STALE_SECONDS, Identity, PartitionStore, Position, StoreMemory, open_store, set_aside
from tables.table import StagedStore, StagedTable

if TYPE_CHECKING:
    from streams.options import Options

log = logging.getLogger(__name__)


class StagedTableManager(TableManager):
    """Faust's table manager without its recovery; the engine says when partitions come and go."""

    restore_progress: Progress | None = None

    def __init__(self, app: Any, **kwargs: Any) -> None:
        super().__init__(app, **kwargs)
        self._staged: dict[TP, StagedPartition] = {}  # by changelog partition
        self._restore: Restore | None = None
        self.partition_counts: dict[str, int] = {}  # of our inputs and changelogs
        self._memory: StoreMemory | None = None
        self._unowned_since: dict[Path, float] = {}  # as this process saw it; the clock of the machine may jump

    @property
    def _options(self) -> "Options":
        return self.app.options  # type: ignore[attr-defined, no-any-return]

    async def on_start(self) -> None:
        self._tables_finalized.set()
        for table in self.values():
            if not isinstance(table, StagedTable) or not isinstance(table.data, StagedStore):
                raise Unsupported(f"table {table.name}: {type(table).__name__} is not staged; use app.Table()")
            table.data.on_failure = self.app.engine.failed  # type: ignore[attr-defined]
            await table.maybe_start()
        self._tables_registered.set()

    async def on_stop(self) -> None:
        for table in self.values():
            await table.stop()

    async def wait_until_recovery_completed(self) -> bool:
        """Timers and tasks start after this: the first time that the worker is ready."""
        return await self.wait_for_stopped(self.app.engine.settled)  # type: ignore[attr-defined]

    # ---- the engine's side

    async def take_over(self, tps: frozenset[TP], topics: frozenset[str], unread: frozenset[TP]) -> bool:
        """Open and restore every table for these partitions of the topics that we read, of which some are without a
        committed offset. False if cancelled on the way."""
        started = time.monotonic()
        opened = await asyncio.to_thread(self._open, tps, topics, unread)
        restore = self._restore
        assert restore is not None
        complete = await asyncio.to_thread(restore.run)
        if complete:
            self._staged = {tp: StagedPartition(store) for tp, store in opened.items()}
            for tp, staged in self._staged.items():
                self._changelogs[tp.topic].data.partitions[tp.partition] = staged  # type: ignore[attr-defined]
            log.info(
                "tables restored",
                extra={
                    "records": restore.progress.records,
                    "bytes": restore.progress.size_bytes,
                    "seconds": round(time.monotonic() - started, 3),
                },
            )
        else:
            for store in opened.values():
                store.close()
        return complete

    def _open(self, tps: frozenset[TP], inputs: frozenset[str], unread: frozenset[TP]) -> dict[TP, PartitionStore]:
        if self._memory is None:
            self._memory = StoreMemory(self._options.store_cache_mib)
        changelogs = Changelogs(self._options.kafka)
        cluster = changelogs.cluster_id()
        facts = changelogs.describe(inputs | self._changelogs.keys())
        self.partition_counts = {name: topic.partitions for name, topic in facts.items()}
        refuse_uneven(tps, {name: self.partition_counts[name] for name in inputs})
        partitions = sorted({tp.partition for tp in tps})
        wanted = [TP(topic, partition) for topic in self._changelogs for partition in partitions]
        ends = changelogs.ends(wanted)
        refuse_forgotten(tps, unread, ends)
        stores = {}
        for tp in wanted:
            path = self._folder(self._changelogs[tp.topic].name, tp.partition)
            identity = Identity(cluster, tp.topic, facts[tp.topic].id, tp.partition)
            stores[tp] = self._open_one(path, identity)
        # The last record of a log is never compacted away: who misses no other one has no need to ask.
        behind = [tp for tp, store in stores.items() if 0 < store.offset < ends[tp] - 1]
        newest_at = changelogs.newest_at(behind)
        for tp, store in stores.items():
            if store.offset > ends[tp]:
                stores[tp] = self._anew(store, "it is ahead of its changelog")
            elif tp in newest_at and store.may_have_missed_deletes(newest_at[tp]):
                stores[tp] = self._anew(store, f"it is over {STALE_SECONDS // 3600} h behind its changelog")
        self._restore = Restore(self._options.kafka, stores, ends)
        self.restore_progress = self._restore.progress
        return stores

    def _open_one(self, path: Path, identity: Identity, *, anew: bool = False) -> PartitionStore:
        assert self._memory is not None
        try:
            if anew:
                set_aside(path)
            return open_store(path, identity, self._memory)
        except Exception as error:
            raise ConfigError(f"store {path}: {error}; free the disk or the folder, then restart") from error

    def _anew(self, store: PartitionStore, why: str) -> PartitionStore:
        """Moves a store aside that what its changelog says cannot be added to."""
        store.close()
        log.warning("store moved aside, restoring from its changelog", extra={"reason": why, "store": str(store.path)})
        return self._open_one(store.path, store.identity, anew=True)

    def _folder(self, table: str, partition: int) -> Path:
        return self._options.data / "tables" / table / str(partition)

    def cancel_restore(self) -> None:
        if self._restore is not None:
            self._restore.cancel()

    async def give_up(self) -> None:
        """Close every partition. The files stay for a while: they may come back, and restore only their tail."""
        for table in self.values():
            table.data.partitions.clear()
        staged, self._staged = self._staged, {}
        self._restore = None
        for partition in staged.values():
            await asyncio.to_thread(partition.store.close)

    def forget_unowned(self) -> None:
        """Remove what belongs to partitions that moved away long ago."""
        owned = {partition.store.path for partition in self._staged.values()}
        now, before = time.monotonic(), self._unowned_since
        unowned = [path for path in (self._options.data / "tables").glob("*/*") if path not in owned]
        self._unowned_since = {path: before.get(path, now) for path in unowned}
        for path, since in self._unowned_since.items():
            if now - since > self._options.keep_unowned_seconds:
                log.info("state of a partition that moved away removed", extra={"store": str(path)})
                shutil.rmtree(path, ignore_errors=True)

    def changes(self) -> Sequence[tuple[TP, Mapping[bytes, bytes | None]]]:
        return [(tp, staged.changes) for tp, staged in self._staged.items() if staged.changes]

    def settle(self, positions: Mapping[TP, Position]) -> None:
        for tp, staged in self._staged.items():
            if staged.changes:
                staged.settle(positions[tp])

    @property
    def staged_bytes(self) -> int:
        return sum(staged.staged_bytes for staged in self._staged.values())
