"""What a worker tells Prometheus, and whether it is alive and ready."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from cauce.errors import Fenced
from streams.checkpoint import Checkpoint, CheckpointState

if TYPE_CHECKING:
    from streams.engine import Engine

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counts what happened; what is true now is read when somebody asks."""

    def __init__(self, engine: "Engine") -> None:
        self._registry = CollectorRegistry()
        self._commits = Counter("cauce_commits", "checkpoints committed", registry=self._registry)
        self._aborts = Counter("cauce_aborts", "checkpoints that ended with the process", registry=self._registry)
        self._fenced = Counter("cauce_fenced", "times another worker had taken over", registry=self._registry)
        self._bytes = Counter("cauce_committed_bytes", "sent and staged in commits", registry=self._registry)
        self._set_aside = Counter("cauce_set_aside", "records that ended workers", registry=self._registry)
        self._seconds = Histogram(
            "cauce_checkpoint_seconds", "event boundary to stored", buckets=SECONDS, registry=self._registry
        )
        self._registry.register(Now(engine))

    def committed(self, checkpoint: Checkpoint, size_bytes: int) -> None:
        self._commits.inc()
        self._bytes.inc(size_bytes)
        self._seconds.observe(checkpoint.seconds(CheckpointState.SEALED, CheckpointState.STORED))

    def failed(self, error: BaseException) -> None:
        self._aborts.inc()
        if isinstance(error, Fenced):
            self._fenced.inc()

    def set_aside(self) -> None:
        self._set_aside.inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)


class Now(Collector):
    """Gauges that are facts about the engine at this moment."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    def collect(self) -> Iterator[GaugeMetricFamily]:
        engine = self._engine
        restore = engine.restore_progress
        yield gauge("cauce_ready", "1 when /readyz says so", not engine.why_not_ready())
        yield gauge("cauce_partitions", "input partitions assigned", len(engine.assignment))
        yield gauge("cauce_lag_records", "offsets between the commit and the end", engine.lag())
        yield gauge("cauce_in_flight", "events begun and not finished", len(engine.inbox.in_flight))
        yield gauge("cauce_seconds_since_commit", "", time.monotonic() - engine.last_commit_at)
        if restore is not None:
            yield gauge("cauce_restore_records", "read from changelogs since the last assignment", restore.records)
            yield gauge("cauce_restore_bytes", "the same in bytes", restore.size_bytes)
            yield gauge("cauce_restore_wanted_offsets", "how many there were to read at most", restore.wanted)
            yield gauge("cauce_restore_seconds_left", "at the rate so far; 0 when done", restore.seconds_left)


def gauge(name: str, help_text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help_text, value=float(value))
