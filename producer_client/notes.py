"""Notes of an upload that is under way, so that a client that was killed can go on: OUT/.cauce-session.json.

Invariant: the note is written before the first byte is sent, and removed once there is nothing to resume. It holds the
session's token: nobody else may read it.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from producer_client.errors import WrongUsage
from producer_client.files import replacing
from producer_client.fingerprints import Fingerprint
from producer_client.folder import Source

NAME: Final = ".cauce-session.json"


@dataclass(frozen=True, slots=True)
class Note:
    ticket: dict[str, Any]  # what POST /sessions answered: client id, token, options, files
    gateways: list[str]
    folder: str
    # By upload, None for standard input: the rest of a file that was changed would spoil the answers.
    fingerprints: dict[str, dict[str, Any] | None]
    separators: dict[str, str] = field(default_factory=dict)
    # All was tried, and these were refused: --resume sends them again, put right; without it, all begins again.
    refused: list[str] = field(default_factory=list)

    @property
    def can_go_on(self) -> bool:
        """Says whether --resume can go on: of what was piped in, nobody has the beginning."""
        return all(noted is not None or name in self.refused for name, noted in self.fingerprints.items())

    def is_of(self, source: Source) -> bool:
        """Says whether a file is still the one that was noted."""
        noted, now = self.fingerprints.get(source.name), source.fingerprint
        return noted is not None and now is not None and Fingerprint(**noted).is_same_file(now)


def fingerprints_of(sources: Sequence[Source]) -> dict[str, dict[str, Any] | None]:
    return {source.name: source.fingerprint.to_json() if source.fingerprint else None for source in sources}


def read(out: Path) -> Note | None:
    path = out / NAME
    try:
        return Note(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise WrongUsage(f"{path} is not what Cauce wrote; remove it") from None
    except OSError as error:
        raise WrongUsage(f"{path}: {error.strerror}; make it readable or choose another --out") from None


def write(out: Path, note: Note) -> None:
    with replacing(out / NAME, mode=0o600) as file:
        file.write(json.dumps(asdict(note), indent=2).encode() + b"\n")


def mark_refused(out: Path, names: Iterable[str]) -> None:
    """Notes that all was tried, and these files were refused."""
    if note := read(out):
        write(out, replace(note, refused=sorted(names)))


def mark_sent(out: Path, names: Collection[str]) -> None:
    """Notes that these were sent, or refused: what was piped in is not needed again."""
    note = read(out)
    if note and not note.can_go_on:
        kept = {name: noted for name, noted in note.fingerprints.items() if noted is not None or name not in names}
        write(out, replace(note, fingerprints=kept))


def remove(out: Path) -> None:
    (out / NAME).unlink(missing_ok=True)
