"""Notes of an upload that is under way, so that a client that was killed can go on: OUT/.cauce-session.json.

Invariant: the note is written before the first byte is sent, and removed once there is nothing to resume. It holds the
session's token: nobody else may read it.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from producer_client.errors import WrongUsage
from producer_client.files import replacing

NAME: Final = ".cauce-session.json"


@dataclass(frozen=True, slots=True)
class Note:
    ticket: dict[str, Any]  # what POST /sessions answered: client id, token, options, files
    gateways: list[str]
    folder: str
    fingerprints: dict[str, list[int]]  # by upload: the rest of a file that was changed would spoil the answers


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


def remove(out: Path) -> None:
    (out / NAME).unlink(missing_ok=True)
