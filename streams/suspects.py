"""Records that may be what ends workers: noted while in hand, run alone after a crash, set aside after a few.

Invariant: a record is set aside only if workers died while they ran it and nothing else, time after time with nothing
in between: CRASHES times for sure by its fault (a crash in native code, out of memory, too long, an agent that raised),
or KILLS times in a row by who knows what. A kill from outside is of the second kind and hits anything: a worker that
dies while it does something else acquits the record.

What a process has in hand is in a file of its folder. After a death that was surely the fault of something in hand, all
of that is suspected; after any other, what was in hand at the death before, too. So a kill from outside costs nothing.
The counts are in the metadata of the offset that is committed before the record runs alone: whoever owns the partition
next goes on counting, and the next commit forgets them.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from faust.types import TP, Message

from cauce.handling import KILLED, NO_DEATH, NOWHERE, Death, Handling

log = logging.getLogger(__name__)

CRASHES: Final = 3
KILLS: Final = 10  # the chance of a random kill to hit the one record, to the tenth power

OnPoison = Callable[[Message, str], Message | None]


@dataclass(frozen=True, slots=True)
class Note:
    """A record of a partition that workers died of, perhaps."""

    offset: int
    crashes: int = 0
    kills: int = 0
    is_running: bool = False  # alone, since the commit that says so
    last: str = ""

    @property
    def reason(self) -> str:
        """Why it must not run again; empty if it may."""
        if self.crashes < CRASHES and self.kills < KILLS:
            return ""
        times = max(self.crashes, self.kills)
        return f"this record ended the worker {times} times, alone (last: {self.last}); it was set aside"


@dataclass(frozen=True, slots=True)
class Label:
    """The metadata of a committed offset: whose it is (a transactional.id), and a note where there is a suspect."""

    owner: str
    note: Note | None = None
    is_of_a_commit: bool = True  # else nothing was ever committed, or Kafka has forgotten it

    def text(self) -> str:
        return json.dumps({"owner": self.owner, "note": asdict(self.note)}) if self.note else self.owner

    @classmethod
    def of(cls, offset: int, text: str | None) -> Self:
        return cls.read(text) if offset >= 0 else cls("", is_of_a_commit=False)

    @classmethod
    def read(cls, text: str | None) -> Self:
        if not (text or "").startswith("{"):
            return cls(text or "")
        fields: dict[str, Any] = json.loads(text or "")
        return cls(fields["owner"], Note(**fields["note"]))


def judged(note: Note, is_ours: bool, partition: str, death: Death) -> Note:
    """What to think of a suspect now that its partition is ours again, or new to us; `death` is how we ended last. What
    others died of they do not tell us: they count it themselves when the partition comes back to them."""
    died_of_it = death.alone == (partition, note.offset)
    if died_of_it and death.is_certain:
        note = replace(note, crashes=note.crashes + 1, last=death.how)
    elif is_ours and not died_of_it:
        note = replace(note, kills=0)
    elif is_ours or note.is_running:
        note = replace(note, kills=note.kills + 1, last=note.last or KILLED)
    return replace(note, is_running=False)


class Suspects:
    """What this worker has in hand, and the records of its partitions that it does not trust. Empty in good times."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._records: set[tuple[TP, int]] = set()
        self._notes: dict[TP, Note] = {}
        self._death = NO_DEATH
        self._settled: set[TP] = set()  # partitions with a commit of ours: what we died of says nothing new of them
        self._handling: Handling | None = None
        self._is_blamed = False
        self._names: dict[TP, str] = {}
        self._slots: dict[Message, int] = {}

    def open(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._handling = Handling(folder, self._owner)
        self._handling.catch_crashes()
        self._death = self._handling.last
        if self._death.suspects:
            records = [f"{name}@{at}" for name, at in sorted(self._death.suspects)]
            log.warning(
                "the last process may have died of what it had in hand, each record will run alone once",
                extra={"records": records, "how": self._death.how},
            )

    def __bool__(self) -> bool:
        return bool(self._records)

    def __contains__(self, message: Message) -> bool:
        return (message.tp, message.offset) in self._records

    # ---- what is in hand; called for every event

    def noted(self, message: Message) -> int:
        """It is in hand until `passed`. Returns where that is noted."""
        return NOWHERE if self._handling is None else self._handling.begin(self._name(message.tp), message.offset)

    def passed(self, slot: int) -> None:
        if self._handling is not None:
            self._handling.end(slot)

    def begun(self, message: Message) -> None:
        self._slots[message] = self.noted(message)

    def finished(self, message: Message) -> None:
        self.passed(self._slots.pop(message, NOWHERE))
        if self._records and message in self:
            self._acquit(message)

    def _name(self, tp: TP) -> str:
        name = self._names.get(tp)
        if name is None:
            name = self._names[tp] = name_of(tp)
        return name

    # ---- the end of this process

    def blame(self, error: BaseException, message: Message | None = None) -> None:
        """It is the fault of what is in hand, and of this record in particular."""
        if self._handling is not None:
            if message is not None:
                self.begun(message)
            self._is_blamed = True
            self._handling.blame(f"{type(error).__name__}: {error}")

    def pardon(self) -> None:
        """Unless it was blamed, what is in hand has nothing to do with the end."""
        if self._handling is not None and not self._is_blamed:
            self._handling.pardon()

    # ---- partitions come and go, suspects are run

    def assigned(self, positions: Mapping[TP, int], labels: Mapping[TP, Label]) -> None:
        """Judge by what the former owners left, and by what we had in hand when we died."""
        self._records.clear()
        self._notes.clear()
        for tp, position in positions.items():
            note, name, is_ours = labels[tp].note, name_of(tp), labels[tp].owner == self._owner
            death = NO_DEATH if tp in self._settled else self._death
            if note is not None and note.offset >= position:
                self._notes[tp] = note if is_ours and tp in self._settled else judged(note, is_ours, name, death)
                self._records.add((tp, note.offset))
            self._records.update((tp, at) for where, at in death.suspects if where == name and at >= position)

    def label(self, tp: TP) -> str:
        """What goes along with an offset that is committed now."""
        self._settled.add(tp)
        return Label(self._owner, self._notes.get(tp)).text()

    def about_to_run(self, message: Message) -> str:
        """To be committed before it runs alone. Returns why it must not, if so."""
        note = self._notes.get(message.tp)
        if note is None or note.offset != message.offset:
            note = Note(message.offset)
        self._notes[message.tp] = replace(note, is_running=True)
        return note.reason

    def runs_alone(self, message: Message) -> None:
        if self._handling is not None:
            self._handling.begin_alone(self._name(message.tp), message.offset)

    def ran_alone(self) -> None:
        if self._handling is not None:
            self._handling.end_alone()

    def _acquit(self, message: Message) -> None:
        self._records.discard((message.tp, message.offset))
        note = self._notes.get(message.tp)
        if note is not None and note.offset <= message.offset:
            del self._notes[message.tp]


def name_of(tp: TP) -> str:
    return f"{tp.topic}-{tp.partition}"
