"""Faust's table, on staged RocksDB partitions: what an agent sees as a dictionary.

Invariant: a write belongs to the partition of the event being processed, so it commits with that event's offset.
"""

from collections.abc import Callable, Iterator
from typing import Any

from faust.exceptions import PartitionsMismatch
from faust.stores.base import SerializedStore
from faust.streams import current_event
from faust.tables.table import Table
from faust.types import EventT
from faust.types.tables import WindowWrapperT
from faust.types.windows import WindowT

from cauce.errors import Unsupported
from tables.late import ending_with, refuse_late
from tables.staging import StagedPartition


def nobody_to_tell(error: BaseException) -> None:
    """Before a worker has started."""


class StagedStore(SerializedStore[Any, Any]):
    """The partitions of one table that this worker owns. Between assignments there are none, and reads fail."""

    partitions: dict[int, StagedPartition]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.partitions = {}
        self.on_failure: Callable[[BaseException], None] = nobody_to_tell

    def _of(self, event: EventT[Any]) -> StagedPartition:
        try:
            return self.partitions[event.message.partition]
        except KeyError:
            # no KeyError: to whoever asks for a key, with a default for one that is missing, that would be an answer
            raise Unsupported(
                f"table {self.table_name}: partition {event.message.partition} is not ours; "
                f"{event.message.topic} and the table need the same number of partitions: group_by first"
            ) from None

    def _get(self, key: bytes) -> bytes | None:
        event = current_event()
        try:
            if event is not None:
                return self._of(event).get(key)
            found = (each.get(key) for each in self.partitions.values())
            return next((value for value in found if value is not None), None)
        except Exception as error:
            self._failed(error, event)
            raise

    def _set(self, key: bytes, value: bytes | None) -> None:
        with self.fatal():
            refuse_late(f"a write to table {self.table_name}")
            event = current_event()
            if event is None:
                raise TypeError(f"table {self.table_name}: only an agent can write, while it processes an event")
            self._of(event).put(key, value)

    def fatal(self) -> ending_with:
        """An event whose write is refused may not commit."""
        return ending_with((Unsupported, PartitionsMismatch), self.on_failure)

    def _failed(self, error: Exception, event: EventT[Any] | None) -> None:
        """An event that could not read a store may not commit, even if its agent catches the error. Who reads without
        one, or after it, when partitions may have moved away, harms nobody."""
        if event is not None and not event.message.acked:
            self.on_failure(error)

    def _del(self, key: bytes) -> None:
        self._set(key, None)

    def _iteritems(self) -> Iterator[tuple[bytes, bytes]]:
        event = current_event()
        try:
            for partition in list(self.partitions.values()):
                yield from partition.items()
        except Exception as error:
            self._failed(error, event)
            raise

    def _iterkeys(self) -> Iterator[bytes]:
        return (key for key, _ in self._iteritems())

    def _itervalues(self) -> Iterator[bytes | None]:
        return (value for _, value in self._iteritems())

    def _size(self) -> int:
        return sum(1 for _ in self._iteritems())

    def _contains(self, key: bytes) -> bool:
        return self._get(key) is not None

    def _clear(self) -> None:
        for key in list(self._iterkeys()):
            self._del(key)

    async def backup_partition(self, tp: Any, flush: bool = True, purge: bool = False, keep: int = 1) -> None:
        raise Unsupported(f"table {self.table_name}: the changelog is the backup; keep its topic")

    def restore_backup(self, tp: Any, latest: bool = True, backup_id: int = 0) -> None:
        raise Unsupported(
            f"table {self.table_name}: stop the worker and delete its data folder to restore from scratch"
        )

    def reset_state(self) -> None:
        raise Unsupported(
            f"table {self.table_name}: stop the worker and delete its data folder to restore from scratch"
        )


class StagedTable(Table[Any, Any]):
    """A table whose writes reach the changelog and RocksDB only with the commit of the events that made them."""

    data: StagedStore

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        refused = {
            "window": (self.window is not None, "keep the window in the key and delete old keys yourself"),
            "use_partitioner": (
                self.use_partitioner,
                "group_by the key first, so that events arrive where their key is",
            ),
            "is_global": (self.is_global, "send the records to every partition"),
            "store": (self._store is not None, "leave it out: the table is on RocksDB, in the worker's data folder"),
        }
        for option, (given, instead) in refused.items():
            if given:
                raise Unsupported(f"table {self.name}: {option} is not exactly-once here; {instead}")

    def using_window(self, window: WindowT, *, key_index: bool = False) -> WindowWrapperT:
        raise Unsupported(
            f"table {self.name}: windows are not exactly-once here; put the window into the key and delete old keys"
        )

    def _serializer_from_type(self, typ: Any) -> Any:
        """Text as it is: Faust would put keys into JSON quotes, and console tools show them so."""
        return "raw" if typ is str else super()._serializer_from_type(typ)

    def _new_store(self) -> StagedStore:
        return StagedStore(
            "rocksdb://",
            self.app,
            self,
            table_name=self.name,
            key_type=self.key_type,
            value_type=self.value_type,
            key_serializer=self.key_serializer,
            value_serializer=self.value_serializer,
            options=self.options,
        )

    def on_key_set(self, key: Any, value: Any) -> None:
        self._about_to_write(key)
        self._sensor_on_set(self, key, value)

    def on_key_del(self, key: Any) -> None:
        self._about_to_write(key)
        self._sensor_on_del(self, key)

    def _about_to_write(self, key: Any) -> None:
        with self.data.fatal():
            refuse_late(f"a write to table {self.name}")
            self.partition_for_key(key)  # raises outside of an event, and where partition counts differ
