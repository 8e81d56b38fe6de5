"""Every topic Cauce owns, declared once: name, key, what is in it, how long it is kept, how it is cleaned.

Nothing else creates a topic: brokers run with auto-creation off, so a misspelt name is an error, not an empty topic.
"""

from dataclasses import dataclass
from typing import Final

HOUR_MS: Final = 3_600_000
FOREVER_MS: Final = -1
MAX_RECORD_BYTES: Final = 8 << 20  # a batch is about 256 KiB; a block of state after merging may be a few MiB
KEPT_MS: Final = 24 * HOUR_MS  # a worker may be down for a night; no session lives longer than this
TICKS_KEPT_MS: Final = HOUR_MS  # nobody reads them again; for a person who looks at clocks
TOMBSTONES_MS: Final = 24 * HOUR_MS  # tables/store.py restores anew what was last written half as long ago


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic. It has as many partitions as the setting says: what is joined must have the same number."""

    name: str
    key: str
    holds: str
    retention_ms: int
    compacted: bool = False
    segment_ms: int | None = None  # what is still written to is kept, whatever its age: None, Kafka's week

    def config(self) -> dict[str, str]:
        """Kafka's settings of the topic; how many copies there are depends on the cluster (cauce/provision.py)."""
        return {
            "cleanup.policy": "compact" if self.compacted else "delete",
            "retention.ms": str(self.retention_ms),
            "max.message.bytes": str(MAX_RECORD_BYTES),
            **STAMPED_BY_BROKERS,
            **(COMPACTION if self.compacted else {}),
            **({"segment.ms": str(self.segment_ms)} if self.segment_ms else {}),
        }


# A record's time is the broker's. By the sender's, one machine with a wrong clock would end sessions, have rows deleted
# before they are read (behind), or could send nothing at all: Kafka 4 refuses what is an hour ahead.
STAMPED_BY_BROKERS: Final = {"message.timestamp.type": "LogAppendTime"}

# the defaults compact a changelog after half of it is garbage and its segment of 1 GiB or a week is full
COMPACTION: Final = {
    "min.cleanable.dirty.ratio": "0.2",
    "segment.bytes": str(64 << 20),
    "segment.ms": str(10 * 60_000),
    "delete.retention.ms": str(TOMBSTONES_MS),
}

SESSIONS: Final = Topic(
    name="sessions",
    key="client_id",
    holds="JSON: dataset, options and end of a session; a tombstone once it is gone",
    retention_ms=FOREVER_MS,
    compacted=True,
)
UPLOADS: Final = Topic(
    name="uploads",
    key="client_id/upload_id",
    holds="JSON: how far a file has come, in the transaction that carries its rows; a tombstone with its session",
    retention_ms=FOREVER_MS,
    compacted=True,
)
PARTIALS: Final = Topic(
    name="partials",
    key="client_id",
    holds="what one partition knows of a query, as Arrow; headers say client, query and partition",
    retention_ms=KEPT_MS,
)
ANSWERS: Final = Topic(
    name="answers",
    key="client_id",
    holds="JSON: the CSV file of a query, in parts; or why there is none",
    retention_ms=KEPT_MS,
)
TICKS: Final = Topic(
    name="ticks",
    key="host:port of a gateway",
    holds="that gateway's own time as text; what counts is the record's time, which is the broker's",
    retention_ms=TICKS_KEPT_MS,
    segment_ms=TICKS_KEPT_MS,
)


OWN: Final = "rows of one upload for one partition"
EVERYWHERE: Final = "all rows of one upload, alike in every partition"


def rows_of(kind: str, what: str = OWN) -> Topic:
    """The topic of a kind of file, named like it: batches and control records."""
    return Topic(
        name=kind,
        key="client_id",
        holds=f"{what}, as Arrow; headers say client, file and rows; end and abort go to all",
        retention_ms=KEPT_MS,
    )


INPUTS: Final = (
    rows_of("movies"),
    rows_of("ratings"),
    rows_of("credits"),
    rows_of("overviews", "films that a model is to read, derived from movies in the same partition"),
    rows_of("airports", EVERYWHERE),
    rows_of("itineraries"),
    rows_of("transactions"),
    rows_of("transaction_items"),
    rows_of("users"),
    rows_of("stores", EVERYWHERE),
    rows_of("menu_items", EVERYWHERE),
)

STATE_CHANGELOG: Final = Topic(
    name="cauce-state-changelog",  # <app>-<table>-changelog, as Faust names it
    key="client_id, or client_id/query/kind[/block]",
    holds="the table `state`: what a partition has folded, as Arrow blocks, and which files of a client have ended",
    retention_ms=FOREVER_MS,
    compacted=True,
)
MERGES_CHANGELOG: Final = Topic(
    name="cauce-merges-changelog",
    key="client_id/query[/partition/part]",
    holds="the table `merges`: partials that wait for those of the other partitions",
    retention_ms=FOREVER_MS,
    compacted=True,
)

CHANGELOGS: Final = (STATE_CHANGELOG, MERGES_CHANGELOG)
TOPICS: Final = (SESSIONS, UPLOADS, *INPUTS, PARTIALS, ANSWERS, TICKS, *CHANGELOGS)
