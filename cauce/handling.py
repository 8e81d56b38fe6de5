"""What a process has in hand at this moment, in a file that outlives it: the one started next knows what its
predecessor was at when it died, and the one before that, and often of what.

Invariant: the file is a hint and never a truth. Lost, torn or of somebody else, it says nothing, and what is lost is a
clue. To note something is a store into mapped memory: no system call, and the kernel keeps it when the process is
killed. Nothing is synced: after a crash of the machine nobody needs it.
"""

import contextlib
import faulthandler
import logging
import mmap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

MAGIC: Final = 0x32444E4148  # "HAND2"
MAGIC_AT, CERTAIN_AT, OOM_AT, HEADER = 0, 1, 2, 4  # in words of eight bytes
NAME_BYTES: Final = 256  # a topic's name has 249 at most
TEXTS_AT: Final = 8 * HEADER  # two of them: whose file it is, and how the process ended
SLOTS_AT: Final = TEXTS_AT + 2 * NAME_BYTES
SLOT_BYTES: Final = 16 + NAME_BYTES  # whether something is in it, where that is, its name
SLOTS: Final = 64  # things in hand at once; more are not noted. The first is for what is run alone
ALONE: Final = 0
NOWHERE: Final = -1
ALL_SLOTS: Final = 2 * SLOTS  # the second half: what the process before had in hand when it died
SIZE: Final = SLOTS_AT + ALL_SLOTS * SLOT_BYTES
KILLED: Final = "killed, or ended without a word"

Item = tuple[str, int]  # what it belongs to (a partition, an upload), and where it is in that


@dataclass(frozen=True, slots=True)
class Death:
    """How a process ended, and what it had in hand then."""

    in_hand: frozenset[Item]
    alone: Item | None
    how: str
    is_certain: bool  # that it was no kill from outside
    before: frozenset[Item] = frozenset()  # what the process before it had in hand when that died

    def __bool__(self) -> bool:
        return bool(self.in_hand)

    @property
    def suspects(self) -> frozenset[Item]:
        """What it may have died of. A kill from outside hits anything: only what was in hand twice in a row."""
        return self.in_hand if self.is_certain else self.in_hand & self.before


NO_DEATH: Final = Death(frozenset(), None, "", False)


class Handling:
    """One a process. `last` is how its predecessor in the same folder ended."""

    def __init__(self, folder: Path, owner: str) -> None:
        self._file = folder / "in-hand"
        self._crash_file = folder / "last-crash.txt"
        self.last = self._read(owner)
        self._map = self._fresh_map()
        self._words = memoryview(self._map).cast("q")
        self._names = [""] * ALL_SLOTS  # as they are in the file
        self._free = list(range(SLOTS - 1, ALONE, -1))
        for slot, (name, at) in enumerate(self.last.in_hand, start=SLOTS):
            self._put(slot, name, at)
        self._words[OOM_AT] = oom_kills()
        self._write(TEXTS_AT, owner)
        self._words[MAGIC_AT] = MAGIC

    def catch_crashes(self) -> None:
        """Let a crash in native code leave its traceback, which tells it from a kill. Of this process, for good."""
        with contextlib.suppress(OSError):  # no room: then a crash looks like a kill
            self._crashes = self._crash_file.open("w", encoding="utf-8")
            faulthandler.enable(self._crashes)

    def begin(self, name: str, at: int) -> int:
        """It is in hand. Returns the slot to be given back, or NOWHERE."""
        if not self._free:
            return NOWHERE
        slot = self._free.pop()
        self._put(slot, name, at)
        return slot

    def end(self, slot: int) -> None:
        if slot >= 0:
            self._words[word_of(slot)] = 0
            self._free.append(slot)

    def begin_alone(self, name: str, at: int) -> None:
        self._words[OOM_AT] = oom_kills()
        self._put(ALONE, name, at)

    def end_alone(self) -> None:
        self._words[word_of(ALONE)] = 0

    def blame(self, how: str) -> None:
        """The process is about to end because of what it has in hand."""
        self._write(TEXTS_AT + NAME_BYTES, " ".join(how.split()))
        self._words[CERTAIN_AT] = 1

    def pardon(self) -> None:
        """The process is about to end, and what it has in hand has nothing to do with it."""
        for slot in range(SLOTS):
            self._words[word_of(slot)] = 0

    def _put(self, slot: int, name: str, at: int) -> None:
        """Whether something is in the slot is written last."""
        word = word_of(slot)
        if self._names[slot] != name:
            self._names[slot] = name
            self._write(8 * word + 16, name)
        self._words[word + 1] = at
        self._words[word] = 1

    def _write(self, at: int, text: str) -> None:
        self._map[at : at + NAME_BYTES] = text.encode()[:NAME_BYTES].ljust(NAME_BYTES, b"\0")

    def _read(self, owner: str) -> Death:
        try:
            death = read_death(self._file.read_bytes(), owner)
            crash = self._crash_file.read_text(encoding="utf-8", errors="replace")
            self._crash_file.unlink()
        except FileNotFoundError as error:
            if error.filename == str(self._file):
                return NO_DEATH
            crash = ""
        except (OSError, ValueError) as error:
            log.warning("what was in hand last is not known", extra={"reason": str(error), "file": str(self._file)})
            return NO_DEATH
        if crash:
            log.error("the last process crashed in native code", extra={"traceback": crash})
            first = crash.splitlines()[0].removeprefix("Fatal Python error: ")
            return replace(death, how=first[:NAME_BYTES], is_certain=True)
        return death

    def _fresh_map(self) -> mmap.mmap:
        """A new file in the place of the old one: a predecessor that is not quite dead keeps writing to its own. With
        all its blocks, since a store into a file that a full disk cannot extend would kill us."""
        new = self._file.with_suffix(".new")
        try:
            with new.open("w+b") as file:
                file.write(bytes(SIZE))
                file.flush()
                fresh = mmap.mmap(file.fileno(), SIZE)
            new.replace(self._file)
        except OSError as error:
            log.warning("what is in hand cannot be noted; it goes on without", extra={"reason": str(error)})
            return mmap.mmap(-1, SIZE)
        return fresh


def word_of(slot: int) -> int:
    return (SLOTS_AT + slot * SLOT_BYTES) // 8


def read_death(data: bytes, owner: str) -> Death:
    """What the file says of the end of its process. Raises ValueError if it says nothing that can be trusted."""
    if len(data) != SIZE:
        raise ValueError(f"the file has {len(data)} bytes, not {SIZE}")
    words = memoryview(data).cast("q")
    if words[MAGIC_AT] != MAGIC or text_at(data, TEXTS_AT) != owner:
        raise ValueError("the file is of another process, or damaged")
    items: dict[int, Item] = {}
    for slot in range(ALL_SLOTS):
        word = word_of(slot)
        if words[word] not in (0, 1):
            raise ValueError(f"slot {slot} is damaged")
        if words[word]:
            items[slot] = (text_at(data, 8 * word + 16), words[word + 1])
    in_hand, before = (
        frozenset(items[slot] for slot in half if slot in items) for half in (range(SLOTS), range(SLOTS, ALL_SLOTS))
    )
    how, is_certain = KILLED, False
    if words[CERTAIN_AT]:
        how, is_certain = text_at(data, TEXTS_AT + NAME_BYTES), True
    elif oom_kills() > words[OOM_AT] >= 0:
        how, is_certain = "out of memory", True
    return Death(in_hand, items.get(ALONE), how, is_certain, before)


def text_at(data: bytes, at: int) -> str:
    return data[at : at + NAME_BYTES].rstrip(b"\0").decode(errors="replace")


def oom_kills() -> int:
    """How often the kernel has killed a process of this machine for its memory; -1 where it does not tell."""
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    except (OSError, StopIteration, ValueError):
        return -1
