"""Every topic Cauce owns, declared once: name, key, what is in it, how long it is kept, how it is cleaned.

Nothing else creates a topic: brokers run with auto-creation off, so a misspelt name is an error, not an empty topic.
"""

from dataclasses import dataclass
from typing import Final

HOUR_MS: Final = 3_600_000
FOREVER_MS: Final = -1
MAX_RECORD_BYTES: Final = 8 << 20  # a batch is about 256 KiB; a block of state after merging may be a few MiB
TOMBSTONES_MS: Final = 24 * HOUR_MS  # tables/store.py restores anew what was last written half as long ago


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic. It has as many partitions as the setting says: what is joined must have the same number."""

    name: str
    key: str
    holds: str
    retention_ms: int
    compacted: bool = False

    def config(self) -> dict[str, str]:
        """Kafka's settings of the topic; how many copies there are depends on the cluster (streams/provision.py)."""
        return {
            "cleanup.policy": "compact" if self.compacted else "delete",
            "retention.ms": str(self.retention_ms),
            "max.message.bytes": str(MAX_RECORD_BYTES),
            **(COMPACTION if self.compacted else {}),
        }


# the defaults compact a changelog after half of it is garbage and its segment of 1 GiB or a week is full
COMPACTION: Final = {
    "min.cleanable.dirty.ratio": "0.2",
    "segment.bytes": str(64 << 20),
    "segment.ms": str(10 * 60_000),
    "delete.retention.ms": str(TOMBSTONES_MS),
}

BATCHES: Final = Topic(
    name="batches",
    key="client_id/file",
    holds="rows of one upload for one partition; headers say client, file and rows",
    retention_ms=24 * HOUR_MS,  # a worker may be down for a night
)
TALLIES: Final = Topic(
    name="tallies",
    key="client_id/file",
    holds="JSON: batches and rows of that file that the workers have counted so far",
    retention_ms=24 * HOUR_MS,
)
TALLY_CHANGELOG: Final = Topic(
    name="cauce-tally-changelog",  # <app>-<table>-changelog, as Faust names it
    key="client_id/file",
    holds="the table `tally`: JSON, the last count of each file; a tombstone when it is forgotten",
    retention_ms=FOREVER_MS,
    compacted=True,
)

TOPICS: Final = (BATCHES, TALLIES, TALLY_CHANGELOG)
