"""What the output must be, and how far it is from that.

Exact means: every input number once in the output as a read_committed reader sees it, every key counted 1, 2, 3 … n in
order, and the changelog and RocksDB both saying n.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaError, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # its __init__ re-exports it

from tables.store import Identity, PartitionStore, StoreMemory
from tests.harness.fleet import wait_for
from tests.harness.plan import Plan, count_key

END_SECONDS: Final = 60.0
REQUEST_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """All zero: exact."""

    lost: int = 0
    twice: int = 0
    wrong_sequences: int = 0  # keys not counted 1, 2, 3 … n
    changelog_wrong: int = 0  # keys whose last committed changelog value is not the truth
    store_wrong: int = 0  # keys whose value in RocksDB is not the truth
    store_ahead: int = 0  # stores, of any worker, that are not what their changelog says up to their offset

    @property
    def exact(self) -> bool:
        return self == Verdict()


EXACT: Final = Verdict()


class Reader:
    """Reads a topic from its beginning, on and on, and knows when it has read to an end."""

    def __init__(self, plan: Plan, topic: str, isolation: str = "read_committed") -> None:
        self.topic = topic
        self._partitions = range(plan.partitions)
        self._bootstrap = plan.bootstrap
        self._reached: dict[int, int] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": plan.bootstrap,
                "group.id": f"{topic}-reader",  # the library wants one; nothing joins or commits
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 1000,  # who leads when a broker has died; 5 minutes by default
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in self._partitions])

    def new(self, seconds: float = 0.02) -> Iterator[Any]:
        for message in self._consumer.consume(10_000, seconds):
            error = message.error()
            partition, offset = message.partition() or 0, message.offset() or 0
            if error is None:
                self._reached[partition] = offset + 1
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                self._reached[partition] = offset  # past a trailing commit marker, too

    def to_the_end(self, ends: dict[int, int] | None = None) -> Iterator[Any]:
        """Everything up to the log end of this moment: waits out whatever transaction is open below it."""
        ends = self.ends() if ends is None else ends
        deadline = time.monotonic() + END_SECONDS
        while any(self._reached.get(number, 0) < end for number, end in ends.items()):
            yield from self.new()
            assert time.monotonic() < deadline, f"{self.topic}: read to {self._reached}, the ends are {ends}"

    def ends(self, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED) -> dict[int, int]:
        admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(self.topic, number): latest for number in self._partitions}
        answer = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=REQUEST_SECONDS)
        return {tp.partition: future.result().offset for tp, future in answer.items()}

    def held_back(self) -> dict[int, int]:
        """Where an open transaction keeps readers from what is behind it: the offset of its begin, by partition."""
        stable = self.ends(IsolationLevel.READ_COMMITTED)
        return {number: stable[number] for number, end in self.ends().items() if stable[number] < end}

    def close(self) -> None:
        self._consumer.close()


class Truth:
    """Reads the output as it becomes visible; `check` compares everything at the end."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.times: Counter[int] = Counter()  # how often each input number was seen
        self.last_news_at = time.monotonic()
        self._sequences: defaultdict[bytes, list[int]] = defaultdict(list)
        self._output = Reader(plan, plan.topic("out"))

    def __enter__(self) -> "Truth":
        return self

    def __exit__(self, *reason: object) -> None:
        self._output.close()

    def look(self) -> int:
        """Read what is new; how many different input numbers were seen so far."""
        self._take(self._output.new())
        return len(self.times)

    def wait_seen(self, count: int, seconds: float = 60.0, tend: Callable[[], None] = lambda: None) -> float:
        """Until so many inputs are in the output. Fails when nothing new came for `seconds`: slow is not stuck."""
        started = time.monotonic()
        while (known := self.look()) < count:

            def more(known: int = known) -> bool:
                tend()
                return self.look() > known

            wait_for(more, seconds, f"{known} of {count} inputs are in the output, and nothing more comes")
        return time.monotonic() - started

    def check(self, count: int) -> Verdict:
        """Call when every worker has ended."""
        self._take(self._output.to_the_end())
        expected = Counter(count_key(number, self.plan.keys) for number in range(count))
        changelog = self._changelog()
        stores = list(self._stores(changelog))
        newest: dict[int, Store] = {}
        for store in sorted(stores, key=lambda store: store.offset):
            newest[store.partition] = store
        return Verdict(
            lost=count - len(self.times),
            twice=self.times.total() - len(self.times),
            wrong_sequences=sum(found != list(range(1, len(found) + 1)) for found in self._sequences.values()),
            changelog_wrong=differences(expected, merged([last_values(changes) for changes in changelog.values()])),
            store_wrong=differences(expected, merged([store.values for store in newest.values()])),
            store_ahead=sum(not store.as_its_changelog for store in stores),
        )

    def stores_ahead(self) -> int:
        """Stores that hold what is not committed, or not what is. To be asked while no worker runs, and before an open
        transaction was ended: only what is stable by now can be in a store."""
        reader = Reader(self.plan, self.plan.changelog)
        stable = reader.ends(IsolationLevel.READ_COMMITTED)
        stores = list(self._stores(read_changes(reader, stable)))
        return sum(not store.as_its_changelog or store.offset > stable[store.partition] for store in stores)

    def aborted_changes(self) -> int:
        """Changelog records that reached the brokers and were taken back; to be asked while no worker runs."""
        reader = Reader(self.plan, self.plan.changelog, "read_uncommitted")
        try:
            written = sum(1 for _ in reader.to_the_end())
        finally:
            reader.close()
        return written - sum(len(changes) for changes in self._changelog().values())

    def held_back(self) -> dict[int, int]:
        return self._output.held_back()

    def _take(self, messages: Iterator[Any]) -> None:
        for message in messages:
            number, count = message.value().split()
            self.times[int(number)] += 1
            self._sequences[message.key()].append(int(count))
            self.last_news_at = time.monotonic()

    def _changelog(self) -> dict[int, list["Change"]]:
        return read_changes(Reader(self.plan, self.plan.changelog))

    def _stores(self, changelog: dict[int, list["Change"]]) -> Iterator["Store"]:
        cluster, topic_id = self._identify_changelog()
        memory = StoreMemory(8)
        for path in sorted(self.plan.data.glob("*/tables/counts/*")):
            if path.name.isdigit():
                identity = Identity(cluster, self.plan.changelog, topic_id, int(path.name))
                yield read_store(path, identity, memory, changelog[int(path.name)])

    def _identify_changelog(self) -> tuple[str, str]:
        admin = AdminClient({"bootstrap.servers": self.plan.bootstrap, "log_level": 0})
        cluster = admin.describe_cluster(request_timeout=REQUEST_SECONDS).result().cluster_id
        name = self.plan.changelog
        topic = admin.describe_topics(TopicCollection([name]), request_timeout=REQUEST_SECONDS)[name].result()
        return str(cluster), str(topic.topic_id)


@dataclass(frozen=True, slots=True)
class Change:
    offset: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Store:
    path: Path
    partition: int
    offset: int
    values: dict[bytes, bytes]
    as_its_changelog: bool


def read_changes(reader: Reader, ends: dict[int, int] | None = None) -> dict[int, list[Change]]:
    """Every committed change, by partition, in order. Tests are far too short for compaction to begin."""
    changes: dict[int, list[Change]] = defaultdict(list)
    try:
        for message in reader.to_the_end(ends):
            changes[message.partition()].append(Change(message.offset(), message.key(), message.value()))
    finally:
        reader.close()
    return changes


def read_store(path: Path, identity: Identity, memory: StoreMemory, changes: list[Change]) -> Store:
    store = PartitionStore(path, identity, memory)
    try:
        values = dict(store.items())
        promised = last_values([change for change in changes if change.offset < store.offset])
        return Store(path, identity.partition, store.offset, values, values == promised)
    finally:
        store.close()


def last_values(changes: list[Change]) -> dict[bytes, bytes]:
    last = {change.key: change.value for change in changes}
    return {key: value for key, value in last.items() if value is not None}


def merged(parts: list[dict[bytes, bytes]]) -> dict[bytes, bytes]:
    """A key in two partitions would be wrong in one of them; none may be there twice."""
    together: dict[bytes, bytes] = {}
    for part in parts:
        for key, value in part.items():
            together[key] = b"-1" if key in together else value
    return together


def differences(expected: Counter[bytes], found: dict[bytes, bytes]) -> int:
    counts = {key: json.loads(value) for key, value in found.items()}
    return sum(expected.get(key) != counts.get(key) for key in expected.keys() | counts.keys())
