"""What of a folder is sent: every file of every kind that the dataset wants, from any byte on, in constant memory.

Invariant: a file that changes while it is sent never becomes complete, so no answer is made of half of each.
"""

import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, Self, cast

from producer_client import formats
from producer_client.errors import WrongUsage
from producer_client.fingerprints import Fingerprint
from producer_client.streams import WRITE_BYTES, Descriptor, Stream, piped

STANDARD_INPUT: Final = "-"  # in the place of a path
ALIKE: Final = 0.8  # of names: rating.csv and ratings.csv are at 0.95, credits.csv and ratings.csv at 0.64


@dataclass(frozen=True, slots=True)
class FileKind:
    """A file that a dataset wants, as the gateway describes it."""

    kind: str
    filename: str
    is_folder: bool = False  # any number of files, which are one input
    after: tuple[str, ...] = ()  # kinds that have to be there first
    columns: tuple[str, ...] = ()
    separator: str | None = None  # None: the gateway does not say

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        return cls(
            kind=str(fields["kind"]),
            filename=str(fields["filename"]),
            is_folder=bool(fields.get("folder")),
            after=tuple(fields.get("after", ())),
            columns=tuple(fields.get("columns", ())),
            separator=fields.get("separator"),
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """What the caller says of the files: where those of a kind are, and what separates their fields."""

    paths: Mapping[str, Sequence[Path]] = field(
        default_factory=dict
    )  # by kind; the others are looked for in the folder
    separators: Mapping[str, str] = field(default_factory=dict)  # by kind; "" for all the others

    def separator_of(self, kind: FileKind) -> str | None:
        return self.separators.get(kind.kind, self.separators.get(""))

    def of(self, kinds: Sequence[FileKind]) -> "Choice":
        """What is said of these kinds, and of all."""
        names = {kind.kind for kind in kinds}
        return Choice(
            {kind: paths for kind, paths in self.paths.items() if kind in names},
            {kind: separator for kind, separator in self.separators.items() if kind in {"", *names}},
        )

    def check(self, kinds: Sequence[FileKind]) -> None:
        names = {kind.kind for kind in kinds}
        for given in (*self.paths, *filter(None, self.separators)):
            if given not in names:
                raise WrongUsage(f"no file of the kind {given!r} is wanted; wanted are {', '.join(sorted(names))}")
        for kind in kinds:
            if len(self.paths.get(kind.kind, ())) > 1 and not kind.is_folder:
                raise WrongUsage(f"{kind.kind} is one file, and {len(self.paths[kind.kind])} were given; give one")
        if sum(str(path) == STANDARD_INPUT for paths in self.paths.values() for path in paths) > 1:
            raise WrongUsage("standard input can be one file only; give a path for the others")
        for kind in kinds:
            self._check_names(kind)

    def _check_names(self, kind: FileKind) -> None:
        """Refuses two files of one name: the second would be taken for the first, or for a change of it."""
        taken: dict[str, Path] = {}
        for path in self.paths.get(kind.kind, ()):
            name = upload_name(kind, path)
            if taken.get(name) == path:
                raise WrongUsage(f"{path} was given twice as a file of {kind.kind}; give it once")
            if name in taken:
                raise WrongUsage(f"{taken[name]} and {path} would both be {name} in this upload; rename one of them")
            taken[name] = path


class Source(Protocol):
    """One upload: its kind, its name, its bytes."""

    @property
    def kind(self) -> FileKind: ...
    @property
    def name(self) -> str: ...
    @property
    def separator(self) -> str | None:
        """What the caller said; None leaves it to the gateway."""

    @property
    def length(self) -> int | None:
        """How many bytes are to be sent; None while that is not known."""

    @property
    def fingerprint(self) -> Fingerprint | None:
        """Of the file on disk; None for standard input."""

    def prepare(self, offset: int, check_stop: Callable[[], None]) -> None:
        """Wait until there is something to send from `offset` on: no request is held open meanwhile."""

    def read(self, offset: int, most: int) -> Iterator[bytes]:
        """At most so many bytes from `offset` on, in pieces."""

    def close(self) -> None:
        """No more of it is wanted."""


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A CSV file, sent as it is from any byte on."""

    kind: FileKind
    name: str
    path: Path
    separator: str | None
    fingerprint: Fingerprint
    mark: tuple[int, int]  # size and time of change in nanoseconds

    @property
    def length(self) -> int:
        return self.fingerprint.size

    def prepare(self, offset: int, check_stop: Callable[[], None]) -> None:
        """Nothing to wait for."""

    def read(self, offset: int, most: int) -> Iterator[bytes]:
        """The last piece is given only if the file is still what it was when it was found."""
        try:
            with self.path.open("rb", buffering=0) as file:
                file.seek(offset)
                while most > 0:
                    piece = file.read(min(WRITE_BYTES, most))
                    offset, most = offset + len(piece), most - len(piece)
                    if not piece or offset == self.length:
                        self.check()
                    if not piece:
                        return
                    yield piece
        except OSError as error:
            raise _vanished(self.path, error) from None

    def check(self) -> None:
        check_unchanged(self.path, self.mark, self.fingerprint)

    def close(self) -> None:
        """Nothing is open."""


def find(folder: Path, kinds: Sequence[FileKind], choice: Choice | None = None) -> list[Source]:
    """The sources of every kind: DIR/ratings.csv, or the CSV files of DIR/ratings/, plain or packed, or what the
    caller has chosen. Names all that is missing."""
    choice = choice or Choice()
    choice.check(kinds)
    found = {kind.kind: list(choice.paths.get(kind.kind, ())) or _paths(folder, kind) for kind in kinds}
    missing = [kind for kind in kinds if not found[kind.kind]]
    if missing:
        wanted = ", ".join(f"{kind.filename}{' or a folder of them' * kind.is_folder}" for kind in kinds)
        names = " and no ".join(kind.filename for kind in missing)
        raise WrongUsage(
            f"{folder} has no {names}; put there {wanted}{_nearest(folder, missing, {kind.filename for kind in kinds})}"
        )
    return [source(kind, path, choice.separator_of(kind)) for kind in kinds for path in found[kind.kind]]


def lying_there(folder: Path, kinds: Sequence[FileKind]) -> list[FileKind]:
    """Returns those kinds that the folder has a file of."""
    return [kind for kind in kinds if _paths(folder, kind)]


def source(kind: FileKind, path: Path, separator: str | None = None) -> Source:
    """One file, looked into: what is no CSV file, or is separated otherwise, is refused before a byte is sent."""
    if separator is not None and separator not in formats.SEPARATORS:
        known = ", ".join(map(repr, formats.SEPARATORS))
        raise WrongUsage(f"{separator!r} is no separator that can be read; there are {known}")
    where = "standard input" if str(path) == STANDARD_INPUT else str(path)
    made, head = _made(kind, path, separator)
    if not head:
        raise WrongUsage(f"{where} is empty; it needs its header line at least")
    formats.refuse_other_kinds(where, head)
    if wanted := separator or kind.separator:
        formats.refuse_other_separators(where, kind.kind, head, kind.columns, wanted)
    return made


def upload_name(kind: FileKind, path: Path) -> str:
    """Returns the name that a file has in its session."""
    if not kind.is_folder:
        return kind.filename
    return f"{kind.kind}/{'standard-input.csv' if str(path) == STANDARD_INPUT else path.name}"


def _standard_input() -> tuple[BinaryIO, bytes]:
    """What is piped in, and how it begins."""
    try:
        number = sys.stdin.fileno()
    # Where it is closed sys.stdin is None, and descriptor 0 may be any file or socket that was opened since.
    except (AttributeError, ValueError):
        raise WrongUsage("standard input is closed; pipe a file in, or give the path of one") from None
    try:
        return piped(cast("BinaryIO", Descriptor(number)))
    except OSError as error:
        raise WrongUsage(f"standard input: {error.strerror}; pipe a file in, or give the path of one") from None


def _made(kind: FileKind, path: Path, separator: str | None) -> tuple[Source, bytes]:
    """The source and how its content begins."""
    name = upload_name(kind, path)
    if str(path) == STANDARD_INPUT:
        stream, head = _standard_input()
        return Stream(kind, name, separator, None, lambda: stream, "standard input"), head
    try:
        # Before it is opened: a named pipe that nobody writes to would hold us there.
        if path.exists() and not path.is_file() and not path.is_dir():
            raise WrongUsage(
                f"{path} is no regular file, and cannot be read twice; pipe it in with --file {kind.kind}=-"
            )
        print_, mark = Fingerprint.of(path), mark_of(path)
        with path.open("rb") as file:
            head = file.read(formats.HEAD_BYTES)
            packing = formats.packing_of(head)
            if packing is None:
                return PlainFile(kind, name, path, separator, print_, mark), head
        with formats.unpacked(path, packing) as content:
            head = content.read(formats.HEAD_BYTES)
    except formats.DAMAGE as error:
        raise WrongUsage(f"{path} cannot be unpacked: {error}; make it again") from None
    except OSError as error:
        raise WrongUsage(f"{error.filename or path}: {error.strerror}; make it readable") from None

    def content_of() -> BinaryIO:
        return formats.unpacked(path, packing)

    def check() -> None:
        check_unchanged(path, mark, print_)

    return Stream(kind, name, separator, print_, content_of, str(path), check), head


def mark_of(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def check_unchanged(path: Path, mark: tuple[int, int], fingerprint: Fingerprint) -> None:
    """Refuses to go on with a file that is not what it was when it was found."""
    try:
        size, _ = now = mark_of(path)
        if now == mark and Fingerprint.of(path).is_same_file(fingerprint):
            return
    except OSError as error:
        raise _vanished(path, error) from None
    was, how = mark[0], "was written to"
    if size != was:
        how = f"{'grew' if size > was else 'became shorter'}, from {was} to {size} bytes,"
    raise WrongUsage(
        f"{path} {how} while it was sent, so no answer was made of it; wait until it is whole, then begin again with "
        "--fresh (in Python: in another session)"
    )


def _vanished(path: Path, error: OSError) -> WrongUsage:
    return WrongUsage(
        f"{path}: {error.strerror} while it was sent; put the same file back and go on with --resume, or begin again "
        "with --fresh"
    )


def _paths(folder: Path, kind: FileKind) -> list[Path]:
    if single := _plain_or_packed(folder / kind.filename):
        return [single]
    for name in dict.fromkeys((kind.filename, kind.kind, Path(kind.filename).stem)):
        if paths := csv_files(folder / name):
            if len(paths) > 1 and not kind.is_folder:
                raise WrongUsage(f"{folder / name} has {len(paths)} files, and {kind.kind} is one; leave one there")
            return paths
    return []


def _plain_or_packed(path: Path) -> Path | None:
    """The plain file, where both are there."""
    candidates = (path.with_name(path.name + suffix) for suffix in ("", *formats.SUFFIXES))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def csv_files(folder: Path) -> list[Path]:
    """All that are in a folder, plain or packed; of one that is there both ways, the plain one."""
    found = sorted(path for suffix in ("", *formats.SUFFIXES) for path in folder.glob(f"*.csv{suffix}"))
    names = dict.fromkeys(formats.without_suffix(path.name) for path in found if path.is_file())
    return [path for name in names if (path := _plain_or_packed(folder / name))]


def _nearest(folder: Path, missing: Sequence[FileKind], wanted: Collection[str]) -> str:
    """What lies there under a similar name: `Ratings.CSV`, `ratings (1).csv`."""
    try:
        names = {entry.name.lower(): entry.name for entry in os.scandir(folder) if entry.name not in wanted}
    except OSError:
        return ""
    told = ""
    for kind in missing:
        longer = [name for name in names if name.startswith(Path(kind.filename).stem.lower())]
        if near := get_close_matches(kind.filename.lower(), longer or names, 1, 0.0 if longer else ALIKE):
            name = names[near[0]]
            option = shlex.quote(f"{kind.kind}={folder / name}")
            told += f"; {name} is there: if that is it, rename it to {kind.filename} or give --file {option}"
    return told
