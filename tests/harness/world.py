"""The whole way of the data without Kafka: gateway's parser, folds and merges over dictionaries, in any order.

What Kafka keeps is kept: records of one topic and partition stay in order, nothing else does.
"""

import asyncio
import json
import random
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from agents.fold import PARTIALS, Label, Outgoing, fold
from agents.merge import merge
from cauce.messages import SET_ASIDE, About, Answer, ClientId, encode
from gateway.parse import Parser
from queries.keys import partitions_of
from queries.model import Dataset, File, Options, rows_in

Record = tuple[About, bytes]


@dataclass
class World:
    dataset: Dataset
    partitions: int
    chance: random.Random
    label: Label
    states: list[dict[str, bytes]] = field(init=False)
    merges: dict[str, bytes] = field(default_factory=dict)  # of one client: its partials are in one partition
    logs: dict[tuple[str, int], deque[Record]] = field(default_factory=lambda: defaultdict(deque))
    answers: dict[tuple[ClientId, str], list[Answer]] = field(default_factory=lambda: defaultdict(list))
    sent: Counter[tuple[ClientId, str]] = field(default_factory=Counter)  # rows in batches, by kind of file
    counted: dict[tuple[ClientId, str], int] = field(default_factory=dict)  # rows folded
    asked: dict[ClientId, Options] = field(default_factory=dict)  # by who has uploaded
    poison: Callable[[str, About], bool] = lambda topic, about: False  # whether a worker has set the record aside

    def __post_init__(self) -> None:
        self.states = [{} for _ in range(self.partitions)]

    def upload(self, client: ClientId, folder: Path, options: Options) -> None:
        """Each file in pieces of any size, each piece's rows to their partitions, then the end to all of them."""
        self.asked[client] = options
        for file in self.dataset.asked_for(options).files:
            about = About("batch", client, self.dataset.name, file.kind, options=options.to_dict())
            single = folder / file.filename
            for path in [single] if single.exists() else sorted((folder / file.kind).glob("*.csv")):
                self._upload(about, file, path)
            end = json.dumps({"sent": self.sent[client, file.kind]}).encode()
            for partition in range(self.partitions):
                self.logs[file.kind, partition].append((replaced(about, "end"), end))

    def _upload(self, about: About, file: File, path: Path) -> None:
        parser = Parser(file)
        for piece in self._pieces(path.read_bytes()):
            if self.chance.random() < 0.3:
                parser = Parser(file, parser.header, parser.tail)  # another gateway goes on
            self._send(about, file, parser.feed(piece).table)
        self._send(about, file, parser.finish().table)

    def abort(self, client: ClientId) -> None:
        """As the gateway does it: behind whatever of the client's files is on its way."""
        options = self.asked[client]
        for file in self.dataset.asked_for(options).files:
            about = About("abort", client, self.dataset.name, file.kind, options=options.to_dict())
            for partition in range(self.partitions):
                self.logs[file.kind, partition].append((about, b"{}"))

    def run(self, steps: int = -1) -> None:
        """Take the next record of any topic and partition, until nothing is left."""
        while steps and (waiting := [each for each, log in self.logs.items() if log]):
            steps -= 1
            asyncio.run(self.take(*self.chance.choice(waiting)))

    def files(self, client: ClientId) -> dict[str, str]:
        return {
            query: "".join(each.csv for each in sorted(parts, key=lambda part: part.part))
            for (whose, query), parts in self.answers.items()
            if whose == client
        }

    def _pieces(self, data: bytes) -> list[bytes]:
        cuts = sorted(self.chance.randrange(len(data) + 1) for _ in range(self.chance.randrange(12)))
        return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    def _send(self, about: About, file: File, rows: pa.Table) -> None:
        self.sent[about.client_id, file.kind] += rows.num_rows
        rows = file.packed(rows)
        where = partitions_of(np.asarray(rows.column(file.key).to_numpy(), dtype=np.int64), self.partitions)
        for partition in range(self.partitions):
            own = rows if file.is_broadcast else rows.filter(pa.array(where == partition))
            if own.num_rows:
                self.logs[file.kind, partition].append((replace(about, rows=rows_in(own)), encode(own)))

    async def take(self, topic: str, partition: int, count: int = 1) -> None:
        for _ in range(count):
            await self._take(topic, partition, *self.logs[topic, partition].popleft())

    async def _take(self, topic: str, partition: int, about: About, value: bytes) -> None:
        headers = dict(about.headers()) | ({SET_ASIDE: b"it bit"} if self.poison(topic, about) else {})
        event: Any = SimpleNamespace(
            key=about.client_id, value=value, headers=headers, message=SimpleNamespace(partition=partition)
        )
        datasets: Mapping[str, Dataset] = {self.dataset.name: self.dataset}
        if topic == PARTIALS:
            await merge(one(event), self.merges, datasets, self.partitions, self._answer, self._outgoing)
        else:
            await fold(one(event), self.states[partition], datasets, self._outgoing, self.label)

    async def _outgoing(self, record: Outgoing) -> None:
        self.logs[record.topic, record.partition or 0].append((record.about, record.value))

    async def _answer(self, answer: Answer) -> None:
        if answer.state == "counted":
            self.counted[answer.client_id, answer.query] = answer.rows
        else:
            self.answers[answer.client_id, answer.query].append(answer)


def replaced(about: About, kind: Any) -> About:
    return About(kind, about.client_id, about.dataset, about.subject, options=about.options)


async def one(event: Any) -> AsyncIterator[Any]:
    yield event
