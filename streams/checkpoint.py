"""A checkpoint: what a worker did between two commits, made visible all at once or not at all.

Invariant: a store never runs ahead of Kafka. A crash leaves it one checkpoint behind at most; recovery replays that.

    open ──▶ sealed ──▶ produced ──▶ committed ──▶ stored
      │        │           │
      └────────┴───────────┴──▶ aborted     (the process ends; the next one reads the same records again)
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Final, Protocol

from faust.types import TP

from cauce.errors import IllegalMove
from streams.transaction import Member, Transaction

log = logging.getLogger(__name__)


class CheckpointState(Enum):
    """open → sealed → produced → committed → stored. A worker that fails on the way ends: it moves no further."""

    OPEN = "open"  # takes writes
    SEALED = "sealed"  # ends on an event boundary, takes no more
    PRODUCED = "produced"  # answers and changelog are acknowledged, still invisible
    COMMITTED = "committed"  # visible, together with the input offsets
    STORED = "stored"  # RocksDB has caught up


MOVES: Final = {
    CheckpointState.OPEN: {CheckpointState.SEALED},
    CheckpointState.SEALED: {CheckpointState.PRODUCED},
    CheckpointState.PRODUCED: {CheckpointState.COMMITTED},
    CheckpointState.COMMITTED: {CheckpointState.STORED},
    CheckpointState.STORED: set(),
}

Observer = Callable[["Checkpoint", CheckpointState], None]


class Work(Protocol):
    """What a checkpoint needs of the worker around it. The last two are called in the checkpoint thread: between sealed
    and stored nobody else touches the tables' changes."""

    async def reach_event_boundary(self) -> None: ...
    def offsets(self) -> Mapping[TP, int]: ...
    def produce_changelog(self) -> None: ...
    def write_stores(self) -> None: ...


class Checkpoint:
    """One commit. Made when a transaction begins; `commit` ends it."""

    def __init__(
        self, number: int, transaction: Transaction, member: Member, work: Work, threaded: "Threaded", observe: Observer
    ) -> None:
        self.number = number
        self.state = CheckpointState.OPEN
        self._transaction = transaction
        self._member = member
        self._work = work
        self._threaded = threaded
        self._observe = observe
        self._reached: dict[CheckpointState, float] = {}
        self._offsets: Mapping[TP, int] = {}

    async def commit(self) -> None:
        """Five steps; their order is the guarantee (docs/exactly-once.md)."""
        await self._seal()  # 1. close on an event boundary
        await self._produce_changelog()  # 2. changelog and answers, inside the transaction
        await self._flush()  # 3. every record acknowledged, or raise
        await self._commit_transaction()  # 4. offsets with the group generation: a stale worker fails here
        await self._write_store()  # 5. one RocksDB batch a partition: values and changelog offset together

    async def _seal(self) -> None:
        await self._work.reach_event_boundary()
        self._offsets = self._work.offsets()
        self._move(CheckpointState.SEALED)

    async def _produce_changelog(self) -> None:
        await self._threaded(self._work.produce_changelog)

    async def _flush(self) -> None:
        await self._threaded(self._transaction.flush)
        self._move(CheckpointState.PRODUCED)

    async def _commit_transaction(self) -> None:
        await self._threaded(lambda: self._transaction.send_offsets(self._offsets, self._member))
        await self._threaded(self._transaction.commit)
        self._move(CheckpointState.COMMITTED)

    async def _write_store(self) -> None:
        await self._threaded(self._work.write_stores)
        self._move(CheckpointState.STORED)

    @property
    def committed_offsets(self) -> Mapping[TP, int]:
        return self._offsets

    def seconds(self, start: CheckpointState, end: CheckpointState) -> float:
        return self._reached[end] - self._reached[start]

    def _move(self, to: CheckpointState) -> None:
        if to not in MOVES[self.state]:
            raise IllegalMove(f"checkpoint {self.number}: {self.state.value} to {to.value}; this is a bug, report it")
        self.state = to
        self._reached[to] = time.monotonic()
        log.debug("checkpoint moved", extra={"checkpoint": self.number, "state": to.value})
        self._observe(self, to)  # measures in a worker; kill tests end the process here


Threaded = Callable[[Callable[[], None]], Awaitable[None]]
