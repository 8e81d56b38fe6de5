"""Folding batches into state, and sending what a partition knows of a query once its files have ended. Rows of a
listing are sent as they come, in sorted runs, so that no state holds all of them.

Invariant: what a client sent can fail only that query of that client. An error in a declaration becomes a record that
says so, in the transaction that would have carried the partial; the worker goes on.
"""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import pyarrow as pa

from agents.blocks import Blocks, Table
from agents.courtesy import Courtesy
from cauce import tracing
from cauce.messages import SET_ASIDE, About, ClientId, decode, encode, join
from queries.columns import as_they_are
from queries.model import Dataset, Derived, File, Given, Input, Listing, Options, Query, Summary, rows_in

log = logging.getLogger(__name__)

PARTIALS: Final = "partials"
PART_BYTES: Final = 1 << 20  # a partial of more travels in several records
RUN_BYTES: Final = 1 << 20  # a sorted block of a listing that has grown so big is sent
RUN_PART_BYTES: Final = 64 << 10  # small: the merge holds a part of every run at a time
REFERENCES: Final = 32  # tables that are kept decoded


class Event(Protocol):
    key: Any
    value: bytes
    headers: Mapping[str, bytes]
    message: Any


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to send. Without a partition it goes where its key belongs."""

    topic: str
    about: About
    value: bytes
    partition: int | None = None

    @property
    def is_awaited(self) -> bool:
        """By an answer: all that is merged, but for the runs of a file that goes on."""
        return self.topic == PARTIALS and (self.about.kind != "partial" or self.about.runs > 0)


Send = Callable[[Outgoing], Awaitable[None]]
Label = Callable[[pa.Table, str], Awaitable[pa.Table]]  # rows with a column `overview`, model → the same with `label`


async def fold(
    events: AsyncIterator[Event],
    table: Table,
    datasets: Mapping[str, Dataset],
    send: Send,
    label: Label,
    courtesy: Courtesy | None = None,
) -> None:
    references, courtesy = References(), courtesy or Courtesy()
    async for event in events:
        about = About.read(event.headers)
        with tracing.span(f"fold {about.kind}", event.headers, client_id=about.client_id, file=about.subject):
            dataset = datasets[about.dataset].asked_for(Options.from_dict(about.options))
            rows: pa.Table | Exception | None = why_set_aside(event)
            if about.kind == "batch" and rows is None:
                rows = await readied(about, dataset, event.value, label, courtesy)
            folder = Folder(table, dataset, about, event.message.partition, references)
            for each in folded(folder, about, event.value, rows):
                await send(each)


def folded(folder: "Folder", about: About, value: bytes, rows: pa.Table | Exception | None) -> list[Outgoing]:
    match about.kind, rows:
        case "batch", pa.Table():
            return folder.take(rows)
        case "batch", Exception():
            return folder.set_aside(about.rows, rows)
        case "end", Exception():
            return [*folder.fail_all(rows), *folder.end()]
        case "end", _:
            return folder.end(json.loads(value).get("sent"))
        case "abort", _:
            return folder.abort()
        case _:
            raise AssertionError(f"a record of kind {about.kind} on an input topic: a bug")


class SetAside(Exception):
    """The record ended the workers that read it, and is not read again."""


def why_set_aside(event: Event) -> SetAside | None:
    reason = event.headers.get(SET_ASIDE)
    return SetAside(reason.decode()) if reason else None


async def readied(
    about: About, dataset: Dataset, value: bytes, label: Label, courtesy: Courtesy
) -> pa.Table | Exception:
    """The rows, with labels where their queries need them; or why there are none, which is the session's affair."""
    rows = decode(value)
    if dataset.file(about.subject).needs != "sentiment":
        courtesy.busy(about.client_id)
        return rows
    await courtesy.give_way(about.client_id)
    try:
        return await label(rows, Options.from_dict(about.options).model)
    except Exception as error:  # noqa: BLE001 it fails the queries that need it
        return error


class References:
    """Broadcast files that have ended, decoded: they are the same in every partition, and change no more."""

    def __init__(self) -> None:
        self._tables: dict[tuple[ClientId, str, str], pa.Table] = {}

    def get(self, client_id: ClientId, query: str, kind: str, read: Callable[[], pa.Table]) -> pa.Table:
        key = (client_id, query, kind)
        if key not in self._tables:
            if len(self._tables) >= REFERENCES:
                del self._tables[next(iter(self._tables))]
            self._tables[key] = read()
        return self._tables[key]


class Folder:
    """One record's work on the state of its client in its partition. Made when nothing is left to wait for: meanwhile
    another agent may change the same ledger."""

    def __init__(self, table: Table, dataset: Dataset, about: About, partition: int, references: References) -> None:
        self._table = table
        self._references = references
        self._dataset = dataset
        self._about = about
        self._partition = partition
        self._client: ClientId = about.client_id
        self.options = Options.from_dict(about.options)
        ledger = table.get(self._client)
        new: dict[str, Any] = {"ended": [], "failed": [], "runs": {}, "counts": {}}
        self._ledger: dict[str, Any] = json.loads(ledger) if ledger else new

    @property
    def file(self) -> File:
        return self._dataset.file(self._about.subject)

    def live_queries(self) -> list[Query]:
        """Those that read this file and have not failed."""
        queries = self._dataset.queries_of(self.file.kind)
        return [query for query in queries if query.name not in self._ledger["failed"]]

    def take(self, rows: pa.Table) -> list[Outgoing]:
        outgoing: list[Outgoing] = []
        self._count(rows_in(rows))
        for query in self.live_queries():
            try:
                outgoing += self._fold(query, self.file, rows)
            except Exception as error:  # noqa: BLE001 a declaration that raises fails its query, nothing else
                outgoing.append(self.fail(query, error))
        for derived in self._derived():
            try:
                outgoing += self._derive(derived, derived.select(rows, self.options))
            except Exception as error:  # noqa: BLE001 the same
                outgoing += self._fail_readers([derived.file.kind], error)
        return outgoing

    def set_aside(self, rows: int, error: Exception) -> list[Outgoing]:
        """A batch that is not to be had: accounted for, and whatever would have read it fails."""
        self._count(rows)
        return self.fail_all(error)

    def end(self, sent: int | None = None) -> list[Outgoing]:
        """The file has ended: send the partial of every query that has now seen all it reads, and forget its state.
        `sent`: how many rows of it were given to all partitions, where that is known. Our own count goes ahead of the
        partials: the merge compares them before it answers."""
        self._ledger["ended"].append(self.file.kind)
        outgoing = [self._counted(sent)]
        for query in self.live_queries():
            try:
                outgoing += self._fold_waiting(query)
                outgoing += self._partial(query) if self._has_all(query) else []
            except Exception as error:  # noqa: BLE001 the same as in a fold
                outgoing.append(self.fail(query, error))
        if len(self._ledger["ended"]) == len(self._dataset.all_files):
            self._forget_ledger()
        else:
            self._save_ledger()
        return outgoing + [self._forward(derived.file) for derived in self._derived()]

    def abort(self) -> list[Outgoing]:
        """Everything of the client goes. Topics are not in step: each forwards it behind what it has sent itself."""
        for query in self._dataset.queries:
            self._delete(query)
        self._forget_ledger()
        forward = [self._forward(derived.file) for derived in self._derived()]
        return [*forward, Outgoing(PARTIALS, self._about, b"{}")]

    def fail(self, query: Query, error: Exception) -> Outgoing:
        reason = f"{query.name}: {type(error).__name__}: {error}"
        log.warning("a query failed", extra={"client_id": self._client, "query": query.name, "reason": reason})
        self._ledger["failed"].append(query.name)
        self._save_ledger()
        self._delete(query)
        about = replace(self._about, kind="failed", subject=query.name, partition=self._partition, rows=0)
        return Outgoing(PARTIALS, about, json.dumps({"reason": reason}).encode())

    def fail_all(self, error: Exception) -> list[Outgoing]:
        """Whatever reads this file, or what is derived from it."""
        return self._fail_readers([self.file.kind, *(derived.file.kind for derived in self._derived())], error)

    def _fail_readers(self, kinds: Iterable[str], error: Exception) -> list[Outgoing]:
        readers = {query.name: query for kind in kinds for query in self._dataset.queries_of(kind)}
        return [self.fail(query, error) for name, query in readers.items() if name not in self._ledger["failed"]]

    def _fold(self, query: Query, file: File, rows: pa.Table) -> list[Outgoing]:
        """Topics are not in step: rows that are ahead of a file that their fold needs wait for it."""
        if not self._has_references(query, file):
            self._waiting(query, file).add(rows)
            return []
        self._blocks(query, file).add(input_of(query, file).fold(rows, self._given(query, file)))
        is_listed = isinstance(query, Listing) and not file.is_broadcast
        return self._runs(query, file) if is_listed else []

    def _fold_waiting(self, query: Query) -> list[Outgoing]:
        """What waited for the file that has ended now."""
        outgoing: list[Outgoing] = []
        for each in query.inputs:
            if self.file in references_of(query, each.file) and self._has_references(query, each.file):
                waiting = self._waiting(query, each.file)
                for rows in waiting.read():
                    outgoing += self._fold(query, each.file, rows)
                waiting.delete()
        return outgoing

    def _derive(self, derived: Derived, rows: pa.Table) -> Iterator[Outgoing]:
        for start in range(0, rows.num_rows, derived.rows_per_batch):
            few = rows.slice(start, derived.rows_per_batch)
            about = replace(self._about, subject=derived.file.kind, rows=few.num_rows)
            yield Outgoing(derived.file.kind, about, encode(few), self._partition)

    def _partial(self, query: Query) -> list[Outgoing]:
        if isinstance(query, Summary):
            states = {each.file.kind: self._state(query, each.file) for each in query.inputs}
            outgoing = self._run(query, query.partial(states, self.options), PART_BYTES, last=True)
        else:
            (file,) = (each.file for each in query.inputs if not each.file.is_broadcast)
            outgoing = self._run(query, self._state(query, file), RUN_PART_BYTES, last=True)
        self._delete(query)
        return outgoing

    def _runs(self, query: Query, file: File) -> list[Outgoing]:
        """The blocks of a listing that are big enough to go."""
        blocks = self._blocks(query, file).take(RUN_BYTES)
        return [each for block in blocks for each in self._run(query, block, RUN_PART_BYTES, last=False)]

    def _run(self, query: Query, rows: pa.Table, part_bytes: int, *, last: bool) -> list[Outgoing]:
        parts, run = pieces(rows, part_bytes), self._ledger["runs"].get(query.name, 0)
        self._ledger["runs"][query.name] = run + 1
        self._save_ledger()
        about = replace(
            self._about,
            kind="partial",
            subject=query.name,
            partition=self._partition,
            parts=len(parts),
            run=run,
            runs=run + 1 if last else 0,
        )
        return [
            Outgoing(PARTIALS, replace(about, part=number, rows=part.num_rows), encode(part))
            for number, part in enumerate(parts)
        ]

    def _count(self, rows: int) -> None:
        batches, before = self._ledger["counts"].get(self.file.kind, [0, 0])
        self._ledger["counts"][self.file.kind] = [batches + 1, before + rows]
        self._save_ledger()

    def _counted(self, sent: int | None) -> Outgoing:
        """How many batches and rows of the file came here: the sum over the partitions is what the gateway sent."""
        batches, rows = self._ledger["counts"].pop(self.file.kind, [0, 0])
        about = replace(self._about, kind="counted", partition=self._partition, rows=rows)
        return Outgoing(PARTIALS, about, json.dumps({"batches": batches, "rows": rows, "sent": sent}).encode())

    def _state(self, query: Query, file: File) -> pa.Table:
        """All blocks combined; for no rows, what the fold makes of an empty batch."""
        input_ = input_of(query, file)
        empty = input_.fold(with_label(file.batch_schema.empty_table(), file), self._given(query, file))
        return input_.combine(join(self._blocks(query, file).read(), empty.schema))

    def _delete(self, query: Query) -> None:
        for each in query.inputs:
            self._blocks(query, each.file).delete()
            self._waiting(query, each.file).delete()

    def _given(self, query: Query, file: File) -> Given:
        return Given(self.options, {each.kind: self._reference(query, each) for each in references_of(query, file)})

    def _reference(self, query: Query, file: File) -> pa.Table:
        return self._references.get(self._client, query.name, file.kind, lambda: self._state(query, file))

    def _has_references(self, query: Query, file: File) -> bool:
        return all(each.kind in self._ledger["ended"] for each in references_of(query, file))

    def _waiting(self, query: Query, file: File) -> Blocks:
        return Blocks(self._table, f"{self._client}/{query.name}/{file.kind}/waiting", as_they_are)

    def _blocks(self, query: Query, file: File) -> Blocks:
        return Blocks(self._table, f"{self._client}/{query.name}/{file.kind}", input_of(query, file).combine)

    def _has_all(self, query: Query) -> bool:
        return all(each.file.kind in self._ledger["ended"] for each in query.inputs)

    def _derived(self) -> list[Derived]:
        return [each for each in self._dataset.derived if each.source.kind == self._about.subject]

    def _forward(self, file: File) -> Outgoing:
        return Outgoing(file.kind, replace(self._about, subject=file.kind), b"{}", self._partition)

    def _save_ledger(self) -> None:
        self._table[self._client] = json.dumps(self._ledger).encode()

    def _forget_ledger(self) -> None:
        if self._table.get(self._client) is not None:
            del self._table[self._client]


def input_of(query: Query, file: File) -> Input:
    return next(each for each in query.inputs if each.file.kind == file.kind)


def references_of(query: Query, file: File) -> list[File]:
    """The broadcast files that this query needs at hand when it folds rows of the file."""
    return [each.file for each in query.inputs if each.file.kind in file.after]


def pieces(table: pa.Table, part_bytes: int) -> list[pa.Table]:
    """Slices that fit into a record; an empty one where there is no row: it says that this partition has ended."""
    count = max(1, -(-table.nbytes // part_bytes))
    rows = max(1, -(-table.num_rows // count))
    return [table.slice(start, rows) for start in range(0, max(1, table.num_rows), rows)]


def with_label(rows: pa.Table, file: File) -> pa.Table:
    return rows.append_column("label", pa.array([], pa.string())) if file.needs == "sentiment" else rows
