"""What of a folder is sent: one upload per kind of file, read from any byte on in constant memory.

Invariant: the bytes of a source are a function of its files alone, so that an upload can go on from any offset. A kind
that lies in a folder of monthly files is sent as one: their rows one below the other, under the one header they share.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from producer_client.errors import WrongUsage

WRITE_BYTES: Final = 1024 * 1024  # big enough that Python costs little, small enough for many uploads at once
HEADER_BYTES: Final = 1024 * 1024  # a header line longer than this is none
BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class FileKind:
    """A file that a dataset wants, as the gateway describes it."""

    kind: str
    filename: str

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        return cls(kind=str(fields["kind"]), filename=str(fields["filename"]))


@dataclass(frozen=True, slots=True)
class Part:
    """The bytes of a file from `start` to `end`, then `tail`."""

    path: Path
    start: int
    end: int
    tail: bytes = b""

    @property
    def length(self) -> int:
        return self.end - self.start + len(self.tail)

    def read(self, offset: int, length: int) -> Iterator[bytes]:
        position, left = self.start + offset, min(length, self.end - self.start - offset)
        if left > 0:
            with self.path.open("rb", buffering=0) as file:
                file.seek(position)
                while left > 0:
                    piece = file.read(min(WRITE_BYTES, left))
                    if not piece:
                        raise WrongUsage(f"{self.path} became shorter while it was sent; send it again with --fresh")
                    left -= len(piece)
                    yield piece
        if self.tail and offset + length == self.length:
            yield self.tail


@dataclass(frozen=True, slots=True)
class Source:
    """One upload: its kind, its name, its bytes."""

    kind: str
    name: str
    parts: tuple[Part, ...]

    @property
    def length(self) -> int:
        return sum(part.length for part in self.parts)

    def read(self, offset: int, length: int) -> Iterator[bytes]:
        """`length` bytes from `offset` on, in pieces."""
        for part in self.parts:
            if offset < part.length and length > 0:
                now = min(length, part.length - offset)
                yield from part.read(offset, now)
                offset, length = 0, length - now
            else:
                offset -= min(offset, part.length)

    def fingerprint(self) -> list[int]:
        """Changes when somebody changes the files between two runs."""
        return [self.length, len(self.parts), max(part.path.stat().st_mtime_ns for part in self.parts)]


def find(folder: Path, kinds: Sequence[FileKind]) -> list[Source]:
    """A source for every kind: DIR/ratings.csv, or all CSV files of DIR/ratings/. Names all that is missing."""
    found = {kind.kind: _paths(folder, kind) for kind in kinds}
    missing = [kind.filename for kind in kinds if not found[kind.kind]]
    if missing:
        wanted = ", ".join(kind.filename for kind in kinds)
        raise WrongUsage(f"{folder} has no {' and no '.join(missing)}; put there {wanted}")
    return [source(kind, found[kind.kind]) for kind in kinds]


def source(kind: FileKind, paths: Sequence[Path]) -> Source:
    try:
        parts = (_only(paths[0]),) if len(paths) == 1 else _joined(paths)
    except OSError as error:
        raise WrongUsage(f"{error.filename}: {error.strerror}; make it readable") from None
    return Source(kind.kind, kind.filename, parts)


def _paths(folder: Path, kind: FileKind) -> list[Path]:
    single = folder / kind.filename
    if single.is_file():
        return [single]
    for name in (kind.filename, kind.kind, single.stem):
        if paths := sorted(path for path in (folder / name).glob("*.csv") if path.is_file()):
            return paths
    return []


def _only(path: Path) -> Part:
    with path.open("rb") as file:
        length = file.seek(0, 2)
    if length == 0:
        raise WrongUsage(f"{path} is empty; it needs its header line at least")
    return Part(path, 0, length)


def _joined(paths: Sequence[Path]) -> tuple[Part, ...]:
    parts, first = [], _header(paths[0])
    for number, path in enumerate(paths):
        whole, header = _only(path), _header(path)
        if _names(header) != _names(first):
            raise WrongUsage(f"{path} has another header line than {paths[0]}; make them the same, or remove one")
        last = number == len(paths) - 1
        tail = b"" if last or _ends_line(path, whole.end) else b"\n"
        part = Part(path, 0 if number == 0 else len(header), whole.end, tail)
        if part.end > part.start:
            parts.append(part)
    return tuple(parts)


def _names(header: bytes) -> bytes:
    return header.removeprefix(BOM).rstrip(b"\r\n")


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(HEADER_BYTES)


def _ends_line(path: Path, length: int) -> bool:
    with path.open("rb") as file:
        file.seek(length - 1)
        return file.read(1) == b"\n"
