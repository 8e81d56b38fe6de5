"""What a reader of the topics sees, committed records only, and what it should see."""

import json
import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from cauce.messages import About, Answer, ClientId, decode, to_json
from gateway.parse import Parser
from infra.processes import wait_until
from queries.datasets import DATASETS
from queries.keys import partitions_of
from queries.model import rows_in


@dataclass(frozen=True, slots=True)
class Found:
    partition: int
    key: str
    about: About
    value: bytes


class Topics:
    def __init__(self, bootstrap: str, prefix: str, partitions: int) -> None:
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._partitions = partitions

    def raw(self, name: str) -> list[Any]:
        """Every committed record; waits until no transaction is open."""
        topic = self._prefix + name
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        wanted = {TopicPartition(topic, part): OffsetSpec.latest() for part in range(self._partitions)}  # type: ignore[no-untyped-call]
        asked = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        ends = {tp.partition: future.result().offset for tp, future in asked.items()}
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "test",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(topic, part, 0) for part in ends])
        found: list[Any] = []
        reached = dict.fromkeys(ends, 0)

        def all_read() -> bool:
            for message in consumer.consume(500, 0.2):
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                reached[partition] = offset + (message.error() is None)
                if message.error() is None:
                    found.append(message)
            return all(reached[part] >= end for part, end in ends.items())

        try:
            wait_until(all_read, seconds=60, otherwise=f"{topic}: read to {reached}, the ends are {ends}")
        finally:
            consumer.close()
        return found

    def records(self, name: str, client_id: str) -> list[Found]:
        found = []
        for message in self.raw(name):
            about = About.read(dict(message.headers()))
            if about.client_id == client_id:
                found.append(Found(message.partition(), message.key().decode(), about, message.value()))
        return found

    def rows(self, name: str, client_id: str) -> pa.Table:
        """The rows of all batches, after checking that each is where it belongs and that nothing follows an end."""
        (file,) = (file for dataset in DATASETS.values() for file in dataset.files if file.kind == name)
        ended: set[int] = set()
        tables = [file.batch_schema.empty_table()]
        for record in self.records(name, client_id):
            assert record.partition not in ended, "something follows the end"
            assert record.key == client_id
            if record.about.kind == "end":
                ended.add(record.partition)
            else:
                assert record.about.kind == "batch"
                table = decode(record.value)
                assert table.schema == file.batch_schema
                assert rows_in(table) == record.about.rows
                where = partitions_of(table[file.key].to_numpy(), self._partitions)
                assert file.is_broadcast or set(where.tolist()) == {record.partition}
                tables.append(table)
        return pa.concat_tables(tables)

    def ends(self, name: str, client_id: str) -> list[tuple[int, dict[str, Any]]]:
        found = [record for record in self.records(name, client_id) if record.about.kind == "end"]
        return sorted((record.partition, json.loads(record.value)) for record in found)

    def states(self, name: str) -> dict[str, dict[str, Any]]:
        """A compacted topic as compaction leaves it in the end."""
        found: dict[str, dict[str, Any]] = {}
        for message in self.raw(name):
            if message.value() is None:
                found.pop(message.key().decode(), None)
            else:
                found[message.key().decode()] = json.loads(message.value())
        return found

    def answer(self, client_id: str, query: str, *parts: str, state: str = "done", reason: str = "") -> None:
        """What a worker does."""
        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True})
        for number, csv in enumerate(parts):
            answer = Answer(
                ClientId(client_id),
                query,
                state,  # type: ignore[arg-type]
                number,
                len(parts),
                csv,
                len(csv.encode()),
                reason,
            )
            producer.produce(self._prefix + "answers", key=client_id, value=to_json(answer))
        assert producer.flush(30) == 0


def expected(name: str, data: bytes) -> pa.Table:
    """The rows of the file, read in one go."""
    file = DATASETS["movies"].file(name)
    parser = Parser(file)
    return file.packed(pa.concat_tables([parser.feed(data).table, parser.finish().table]))


def same_rows(found: pa.Table, wanted: pa.Table) -> bool:
    """As multisets: none is missing, none is there twice."""
    return sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


def ratings(rows: int, seed: int = 7) -> bytes:
    """A ratings file in which no two rows are the same: a row that comes twice is seen."""
    rng = random.Random(seed)
    lines = ["userId,movieId,rating,timestamp"]
    lines += [f"{n},{n},{rng.randrange(1, 11) / 2},{1_000_000_000 + n}" for n in range(1, rows + 1)]
    return "\n".join(lines).encode() + b"\n"
