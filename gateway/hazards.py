"""Bytes that end gateways: noted while they are worked on, worked on alone after a crash, refused after a few.

Invariant: an upload is refused only if this replica died CRASHES times, for sure by its fault (a crash in native code,
out of memory), while it worked on that upload and on nothing else, and no byte more of it was committed in between.
Kills from outside make a suspect of what they hit twice in a row, and no more than that.

What is in hand is in a file of the replica's folder, and so are the counts. They are hints: without a folder that can
be written to all of it goes on, and the client's next gateway learns for itself.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from cauce.errors import BadUpload
from cauce.handling import Death, Handling
from cauce.messages import Upload

log = logging.getLogger(__name__)

CRASHES: Final = 3
FILE: Final = "hazards.json"


@dataclass(frozen=True, slots=True)
class Hazard:
    """An upload of which this replica died, how often, and where it was then."""

    offset: int
    crashes: int
    last: str


class Turns:
    """Many at once, or one alone. Who wants to be alone is waited for: others may come without end."""

    def __init__(self) -> None:
        self._at_work = 0
        self._is_alone = False
        self._want_to_be = 0  # alone
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def turn(self, *, alone: bool) -> AsyncIterator[None]:
        self._want_to_be += alone
        try:
            while self._is_alone or (self._at_work if alone else self._want_to_be):
                self._changed.clear()
                await self._changed.wait()
        finally:
            self._want_to_be -= alone
            self._changed.set()
        self._at_work += 1
        self._is_alone = alone
        try:
            yield
        finally:
            self._at_work -= 1
            self._is_alone = False
            self._changed.set()


class Hazards:
    """One a process. Empty in good times; what it costs then is two stores into memory a block."""

    def __init__(self, folder: Path, owner: str) -> None:
        with contextlib.suppress(OSError):  # then there is no file either, and that is said
            folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / FILE
        self._handling = Handling(folder, owner)
        self._turns = Turns()
        self._hazards = judged(self._read(), self._handling.last)
        self._suspects = {name for name, _ in self._handling.last.suspects} | set(self._hazards)
        if self._suspects:
            log.warning(
                "the last process may have died of an upload in hand, each goes on alone at first",
                extra={"uploads": sorted(self._suspects), "how": self._handling.last.how},
            )
            self._write()

    def catch_crashes(self) -> None:
        self._handling.catch_crashes()

    @asynccontextmanager
    async def working_on(self, upload: Upload) -> AsyncIterator[None]:
        """`upload`: as far as it is committed. Raises BadUpload where it must not be gone on with."""
        name = name_of(upload)
        hazard = self._hazards.get(name)
        if hazard is not None and hazard.crashes >= CRASHES and hazard.offset == upload.offset:
            reason = f"what follows ended the gateway {hazard.crashes} times, alone (last: {hazard.last})"
            raise BadUpload(upload.name, upload.line, reason)
        alone = name in self._suspects
        async with self._turns.turn(alone=alone):
            slot = None if alone else self._handling.begin(name, upload.offset)
            if slot is None:
                self._handling.begin_alone(name, upload.offset)
            try:
                yield
            finally:
                if slot is None:
                    self._handling.end_alone()
                else:
                    self._handling.end(slot)

    def got_on(self, upload: Upload) -> None:
        """More of it is committed: whatever it was, it was not that."""
        name = name_of(upload)
        if name in self._suspects:
            self._suspects.discard(name)
            if self._hazards.pop(name, None) is not None:
                self._write()

    def _read(self) -> dict[str, Hazard]:
        try:
            return {name: Hazard(**fields) for name, fields in json.loads(self._file.read_text()).items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            log.warning("what ended this gateway before is not known", extra={"reason": str(error)})
            return {}

    def _write(self) -> None:
        try:
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps({name: asdict(hazard) for name, hazard in self._hazards.items()}))
            new.replace(self._file)
        except OSError as error:
            log.warning("what ended this gateway cannot be noted; it goes on", extra={"reason": str(error)})


def judged(hazards: dict[str, Hazard], death: Death) -> dict[str, Hazard]:
    """With the last end of this replica counted in. Who was not in hand when it ended has nothing to do with it."""
    if death.alone is None or not death.is_certain:
        return hazards
    name, offset = death.alone
    before = hazards.get(name)
    crashes = before.crashes if before is not None and before.offset == offset else 0
    return {**hazards, name: Hazard(offset, crashes + 1, death.how)}


def name_of(upload: Upload) -> str:
    return f"{upload.client_id}/{upload.upload_id}"
