"""A CSV file as rows of text, and an answer as the bytes of a CSV file.

Invariant: every row of a file is either given out or counted as rejected; a file that has no rows to speak of (no
header, a column that is missing, a quoted field that never ends) is an error, not an empty answer.
"""

import csv
import itertools
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cauce.errors import ConfigError

LAST = ("the line", "after the last")  # two fields of a row of their own, unless a quoted field is still open


@dataclass(slots=True)
class Counts:
    """Rows of one file: all that were read, and how many of them were rejected whole."""

    rows: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class Answers:
    """The answer files by name, and what was read of each kind of file, by the name that it has as a single file."""

    files: dict[str, bytes]
    counts: dict[str, Counts]


def files_read(reads: Mapping[str, tuple[str, ...]], wanted: Collection[str]) -> list[str]:
    """Returns the files that the wanted answers are made of, by the names that they have as single files."""
    return list(dict.fromkeys(file for answer in reads if answer in wanted for file in reads[answer]))


def read_rows(
    path: Path, columns: tuple[str, ...], counts: Counts, needed: int | None = None, separator: str = ","
) -> Iterator[tuple[str, ...]]:
    """The named fields, without outer blanks, of each row that has the first `needed` of them, or else all; the other
    rows are counted as rejected."""
    records = (record for record in read_records(path, separator) if record)  # an empty line is no row
    header = [name.strip() for name in next(records, [])]
    missing = [name for name in columns if name not in header]
    if missing:
        raise ConfigError(f"{path}: the header has no column {', '.join(missing)}; give the file its header line")
    places = [header.index(name) for name in columns]
    for record in records:
        counts.rows += 1
        if len(record) == len(header) and is_utf8(record):
            fields = tuple(record[place].strip() for place in places)
            if all(fields[:needed]):
                yield fields
                continue
        counts.rejected += 1


def read_records(path: Path, separator: str = ",") -> Iterator[list[str]]:
    """Every record with all its fields. A byte that is not UTF-8 becomes a lone surrogate, see `is_utf8`."""
    csv.field_size_limit(sys.maxsize)  # the default, 131,072, is less than the longest cast
    try:
        file = path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; the folder must hold this file") from error
    with file:
        reader = csv.reader(itertools.chain(file, [separator.join(LAST)]), delimiter=separator)
        held = next(reader)
        for record in reader:
            yield held
            held = record
    if held != list(LAST):
        raise ConfigError(f"{path}: a quoted field is never closed; look for the odd quote in its last rows")


def is_utf8(record: list[str]) -> bool:
    text = "".join(record)
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_csv(header: str, rows: Iterable[tuple[str | int | float, ...]]) -> bytes:
    lines = [header, *(",".join(quoted(as_text(value)) for value in row) for row in rows)]
    return "".join(f"{line}\n" for line in lines).encode()


def as_text(value: str | float) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def quoted(field: str) -> str:
    """Quotes only where RFC 4180 needs them."""
    if any(sign in field for sign in ',"\r\n'):
        return '"' + field.replace('"', '""') + '"'
    return field
