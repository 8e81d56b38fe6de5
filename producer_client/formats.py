"""What a file is, by its first bytes: CSV, packed CSV, or something else, which is named with what to do about it.

Invariant: a file is refused here only where every gateway would refuse it, too. So whatever cannot be told is sent.
"""

import csv
import gzip
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, cast

from producer_client.errors import WrongUsage

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Packing = Literal["gzip", "zstd"]

HEAD_BYTES: Final = 64 * 1024  # as long as a header line may be
SUFFIXES: Final = (".gz", ".zst")  # behind .csv
SEPARATORS: Final = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}  # and how the command line writes them
DAMAGE: Final = (gzip.BadGzipFile, EOFError, zlib.error, zstd.ZstdError)

_GZIP, _ZSTD, _ZSTD_SKIPPABLE = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"
_SAVE_AS_CSV = "open it in a spreadsheet and save it as CSV UTF-8"
_UTF_8 = "save it as UTF-8, for example with iconv -f {0} -t UTF-8"


@dataclass(frozen=True, slots=True)
class OtherKind:
    """A format that is no CSV: how it begins, what it is called, and what to do with it."""

    begins: Callable[[bytes], bool]
    name: str
    advice: str


def _magic(*starts: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(starts)


def _zip_with(*parts: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(b"PK\x03\x04") and any(part in head for part in parts)


def _page(head: bytes) -> bool:
    return head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html"))


def _every_second_is_zero(first: int) -> Callable[[bytes], bool]:
    """UTF-16 without a byte order mark: of a header in Latin letters every second byte is 0."""
    return lambda head: len(head) >= 8 and set(head[first:64:2]) == {0} and 0 not in head[1 - first : 64 : 2]


# The first that fits is named: UTF-32 begins as UTF-16 does, and a workbook as any zip archive.
OTHER_KINDS: Final = (
    OtherKind(_zip_with(b"[Content_Types].xml", b"xl/"), "an Excel workbook", _SAVE_AS_CSV),
    OtherKind(_zip_with(b"mimetypeapplication/vnd.oasis"), "an OpenDocument file", _SAVE_AS_CSV),
    OtherKind(_magic(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "an old Excel workbook", _SAVE_AS_CSV),
    OtherKind(_magic(b"PK\x03\x04", b"PK\x05\x06"), "a zip archive", "unpack it and send the CSV file that is in it"),
    OtherKind(_magic(b"PAR1"), "Parquet", "write it as CSV, for example with pandas.read_parquet and to_csv"),
    OtherKind(_magic(b"ARROW1"), "an Arrow file", "write it as CSV, for example with pandas.read_feather and to_csv"),
    OtherKind(_magic(b"\xff\xff\xff\xff"), "an Arrow stream", "write it as CSV with pyarrow.csv.write_csv"),
    OtherKind(
        _magic(b"BZh"), "packed with bzip2", "unpack it with bunzip2; .csv.gz and .csv.zst are taken as they are"
    ),
    OtherKind(
        _magic(b"\xfd7zXZ\0"), "packed with xz", "unpack it with unxz; .csv.gz and .csv.zst are taken as they are"
    ),
    OtherKind(_magic(b"7z\xbc\xaf\x27\x1c"), "a 7z archive", "unpack it and send the CSV file that is in it"),
    OtherKind(_magic(b"Rar!\x1a\x07"), "a rar archive", "unpack it and send the CSV file that is in it"),
    OtherKind(lambda head: head[257:262] == b"ustar", "a tar archive", "unpack it and send the CSV file that is in it"),
    OtherKind(_magic(b"%PDF-"), "a PDF", "send the CSV file that it was made from"),
    OtherKind(_magic(b"SQLite format 3\0"), "a SQLite database", "write its table as CSV"),
    OtherKind(_page, "a web page", "download it again: this may be a page that asks for a login"),
    OtherKind(_magic(b"\xff\xfe\0\0", b"\0\0\xfe\xff"), "text in UTF-32", _UTF_8.format("UTF-32")),
    OtherKind(_magic(b"\xff\xfe", b"\xfe\xff"), "text in UTF-16", _UTF_8.format("UTF-16")),
    OtherKind(_every_second_is_zero(1), "text in UTF-16", _UTF_8.format("UTF-16LE")),
    OtherKind(_every_second_is_zero(0), "text in UTF-16", _UTF_8.format("UTF-16BE")),
)


def packing_of(head: bytes) -> Packing | None:
    """Tells by the first bytes how a file is packed; its name may lie."""
    if head.startswith(_GZIP):
        return "gzip"
    is_skippable = head[1:4] == _ZSTD_SKIPPABLE and 0x50 <= head[0] <= 0x5F  # pzstd begins with such a frame
    return "zstd" if head.startswith(_ZSTD) or is_skippable else None


def unpacked(file: Path | BinaryIO, packing: Packing) -> BinaryIO:
    """Gives what is in a packed file, all of its members one behind the other. Reading may raise one of DAMAGE."""
    return cast("BinaryIO", gzip.open(file, "rb") if packing == "gzip" else zstd.open(file, "rb"))


def without_suffix(name: str) -> str:
    """ratings.csv.gz is ratings.csv, packed."""
    for suffix in SUFFIXES:
        if name.lower().endswith(f".csv{suffix}"):
            return name[: -len(suffix)]
    return name


def refuse_other_kinds(where: str, head: bytes) -> None:
    """Refuses what is no CSV file. `where` names it, `head` is how it begins, unpacked."""
    for other in OTHER_KINDS:
        if other.begins(head):
            raise WrongUsage(f"{where} is {other.name}, and a CSV file in UTF-8 is wanted; {other.advice}")


def refuse_other_separators(where: str, kind: str, head: bytes, columns: Sequence[str], separator: str) -> None:
    """Refuses a header in which another separator would find all the columns that are wanted."""
    text = head.decode("utf-8-sig", "ignore")
    first, _, rest = text.partition("\n")
    is_marked = first.strip().strip('"').lower().startswith("sep=")
    header = rest if is_marked else text
    fits = next((each for each in (separator, *SEPARATORS) if _has(header, columns, each)), separator)
    written = SEPARATORS[fits]
    advice = f"give --separator {kind}={written} (for all files: --separator {written}; in Python: separator={fits!r})"
    if is_marked:
        also = "" if fits == separator else f" and {advice}"
        line = first.strip()[:20]
        raise WrongUsage(f"{where} begins with {line!r}, a line that only Excel reads; remove it{also}")
    if fits != separator:
        raise WrongUsage(
            f"{where}: its header is separated by {SEPARATORS[fits]}, and {SEPARATORS[separator]} is expected; {advice}"
        )


def _has(text: str, columns: Sequence[str], separator: str) -> bool:
    """Whether the header line names all these columns, if fields end at this separator."""
    try:
        names = next(filter(None, csv.reader(text.splitlines(keepends=True)[:20], delimiter=separator)), [])
    except csv.Error:
        return False
    return set(columns) <= {name.strip() for name in names}
