"""What is left when there are no sessions: memory, stores, and keys that live in compacted topics."""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from confluent_kafka import Consumer, KafkaError, TopicPartition

from cauce.topics import TOPICS
from infra import keeper


@dataclass(frozen=True, slots=True)
class Left:
    """What there is at a moment."""

    resident: dict[str, int]  # bytes, by process
    stores: int  # bytes of RocksDB
    keys: dict[str, int]  # that live in compacted topics
    sessions: int

    @classmethod
    def look(cls, home: Path) -> Self:
        status = keeper.status(home)
        resident = {f"{each['role']} {each['index']}": _resident_bytes(each["pid"]) for each in status["processes"]}
        files = [file for file in (home / "workers").rglob("*") if file.suffix == ".sst"]
        size = sum(file.stat().st_size for file in files)
        return cls(resident, size, live_keys(status["bootstrap"]), len(status["sessions"]))

    @property
    def is_clean(self) -> bool:
        return not self.sessions and not any(self.keys.values())


def settle(home: Path, seconds: float = 60.0) -> Left:
    """The sessions have ended; workers take a moment to hear of it."""
    deadline = time.monotonic() + seconds
    while not (left := Left.look(home)).is_clean and time.monotonic() < deadline:
        time.sleep(1)
    return left


def _resident_bytes(pid: int) -> int:
    line = next(row for row in Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def live_keys(bootstrap: str) -> dict[str, int]:
    """By topic: keys whose newest committed record is no tombstone, so that compaction keeps it."""
    return {topic.name: _live(bootstrap, topic.name) for topic in TOPICS if topic.compacted}


def _live(bootstrap: str, topic: str) -> int:
    reading = {"group.id": "left", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **reading, "enable.auto.commit": False})
    partitions = list(consumer.list_topics(topic, 10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    living: dict[bytes, bool] = {}
    ended: set[int] = set()
    while len(ended) < len(partitions):
        for message in consumer.consume(1000, 1.0):
            error = message.error()
            if error is None:
                living[message.key() or b""] = message.value() is not None
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition() or 0)
    consumer.close()
    return Counter(living.values())[True]
