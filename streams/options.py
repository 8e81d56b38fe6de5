"""What an exactly-once worker needs to know beyond Faust's own settings."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from cauce.process import exit_code
from streams.checkpoint import Checkpoint, CheckpointState, Observer
from streams.suspects import OnPoison


def end_process(error: BaseException) -> NoReturn:
    """Crash-only: no clean-up of ours may hide or delay the end. Kafka holds all that matters."""
    os._exit(exit_code(error))


def nothing_to_see(checkpoint: Checkpoint, state: CheckpointState) -> None: ...


@dataclass(frozen=True, slots=True)
class Options:
    """One worker. `worker_id` is its transactional.id, group.instance.id and data folder: unique in the group, and the
    same again after a restart."""

    worker_id: str
    data: Path
    kafka: dict[str, str]  # librdkafka settings of every client: bootstrap.servers, and TLS or SASL where needed
    replication: int | None = None  # copies of the topics made here; None: three, or one a broker
    checkpoint_ms: int = 300  # how long an output waits to become visible at most
    checkpoint_bytes: int = 32 << 20  # sent and staged; a commit of more takes too long to flush
    session_timeout_ms: int = 6_000  # silence after which a worker's partitions go to the others
    transaction_timeout_ms: int = 20_000  # no event may take longer
    store_cache_mib: int = 64
    keep_unowned_seconds: float = 1800.0  # state of partitions that moved away: they may come back
    tidy_seconds: float = 60.0  # between two looks for such state
    stuck_seconds: float = 30.0  # no commit for so long while there is lag: not ready
    observe: Observer = field(default=nothing_to_see)
    on_fatal: Callable[[BaseException], NoReturn] = field(default=end_process)
    on_poison: OnPoison | None = None  # a record that ends workers, and why: what to hand over instead, or None to skip
