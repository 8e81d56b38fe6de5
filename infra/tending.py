"""One slot, tended: its process is started, watched, ended when it is dead in all but name, and started again.

Invariants: a process that is paused, hangs or is stuck is killed, and gone, before another one starts in its place. Who
falls again and again is started ever more seldom, and that is shown. Who asks the operator for a change (exit code 2)
is not started again.
"""

import logging
import time
from dataclasses import dataclass
from typing import Final

from cauce.errors import CauceError
from cauce.process import EXIT_CONFIG
from infra.events import Events
from infra.health import Doctor, Health
from infra.processes import Process, State, how_it_ended
from infra.slots import Slot

log = logging.getLogger(__name__)

PAUSED_SECONDS: Final = 5.0  # a debugger's breakpoint is shorter; Kafka has given its partitions to others by then
MUTE_SECONDS: Final = 15.0  # /livez: seven looks of 2 s in a row without an answer
START_SECONDS: Final = 120.0  # about 3 s here; recovering a log or a loaded machine takes many times that
STUCK_SECONDS: Final = 30.0  # beyond the time after which a worker itself says that it is
QUICK_SECONDS: Final = 10.0  # who lives shorter than this fell quickly
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
LOOPS: Final = 5  # so many quick falls in a row are a crash loop


@dataclass(slots=True)
class Record:
    """What the next leader has to know of a slot; the rest it sees."""

    role: str
    index: int
    port: int
    restarts: int = 0
    quick_falls: int = 0
    given_up: bool = False
    note: str | None = None
    health_port: int | None = None  # of a gateway: its own port may have all the connections that it takes

    @property
    def asked_port(self) -> int:
        """Where it says how it is."""
        return self.health_port or self.port


class Tended:
    """Called in turns, never from two threads."""

    def __init__(self, slot: Slot, record: Record, doctor: Doctor, events: Events) -> None:
        self.slot = slot
        self.record = record
        self._doctor = doctor
        self._events = events
        self._process = slot.process  # who held the slot when last seen; at first: under the leader before us
        self._mourned: Process | None = None  # whose end was told
        self._began_at = 0.0  # long ago
        self._is_awaited = False  # we started it, and it is not ready yet
        self._gone_at: float | None = None
        self._due_at = 0.0
        self._wrong_since: tuple[str, float] | None = None
        self.is_ready = False

    def tend(self, *, may_start: bool = True, is_blameless: bool = False) -> bool:
        """One turn; whether something is to be written down. Blameless: what it needs is away, a fall says nothing."""
        now = time.monotonic()
        if not self.slot.is_held:
            return self._tend_free(now, may_start=may_start, is_blameless=is_blameless)
        process = self.slot.process
        if process is None or not process.alive:
            return False  # the holder is about to say who it is
        changed = process != self._process
        if changed:
            if self._process not in (None, self._mourned):
                self._mourn_replaced(now, is_blameless=is_blameless)
            self._meet(process, now)
        return self._tend_held(now, is_blameless=is_blameless) or changed

    # ---- somebody is there

    def _meet(self, process: Process, now: float) -> None:
        self._process, self._began_at = process, now
        self._wrong_since, self.is_ready = None, False
        self._doctor.forget(self.slot)

    def _mourn_replaced(self, now: float, *, is_blameless: bool) -> None:
        """One that was waiting for it has the slot already."""
        self._mourned = self._process
        self._fall(now, is_blameless=is_blameless)
        self.record.restarts += 1
        self._is_awaited = True
        self._tell("started", "was ready to take its place")

    def _tend_held(self, now: float, *, is_blameless: bool) -> bool:
        health = self._doctor.health(self.slot)
        if wrong := self._what_is_wrong(health, now, is_blameless=is_blameless):
            self._kill(wrong)
            return True
        if health is None or health.seen_at < self._began_at or health.is_ready == self.is_ready:
            return self._calm_down(now)
        self.is_ready = health.is_ready
        if self.is_ready and self._is_awaited:
            took = None if self._gone_at is None else now - self._gone_at
            self._gone_at, self._is_awaited = None, False
            self._tell("ready", None, took)
        return True

    def _what_is_wrong(self, health: Health | None, now: float, *, is_blameless: bool) -> str:
        """What has lasted too long, in words; nothing while all is well or may become so."""
        assert self._process is not None
        if self._process.state() is State.PAUSED:
            return self._lasting("it is paused", PAUSED_SECONDS, now)
        if health is None or health.seen_at < self._began_at:
            return ""
        if not health.is_live:
            return self._lasting("it does not answer", MUTE_SECONDS if self.is_ready else START_SECONDS, now)
        if health.is_stuck and not is_blameless:
            return self._lasting("it is stuck", STUCK_SECONDS, now)
        self._wrong_since = None
        return ""

    def _lasting(self, what: str, seconds: float, now: float) -> str:
        if self._wrong_since is None or self._wrong_since[0] != what:
            self._wrong_since = what, now
        return f"{what} for {seconds:.0f} s" if now - self._wrong_since[1] > seconds else ""

    def _kill(self, why: str) -> None:
        log.warning("killed, to be started again", extra={"slot": self.slot.name, "why": why})
        self._tell("killed", why)
        self.slot.kill()

    def _calm_down(self, now: float) -> bool:
        """One that has lived long enough has no past."""
        if not self.record.quick_falls or now - self._began_at < max(QUICK_SECONDS, 2 * self._pause_seconds):
            return False
        self.record.quick_falls, self.record.note = 0, None
        return True

    # ---- nobody is there

    def _tend_free(self, now: float, *, may_start: bool, is_blameless: bool) -> bool:
        if self.slot.is_starting:
            return False
        last = self.slot.process  # it may have come and gone between two turns
        fell = last != self._mourned or self._is_awaited
        if fell:
            if last != self._process:
                self._process, self._began_at = last, now
            self._mourned = last
            self._fall(now, is_blameless=is_blameless)
        if self.record.given_up or not may_start or now < self._due_at:
            return fell
        self._start(now)
        return True

    def _fall(self, now: float, *, is_blameless: bool) -> None:
        lived, code = now - self._began_at, self.slot.exit_code(self._process)
        how = "how is not known" if code is None else how_it_ended(code)
        log.warning("ended", extra={"slot": self.slot.name, "how": how, "lived_seconds": round(lived, 1)})
        self._tell("ended", how)
        self.is_ready = self._is_awaited = False
        self._gone_at = now if self._gone_at is None else self._gone_at
        self._doctor.forget(self.slot)
        if code == EXIT_CONFIG and self.slot.role in {"worker", "gateway"}:
            self.record.given_up = True
            self.record.note = "asks for a change: see its log, then `cauce down` and `cauce up`"
            self._tell("given up", self.record.note)
        elif not is_blameless:
            quick = lived < max(QUICK_SECONDS, 2 * self._pause_seconds)
            self._count(how, now, quick=quick)

    def _count(self, how: str, now: float, *, quick: bool) -> None:
        record = self.record
        record.quick_falls = record.quick_falls + 1 if quick else 0
        self._due_at = now + self._pause_seconds
        record.note = None
        if record.quick_falls >= LOOPS:
            record.note = f"crash loop: fell {record.quick_falls} times in a row, last by {how}; see its log"
            if record.quick_falls == LOOPS:
                self._tell("crash loop", record.note)

    @property
    def _pause_seconds(self) -> float:
        """None before the first start after a long life; then twice as long each time."""
        if not self.record.quick_falls:
            return 0.0
        return min(FIRST_PAUSE_SECONDS * 2.0 ** (self.record.quick_falls - 1), LONGEST_PAUSE_SECONDS)

    def _start(self, now: float) -> None:
        if self._gone_at is not None:
            self.record.restarts += 1
        try:
            self.slot.start()
        except CauceError as error:  # what it takes is not there: a port, Java
            self._gone_at = now if self._gone_at is None else self._gone_at
            self._count(str(error), now, quick=True)
            self.record.note = str(error)
            log.error("cannot be started", extra={"slot": self.slot.name, "reason": str(error)})  # noqa: TRY400
        else:
            self._is_awaited = True
            self._tell("started")

    def _tell(self, what: str, detail: str | None = None, seconds: float | None = None) -> None:
        self._events.tell(self.slot.role, self.slot.index, what, detail, seconds)
