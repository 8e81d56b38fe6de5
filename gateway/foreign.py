"""Says what a file is that is not the CSV that was expected, and what its client can do.

Invariant: it is asked only where a file is refused anyway, so no file that can be read is refused by its first bytes.
"""

import csv
from collections.abc import Sequence
from io import StringIO
from typing import Final

UNPACK: Final = "unpack it first, or send it with `cauce upload`, which unpacks .csv.gz and .csv.zst"
EXPORT: Final = "export it as CSV in UTF-8 first"
AS_UTF8: Final = "save it as UTF-8"
KINDS: Final = (
    (b"\x1f\x8b", "a gzip file", UNPACK),
    (b"\x28\xb5\x2f\xfd", "a zstd file", UNPACK),
    (b"BZh", "a bzip2 file", "unpack it first"),
    (b"\xfd7zXZ\0", "an xz file", "unpack it first"),
    (
        b"PK\x03\x04",
        "a zip file, or an Excel workbook (.xlsx), which is one",
        "unpack it, or save the sheet as CSV UTF-8",
    ),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook (.xls)", "save the sheet as CSV UTF-8"),
    (b"PAR1", "a Parquet file", EXPORT),
    (b"ARROW1", "an Arrow file", EXPORT),
    (b"\xff\xff\xff\xff", "an Arrow stream", EXPORT),
    (b"\xff\xfe", "UTF-16 text", AS_UTF8),
    (b"\xfe\xff", "UTF-16 text", AS_UTF8),
)
SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
FIRST_BYTES: Final = 4096  # NUL bytes stand in every second place of UTF-16, and early in most binary files


def named(first: bytes) -> str:
    """Returns what the file is by its first bytes, and what to do; empty where they do not tell."""
    for magic, what, cure in KINDS:
        if first.startswith(magic):
            return f"this is {what}, not CSV: {cure}"
    if b"\0" in first[:FIRST_BYTES]:
        return f"there are NUL bytes in it: this is UTF-16 text, or no text at all; {AS_UTF8}"
    return ""


def separated(header: str, separator: str, columns: Sequence[str]) -> str:
    """Returns which separator would fit this header line, and what to do; empty where none does."""
    first = header.split("\n", 1)[0].strip().strip('"')
    if first.lower().startswith("sep=") and len(first) == len("sep=;"):
        return f"the first line is {first!r}, which only Excel reads: remove that line"
    for other, what in SEPARATORS.items():
        names = {name.strip() for name in next(csv.reader(StringIO(header, newline=""), delimiter=other), [])}
        if other != separator and names.issuperset(columns):
            said = "a tab" if other == "\t" else repr(other)
            usual = SEPARATORS.get(separator, repr(separator))
            return (
                f"its columns are separated by {what}, not by {usual}: say so with the separator {said} "
                f"(`separator` in Upload-Metadata), or save the file with {usual}"
            )
    return ""
