"""Merging what all partitions know into an answer: one client, one query, one file.

Invariant: a query answers once, done or failed. Whatever is written of an answer, the note of how far it has come and
the clean-up are one transaction. A long listing is written in steps, each an event of its own, so that others get their
turn in between and no step holds more than a part of every run.
"""

import json
import logging
import re
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from agents.blocks import Table
from agents.fold import PARTIALS, Event, Outgoing, Send, why_set_aside
from cauce import tracing
from cauce.messages import About, Answer, ClientId, decode
from queries.columns import rows_of
from queries.model import Dataset, Listing, Options, Query, Row, Summary

log = logging.getLogger(__name__)

PIECE_CHARACTERS: Final = 512 << 10  # of an answer, in one record
STEP_ROWS: Final = 100_000  # of a listing, in one event: about a third of a second
QUOTE_OR_LINE_END: Final = re.compile(r'["\r\n]')
NEEDS_QUOTES: Final = re.compile(r'[",\r\n]')

SendAnswer = Callable[[Answer], Awaitable[None]]
Ledger = dict[str, Any]
Outcome = Answer | Outgoing


async def merge(
    events: AsyncIterator[Event],
    table: Table,
    datasets: Mapping[str, Dataset],
    partitions: int,
    send_answer: SendAnswer,
    send: Send,
) -> None:
    async for event in events:
        about = About.read(event.headers)
        with tracing.span(f"merge {about.kind}", event.headers, client_id=about.client_id, subject=about.subject):
            dataset = datasets[about.dataset].asked_for(Options.from_dict(about.options))
            merger = Merger(table, dataset, about, partitions)
            if (set_aside := why_set_aside(event)) and about.kind in ("partial", "more"):
                outgoing = merger.set_aside(f"{about.subject}: {set_aside}")
            else:
                outgoing = merged(merger, about.kind, event.value)
            for each in outgoing:
                if isinstance(each, Answer):
                    await send_answer(each)
                    tell(each)
                else:
                    await send(each)


def merged(merger: "Merger", kind: str, value: bytes) -> Iterable[Outcome]:
    match kind:
        case "partial":
            return merger.partial(value)
        case "more":
            return merger.more()
        case "failed":
            return merger.failed(json.loads(value)["reason"])
        case "counted":
            return merger.counted(**json.loads(value))
        case "abort":
            return merger.abort()
        case _:
            raise AssertionError(f"a record of kind {kind} among the partials: a bug")


def tell(answer: Answer) -> None:
    """Once a query, with its last part; a failed one was told of where it failed."""
    if answer.state == "done" and answer.part == answer.parts - 1:
        log.info("query answered", extra={"client_id": answer.client_id, "query": answer.query})


class Merger:
    """One record's work. The ledger of a query says how many parts each run of each partition has, which partitions are
    done, and, of a listing that is being written, how far it has come."""

    def __init__(self, table: Table, dataset: Dataset, about: About, partitions: int) -> None:
        self._table = table
        self._dataset = dataset
        self._about = about
        self._client: ClientId = about.client_id
        self._partitions = partitions

    def partial(self, value: bytes) -> Iterable[Outcome]:
        """Parts of one partition come in order; the last one says so."""
        about, name = self._about, self._about.subject
        ledger = self._ledger(name)
        if not ledger["failed"]:
            self._table[self._key(name, about.partition, about.run, about.part)] = value
            if about.part == 0:
                ledger["runs"].setdefault(str(about.partition), []).append(about.parts)
        if about.runs and about.part == about.parts - 1:
            ledger["done"].append(about.partition)
        self._save(name, ledger)
        return self._settle(name, ledger) if self._all_done(ledger) else []

    def failed(self, reason: str) -> Iterable[Outcome]:
        return self._fail(self._about.subject, reason, is_partition_done=True)

    def set_aside(self, reason: str) -> Iterable[Outcome]:
        """A part of a run, or a step of a listing, ends workers: the query fails."""
        about = self._about
        if about.kind == "more":
            is_gone = not self._all_done(self._ledger(about.subject))  # its session has ended meanwhile
            return [] if is_gone else self._fail(about.subject, reason, is_partition_done=False)
        is_last = about.runs > 0 and about.part == about.parts - 1
        return self._fail(about.subject, reason, is_partition_done=is_last)

    def _fail(self, name: str, reason: str, *, is_partition_done: bool) -> list[Outcome]:
        """The first to fail is the answer; the others are waited for, so that nothing is left behind."""
        ledger = self._ledger(name)
        first = not ledger["failed"]
        self._forget_parts(name, ledger)
        ledger["failed"] = True
        if is_partition_done:
            ledger["done"].append(self._about.partition)
        if self._all_done(ledger):
            self._forget(name)
        else:
            self._save(name, ledger)
        return [Answer(self._client, name, "failed", reason=reason)] if first else []

    def counted(self, batches: int, rows: int, sent: int | None) -> Iterable[Outcome]:
        """Of one partition, ahead of the partials that it sends at the end of the file: so whatever is answered has
        been counted. Rows that were lost or came twice would be a fault of ours, and must not look like an answer."""
        kind = self._about.subject
        ledger = self._ledger(kind)
        ledger["done"].append(self._about.partition)
        counts = ledger["counts"]
        is_copy = self._dataset.file(kind).is_broadcast and self._about.partition > 0  # every partition has all rows
        ledger["counts"] = [counts[0] + batches, counts[1] + rows * (not is_copy)]
        if not self._all_done(ledger):
            self._save(kind, ledger)
            return []
        self._forget(kind)
        batches, rows = ledger["counts"]
        outcomes: list[Outcome] = [Answer(self._client, kind, "counted", batches=batches, rows=rows)]
        if sent is not None and sent != rows:
            reason = f"{rows} rows of {kind} were counted where {sent} were sent; this is a bug, please report it"
            log.error("rows do not add up", extra={"client_id": self._client, "file": kind, "reason": reason})
            for query in self._dataset.queries_of(kind):
                outcomes += self._fail(query.name, reason, is_partition_done=False)
        return outcomes

    def abort(self) -> Iterable[Outcome]:
        for name in [
            *(query.name for query in self._dataset.queries),
            *(file.kind for file in self._dataset.all_files),
        ]:
            self._forget_parts(name, self._ledger(name))
            self._forget(name)
        return []

    def more(self) -> Iterable[Outcome]:
        """Go on with a listing, unless its session has ended meanwhile."""
        name = self._about.subject
        ledger = self._ledger(name)
        return self._settle(name, ledger) if self._all_done(ledger) else []

    def _settle(self, name: str, ledger: Ledger) -> Iterable[Outcome]:
        if ledger["failed"]:
            self._forget(name)
            return []
        query = next(query for query in self._dataset.queries if query.name == name)
        try:
            if isinstance(query, Summary):
                return self._summary(query, ledger)
            assert isinstance(query, Listing)
            return self._step(query, ledger)
        except Exception as error:  # noqa: BLE001 a declaration that raises fails its query, nothing else
            reason = f"{name}: {type(error).__name__}: {error}"
            log.warning("a query failed", extra={"client_id": self._client, "query": name, "reason": reason})
            self._forget_parts(name, ledger)
            self._forget(name)
            return [Answer(self._client, name, "failed", reason=reason)]

    def _summary(self, query: Summary, ledger: Ledger) -> list[Answer]:
        parts = [decode(self._table[key]) for key in self._keys(query.name, ledger)]
        rows = query.answer(pa.concat_tables(parts), Options.from_dict(self._about.options))
        texts = list(pieces(csv_line(row) for row in (query.header, *rows)))
        self._forget_parts(query.name, ledger)
        self._forget(query.name)
        return [self._piece(query, number, len(texts), text) for number, text in enumerate(texts)]

    def _step(self, query: Listing, ledger: Ledger) -> list[Outcome]:
        """The next rows of all runs. What is left of a run is where its cursor is."""
        written = ledger["written"]
        runs = [
            Run(self._table, self._key(query.name, int(partition), number), parts, ledger["cursors"])
            for partition, all_parts in sorted(ledger["runs"].items())
            for number, parts in enumerate(all_parts)
        ]
        lines = (csv_line(query.write(row)) for row in in_order(runs, STEP_ROWS))
        texts = list(pieces([csv_line(query.header), *lines] if not written else lines))
        is_last = all(run.last is None for run in runs)
        total = written + len(texts) if is_last else 0
        answers = [self._piece(query, written + number, total, text) for number, text in enumerate(texts)]
        if is_last:
            self._forget_parts(query.name, ledger)
            self._forget(query.name)
            return [*answers]
        cursors = {run.name: run.cursor for run in runs}
        self._save(query.name, {**ledger, "cursors": cursors, "written": written + len(texts)})
        return [*answers, Outgoing(PARTIALS, replace(self._about, kind="more"), b"{}")]

    def _piece(self, query: Query, number: int, parts: int, text: str) -> Answer:
        return Answer(self._client, query.name, "done", number, parts, text, size=len(text.encode()))

    def _all_done(self, ledger: Ledger) -> bool:
        return len(ledger["done"]) == self._partitions

    def _ledger(self, name: str) -> Ledger:
        ledger = self._table.get(self._key(name))
        new = {"runs": {}, "done": [], "failed": False, "cursors": {}, "written": 0, "counts": [0, 0]}
        return json.loads(ledger) if ledger else new

    def _save(self, name: str, ledger: Ledger) -> None:
        self._table[self._key(name)] = json.dumps(ledger).encode()

    def _forget(self, name: str) -> None:
        self._drop(self._key(name))

    def _forget_parts(self, name: str, ledger: Ledger) -> None:
        for key in self._keys(name, ledger):
            self._drop(key)
        ledger["runs"] = {}

    def _drop(self, key: str) -> None:
        if self._table.get(key) is not None:
            del self._table[key]

    def _keys(self, name: str, ledger: Ledger) -> Iterator[str]:
        for partition, runs in sorted(ledger["runs"].items()):
            for run, parts in enumerate(runs):
                yield from (self._key(name, int(partition), run, part) for part in range(parts))

    def _key(self, name: str, *rest: int) -> str:
        return "/".join([self._client, name, *map(str, rest)])


class Run:
    """The rows of a sorted run, from its cursor on, a part at a time. Parts that were read are dropped."""

    def __init__(self, table: Table, name: str, parts: int, cursors: Mapping[str, Sequence[int]]) -> None:
        self.name = name
        self._table = table
        self._parts = parts
        self._part, self._at = cursors.get(name, (0, 0))
        self._rows: list[Row] = []  # of the part at the cursor; none at the end of the run
        self._load()

    @property
    def cursor(self) -> tuple[int, int]:
        return self._part, self._at

    @property
    def last(self) -> Row | None:
        """Of the rows at hand; None when all were taken."""
        return self._rows[-1] if self._rows else None

    def take(self, last: Row) -> list[Row]:
        """The rows at hand up to and with this one."""
        start, self._at = self._at, bisect_right(self._rows, last, self._at)
        taken = self._rows[start : self._at]
        if self._at == len(self._rows):
            self._next_part()
        return taken

    def _next_part(self) -> None:
        del self._table[f"{self.name}/{self._part}"]
        self._part, self._at = self._part + 1, 0
        self._load()

    def _load(self) -> None:
        """The part at the cursor, or the first one behind it that has rows."""
        self._rows = []
        if self._part < self._parts:
            self._rows = rows_of(decode(self._table[f"{self.name}/{self._part}"]))
            if self._at == len(self._rows):
                self._next_part()


def in_order(runs: Sequence[Run], at_least: int) -> Iterator[Row]:
    """The next rows of all runs in their order: as many as asked for, or a few more. Up to the first of their last rows
    at hand none can be missing, so those are sorted together: in C, which finds that they are sorted runs."""
    while at_least > 0 and (lasts := [run.last for run in runs if run.last is not None]):
        first_end = min(lasts)
        rows = sorted(chain.from_iterable(run.take(first_end) for run in runs if run.last is not None))
        at_least -= len(rows)
        yield from rows


def pieces(lines: Iterable[str]) -> Iterator[str]:
    """Lines together, cut into what fits a record."""
    piece: list[str] = []
    size = 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if size >= PIECE_CHARACTERS:
            yield "".join(piece)
            piece, size = [], 0
    if piece:
        yield "".join(piece)


def csv_line(fields: Sequence[str]) -> str:
    line = ",".join(fields)
    if line.count(",") == len(fields) - 1 and QUOTE_OR_LINE_END.search(line) is None:  # nearly every line
        return line + "\n"
    return ",".join(map(quoted, fields)) + "\n"


def quoted(field: str) -> str:
    """Quotes only where RFC 4180 needs them; what Python's csv module quotes changes from version to version."""
    if NEEDS_QUOTES.search(field) is None:
        return field
    return '"' + field.replace('"', '""') + '"'
