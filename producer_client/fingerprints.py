"""What tells one file from another that has the same name: its size, when it was changed, and a checksum of its ends.

Invariant: these are of the bytes on disk, also of a file that is unpacked on its way. An edit in the middle of a large
file that keeps its size and its time of change is not noticed.
"""

import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

END_BYTES: Final = 64 * 1024  # of the head, and of the tail: two reads, however large the file is


@dataclass(frozen=True, slots=True)
class Fingerprint:
    size: int
    mtime: int  # milliseconds since 1970, which is all that a browser tells of a file
    fingerprint: str  # SHA-256 of the first and the last 64 KiB; of the whole file where it has at most 128 KiB

    @classmethod
    def of(cls, path: Path) -> Self:
        with path.open("rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            return cls(status.st_size, status.st_mtime_ns // 1_000_000, _checksum(file, status.st_size))

    def is_same_file(self, other: "Fingerprint") -> bool:
        """Says whether it is still the same file, wherever it lies now: a copy has another time of change."""
        return (self.size, self.fingerprint) == (other.size, other.fingerprint)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _checksum(file: BinaryIO, size: int) -> str:
    if size <= 2 * END_BYTES:
        return hashlib.sha256(_read(file, 0, size)).hexdigest()
    return hashlib.sha256(_read(file, 0, END_BYTES) + _read(file, size - END_BYTES, END_BYTES)).hexdigest()


def _read(file: BinaryIO, offset: int, length: int) -> bytes:
    """All of these bytes: one read of a file without a buffer may give fewer."""
    file.seek(offset)
    pieces = []
    while length > 0 and (piece := file.read(length)):
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)
