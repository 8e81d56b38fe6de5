"""Bytes of an uploaded CSV file, arriving in any pieces, turned into columns.

Invariant: feeding a file in any pieces, through any number of parsers that each resume where another stopped, gives the
same rows and the same rejections. `header`, `tail` and `line` are all that has to be kept in between.

There are two ways, and they never differ. The exact way reads rows as `csv.reader` does (its default dialect, not
strict) and cleans them one by one. The fast way takes a whole block of rows at once; the rows of it, or the block, for
which it cannot vouch go the exact way. So rows may change places within a block: no query minds.

An empty line is no row; a line of blanks is a row with one field. A row that is not UTF-8 has this as its reason,
whatever else may be wrong with it.
"""

import csv
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from io import BytesIO, TextIOWrapper
from operator import itemgetter
from typing import Any, Final, Literal

import pyarrow as pa

from cauce.errors import BadUpload
from cauce.messages import join
from gateway import foreign
from gateway.rows import BLOCK_BYTES, MAX_ROW_BYTES, Rows
from queries.model import File, Reason, Rejected

NOT_UTF8: Final = Rejected(Reason("not UTF-8"))
WRONG_WIDTH: Final = Rejected(Reason("wrong number of fields"))
HEADER_LENGTH: Final = 64 << 10  # of a header line that is looked at for another separator
NAME_LENGTH: Final = 80  # of a header's name in a message; a longer one is not what a client mistyped

# A limit of the process, 128 KiB unless raised: less than the longest cast. Rows have a limit of their own.
csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))


@dataclass(frozen=True, slots=True)
class Piece:
    """What came of some bytes."""

    table: pa.Table  # in the schema of the file
    rows: int  # read: also the rejected ones, and those that no query needs
    rejected: dict[str, int]  # by reason


class Parser:
    def __init__(self, file: File, header: tuple[str, ...] = (), tail: bytes = b"", line: int = 1) -> None:
        """At the start of a file, or where another parser stopped: with its header, tail and line."""
        self.header: tuple[str, ...] = ()
        self._file = file
        self._pick: Callable[[Sequence[str]], Sequence[str]]
        self._rows = Rows(file.filename, file.separator, tail, line, at_start=line == 1 and not header)
        if header:
            self._take_header(header)

    @property
    def tail(self) -> bytes:
        """The row that is not finished yet."""
        return self._rows.tail

    @property
    def line(self) -> int:
        """Where the tail starts, counted from 1; only messages tell it."""
        return self._rows.line

    def feed(self, data: bytes) -> Piece:
        """One block after the other: two threads would parse no more in the same time, for they take Python's lock in
        turns, a few microseconds each, and spend half as much again on that."""
        pieces = []
        for at in range(0, len(data), BLOCK_BYTES):
            line = self.line
            pieces.append(self._parse(self._whole_rows(data[at : at + BLOCK_BYTES]), line))
        return self._join(pieces)

    def finish(self) -> Piece:
        """The end of the file: its last row may lack the line end."""
        line = self.line
        piece = self._parse(self._whole_rows(None), line)
        if not self.header:
            raise BadUpload(self._file.filename, line, f"there is no header line; it has to name {self._wanted}")
        return piece

    def _whole_rows(self, data: bytes | None) -> bytes:
        """Returns the rows that end in this data, or with the file. What is no CSV at all may seem to have an endless
        first row, and it is better to say what it is."""
        at_start = not self.header and self.line == 1
        first = (self.tail + (data or b""))[: foreign.FIRST_BYTES] if at_start else b""
        try:
            return self._rows.close() if data is None else self._rows.cut(data)
        except BadUpload as error:
            if what := foreign.named(first):
                raise BadUpload(self._file.filename, 1, what) from error
            raise

    def _parse(self, whole: bytes, line: int) -> Piece:
        if not self.header:
            whole = self._read_header(whole, line)
        if not whole:
            return self._join([])
        piece = self._parse_rows(whole)
        return replace(piece, table=self._file.travelling(piece.table))

    def _parse_rows(self, whole: bytes) -> Piece:
        if self._file.clean_block and (taken := self._file.clean_block(whole, self.header)) is not None:
            table, rows, odd = taken
            fast = Piece(table, rows, rejected={})
            return self._join([fast, self._parse_exactly(odd)]) if odd else fast
        return self._parse_exactly(whole)

    def _parse_exactly(self, whole: bytes) -> Piece:
        clean, pick, width = self._file.clean_row, self._pick, len(self.header)
        rejected: Counter[str] = Counter()
        try:
            rows = readable = _read(whole, self._file.separator)
        except UnicodeDecodeError:
            rows = _read(whole, self._file.separator, errors="surrogateescape")
            readable = [row for row in rows if _is_utf8(row)]
            rejected[NOT_UTF8.reason] = len(rows) - len(readable)
        cleaned = [clean(pick(row)) if len(row) == width else WRONG_WIDTH for row in readable]
        rejected.update(row.reason for row in cleaned if isinstance(row, Rejected))
        kept = [row for row in cleaned if isinstance(row, tuple)]
        return Piece(_as_table(kept, self._file.schema), len(rows), dict(rejected))

    def _join(self, pieces: Sequence[Piece]) -> Piece:
        rejected: Counter[str] = Counter()
        for piece in pieces:
            rejected.update(piece.rejected)
        table = join((piece.table for piece in pieces if piece.table.num_rows), self._file.schema)
        return Piece(table, sum(piece.rows for piece in pieces), dict(rejected))

    def _read_header(self, whole: bytes, line: int) -> bytes:
        """The first row that is not empty, taken from the front of these rows; what is left of them."""
        text = whole.removeprefix(BOM_UTF8) if line == 1 else whole
        lines = text.splitlines(keepends=True)  # of bytes: at LF, CRLF and CR only
        reader = csv.reader((each.decode() for each in lines), delimiter=self._file.separator)
        try:
            names = next(filter(None, reader), None)
        except UnicodeDecodeError as error:
            is_first = line == 1 and reader.line_num <= 1
            reason = "the header line is not UTF-8; save the file in that encoding"
            reason = (foreign.named(whole) if is_first else "") or reason
            raise BadUpload(self._file.filename, line + reader.line_num, reason) from error
        if names:
            header = tuple(name.strip() for name in names)
            read = b"".join(lines[: reader.line_num])
            self._check_header(header, line + reader.line_num - 1, read)
            self._take_header(header)
        return b"".join(lines[reader.line_num :])

    def _check_header(self, header: tuple[str, ...], line: int, read: bytes) -> None:
        for column in self._file.columns:
            if column not in header:
                text = read.decode().strip("\r\n")
                separated = foreign.separated(text[:HEADER_LENGTH], self._file.separator, self._file.columns)
                if what := foreign.named(read) or separated:
                    raise BadUpload(self._file.filename, line, what)
                mistyped = [name for name in header[:1000] if len(name) <= NAME_LENGTH]  # difflib takes its time
                nearest = "".join(f"; the nearest is {name!r}" for name in get_close_matches(column, mistyped, 1, 0))
                reason = f"the header has no column {column!r}{nearest}; it has to name {self._wanted}"
                raise BadUpload(self._file.filename, line, reason)
        name, times = Counter(filter(None, header)).most_common(1)[0]  # an empty name is none, and may come twice
        if times > 1:
            reason = f"the header has {times} columns {name[:NAME_LENGTH]!r}; rename or remove all but one"
            raise BadUpload(self._file.filename, line, reason)

    def _take_header(self, header: tuple[str, ...]) -> None:
        self.header = header
        first, *more = (header.index(column) for column in self._file.columns)
        self._pick = itemgetter(first, *more) if more else itemgetter(slice(first, first + 1))

    @property
    def _wanted(self) -> str:
        return self._file.separator.join(self._file.columns)


def _read(rows: bytes, separator: str, errors: Literal["strict", "surrogateescape"] = "strict") -> list[list[str]]:
    """All rows with all their fields; what is not UTF-8 raises, or becomes a lone surrogate."""
    lines = TextIOWrapper(BytesIO(rows), encoding="utf-8", errors=errors, newline="")
    return list(filter(None, csv.reader(lines, delimiter=separator)))


def _is_utf8(row: list[str]) -> bool:
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    if not rows:
        return schema.empty_table()
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)
