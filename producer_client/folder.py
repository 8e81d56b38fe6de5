"""What of a folder is sent: every file of every kind that the dataset wants, from any byte on, in constant memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from producer_client.errors import WrongUsage

WRITE_BYTES: Final = 1024 * 1024  # big enough that Python costs little, small enough for many uploads at once


@dataclass(frozen=True, slots=True)
class FileKind:
    """A file that a dataset wants, as the gateway describes it."""

    kind: str
    filename: str
    is_folder: bool = False  # any number of files, which are one input
    after: tuple[str, ...] = ()  # kinds that have to be there first

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        return cls(
            kind=str(fields["kind"]),
            filename=str(fields["filename"]),
            is_folder=bool(fields.get("folder")),
            after=tuple(fields.get("after", ())),
        )


@dataclass(frozen=True, slots=True)
class Source:
    """One upload: its kind, its name, its bytes."""

    kind: FileKind
    name: str
    path: Path
    length: int

    def read(self, offset: int, length: int) -> Iterator[bytes]:
        """`length` bytes from `offset` on, in pieces."""
        with self.path.open("rb", buffering=0) as file:
            file.seek(offset)
            while length > 0:
                piece = file.read(min(WRITE_BYTES, length))
                if not piece:
                    raise WrongUsage(f"{self.path} became shorter while it was sent; send it again with --fresh")
                length -= len(piece)
                yield piece

    def fingerprint(self) -> list[int]:
        """Changes when somebody changes the file between two runs."""
        return [self.length, self.path.stat().st_mtime_ns]


def find(folder: Path, kinds: Sequence[FileKind]) -> list[Source]:
    """The sources of every kind: DIR/ratings.csv, or the CSV files of DIR/ratings/. Names all that is missing."""
    found = {kind.kind: _paths(folder, kind) for kind in kinds}
    missing = [kind.filename for kind in kinds if not found[kind.kind]]
    if missing:
        wanted = ", ".join(f"{kind.filename}{' or a folder of them' * kind.is_folder}" for kind in kinds)
        raise WrongUsage(f"{folder} has no {' and no '.join(missing)}; put there {wanted}")
    return [source(kind, path) for kind in kinds for path in found[kind.kind]]


def lying_there(folder: Path, kinds: Sequence[FileKind]) -> list[FileKind]:
    """Returns those kinds that the folder has a file of."""
    return [kind for kind in kinds if _paths(folder, kind)]


def source(kind: FileKind, path: Path) -> Source:
    try:
        with path.open("rb") as file:
            length = file.seek(0, 2)
    except OSError as error:
        raise WrongUsage(f"{error.filename}: {error.strerror}; make it readable") from None
    if length == 0:
        raise WrongUsage(f"{path} is empty; it needs its header line at least")
    return Source(kind, f"{kind.kind}/{path.name}" if kind.is_folder else kind.filename, path, length)


def _paths(folder: Path, kind: FileKind) -> list[Path]:
    single = folder / kind.filename
    if single.is_file():
        return [single]
    for name in dict.fromkeys((kind.filename, kind.kind, single.stem)):
        if paths := sorted(path for path in (folder / name).glob("*.csv") if path.is_file()):
            if len(paths) > 1 and not kind.is_folder:
                raise WrongUsage(f"{folder / name} has {len(paths)} files, and {kind.kind} is one; leave one there")
            return paths
    return []
