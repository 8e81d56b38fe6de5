"""Merging the partials of all partitions into an answer: one client, one query, one file.

Invariant: the answer, its state and the clean-up are one transaction; a query answers once, done or failed.
"""

import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from agents.blocks import Table
from agents.fold import Event
from cauce.messages import About, Answer, ClientId, decode
from queries.model import Dataset, Options, Query

log = logging.getLogger(__name__)

PIECE_CHARACTERS: Final = 512 << 10  # of an answer, in one record
NEEDS_QUOTES: Final = re.compile(r'[",\r\n]')

SendAnswer = Callable[[Answer], Awaitable[None]]


async def merge(
    events: AsyncIterator[Event], table: Table, datasets: Mapping[str, Dataset], partitions: int, send: SendAnswer
) -> None:
    async for event in events:
        about = About.read(event.headers)
        merger = Merger(table, datasets[about.dataset], about, partitions)
        match about.kind:
            case "partial":
                answers = merger.partial(event.value)
            case "failed":
                answers = merger.failed(json.loads(event.value)["reason"])
            case "abort":
                answers = merger.abort()
            case _:
                raise AssertionError(f"a record of kind {about.kind} among the partials: a bug")
        for answer in answers:
            await send(answer)


class Merger:
    """One record's work. The ledger of a query says which parts of which partitions are there, and if it has failed."""

    def __init__(self, table: Table, dataset: Dataset, about: About, partitions: int) -> None:
        self._table = table
        self._dataset = dataset
        self._about = about
        self._client: ClientId = about.client_id
        self._partitions = partitions

    def partial(self, value: bytes) -> list[Answer]:
        query, about = self._query(self._about.subject), self._about
        ledger = self._ledger(query.name)
        ledger["missing"].setdefault(str(about.partition), about.parts)
        ledger["missing"][str(about.partition)] -= 1
        if not ledger["failed"]:
            ledger["parts"].append([about.partition, about.part])
            self._table[self._key(query.name, about.partition, about.part)] = value
        if not self._all_there(ledger):
            self._save(query.name, ledger)
            return []
        return self._settle(query, ledger)

    def failed(self, reason: str) -> list[Answer]:
        """The first to fail is the answer; the others are waited for, so that nothing is left behind."""
        name = self._about.subject
        ledger = self._ledger(name)
        first = not ledger["failed"]
        self._forget_parts(name, ledger)
        ledger["failed"] = True
        ledger["missing"][str(self._about.partition)] = 0
        if self._all_there(ledger):
            self._forget(name)
        else:
            self._save(name, ledger)
        return [Answer(self._client, name, "failed", reason=reason)] if first else []

    def abort(self) -> list[Answer]:
        for query in self._dataset.queries:
            self._forget_parts(query.name, self._ledger(query.name))
            self._forget(query.name)
        return []

    def _settle(self, query: Query, ledger: dict[str, Any]) -> list[Answer]:
        answers: list[Answer] = []
        if not ledger["failed"]:
            answers = self._answer(query, ledger)
            self._forget_parts(query.name, ledger)
        self._forget(query.name)
        return answers

    def _answer(self, query: Query, ledger: dict[str, Any]) -> list[Answer]:
        parts = [decode(self._table[self._key(query.name, *each)]) for each in sorted(ledger["parts"])]
        try:
            rows = query.answer(pa.concat_tables(parts), Options.from_dict(self._about.options))
            texts = list(csv_pieces(query.header, rows))
        except Exception as error:  # noqa: BLE001 a declaration that raises fails its query, nothing else
            reason = f"{query.name}: {type(error).__name__}: {error}"
            log.warning("a query failed", extra={"client_id": self._client, "query": query.name, "reason": reason})
            return [Answer(self._client, query.name, "failed", reason=reason)]
        return [
            Answer(self._client, query.name, "done", part=number, parts=len(texts), csv=text)
            for number, text in enumerate(texts)
        ]

    def _query(self, name: str) -> Query:
        return next(query for query in self._dataset.queries if query.name == name)

    def _all_there(self, ledger: dict[str, Any]) -> bool:
        return len(ledger["missing"]) == self._partitions and not any(ledger["missing"].values())

    def _ledger(self, name: str) -> dict[str, Any]:
        ledger = self._table.get(self._key(name))
        return json.loads(ledger) if ledger else {"missing": {}, "parts": [], "failed": False}

    def _save(self, name: str, ledger: dict[str, Any]) -> None:
        self._table[self._key(name)] = json.dumps(ledger).encode()

    def _forget(self, name: str) -> None:
        if self._table.get(self._key(name)) is not None:
            del self._table[self._key(name)]

    def _forget_parts(self, name: str, ledger: dict[str, Any]) -> None:
        for partition, part in ledger["parts"]:
            del self._table[self._key(name, partition, part)]
        ledger["parts"] = []

    def _key(self, name: str, *rest: int) -> str:
        return "/".join([self._client, name, *map(str, rest)])


def csv_pieces(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The file, cut between rows into what fits a record."""
    lines, size = [csv_line(header)], 0
    for row in rows:
        lines.append(csv_line(row))
        size += len(lines[-1])
        if size >= PIECE_CHARACTERS:
            yield "".join(lines)
            lines, size = [], 0
    if lines:
        yield "".join(lines)


def csv_line(fields: Sequence[str]) -> str:
    return ",".join(map(quoted, fields)) + "\n"


def quoted(field: str) -> str:
    """Quotes only where RFC 4180 needs them; what Python's csv module quotes changes from version to version."""
    if NEEDS_QUOTES.search(field) is None:
        return field
    return '"' + field.replace('"', '""') + '"'
