"""What happened in a home, one JSON object a line in HOME/events.jsonl: for people, the page and the soak to read.

Only the leader writes; a line is written at once and whole. What is older than the last two files' worth is forgotten.
"""

import contextlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

FILE: Final = "events.jsonl"
FILE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Event:
    at: str  # ISO 8601, UTC
    role: str
    index: int
    what: str  # started, ready, ended, killed, given up, leads, stopping
    detail: str | None = None
    seconds: float | None = None  # ready: since it was gone


class Events:
    def __init__(self, home: Path) -> None:
        self._file = home / FILE

    def tell(self, role: str, index: int, what: str, detail: str | None = None, seconds: float | None = None) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event = Event(at, role, index, what, detail, None if seconds is None else round(seconds, 3))
        with contextlib.suppress(OSError):  # a full disk: the log of the supervisor has it, too
            if self._file.exists() and self._file.stat().st_size > FILE_BYTES:
                self._file.replace(self._file.with_suffix(".jsonl.1"))
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(event)) + "\n")


def read(home: Path, last: int | None = None) -> list[Event]:
    """Oldest first. A line that was cut short by a full disk is left out."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for line in (home / FILE).read_text(encoding="utf-8", errors="replace").splitlines()[-(last or 0) :]:
            with contextlib.suppress(ValueError, TypeError):
                found.append(Event(**json.loads(line)))
    return found
