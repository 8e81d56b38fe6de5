"""`cauce chaos`: kill or pause processes of a running cluster, and time how long it takes until they are back.

Invariants, the guard rails: only what is ready is hit. A broker only while all brokers are ready and every partition
has all its copies, so that one is missing at most and writes go on. A supervisor only while another one lives, and not
by SIGTERM, which would end the cluster. Only processes of this home, known by pid and start time.
"""

import contextlib
import json
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from datetime import time as time_of_day
from pathlib import Path
from typing import Final

from cauce.errors import ConfigError
from infra.cluster import behind
from infra.processes import Process, State
from infra.scrape import gauges
from infra.state import Member, Running, is_supervised

LOG_FILE: Final = "chaos.jsonl"
ROLES: Final = ("worker", "gateway", "broker", "supervisor")
SIGNALS: Final = {"KILL": signal.SIGKILL, "STOP": signal.SIGSTOP, "TERM": signal.SIGTERM}
LOOK_SECONDS: Final = 0.1
PATIENCE_SECONDS: Final = 300.0  # after this a process that is not back is reported as lost

Tell = Callable[[str], None]


@dataclass(slots=True)
class Blow:
    """One process was hit. Seconds count from the blow: a new process ready; it made progress."""

    at: str
    role: str
    index: int
    pid: int
    sign: str
    ready_seconds: float | None = None
    progress_seconds: float | None = None
    is_lost: bool = False

    @property
    def name(self) -> str:
        return f"{self.role} {self.index}"

    def line(self) -> str:
        ready = "" if self.ready_seconds is None else f", ready after {self.ready_seconds:.1f} s"
        progress = "" if self.progress_seconds is None else f", at work after {self.progress_seconds:.1f} s"
        return f"SIG{self.sign} {self.name}, pid {self.pid}{ready}{progress}{', NOT BACK' if self.is_lost else ''}"


@dataclass(frozen=True, slots=True)
class Window:
    """Hours of the day in which blows may fall, in local time; across midnight, too."""

    begin: time_of_day
    end: time_of_day

    @classmethod
    def parse(cls, text: str) -> "Window":
        try:
            begin, end = (time_of_day.fromisoformat(part.strip()) for part in text.split("-"))
        except ValueError:
            raise ConfigError(f"{text!r} is no window of the day; write it as 09:00-17:30") from None
        return cls(begin, end)

    def has(self, moment: time_of_day) -> bool:
        inside = self.begin <= moment < self.end
        return inside if self.begin <= self.end else not self.end <= moment < self.begin


class Chaos:
    """Blows on one home. Any thread may call `strike`; `watch` times what comes back."""

    def __init__(self, home: Path, tell: Tell) -> None:
        self._home = home
        self._tell = tell
        self._open: list[tuple[Blow, Process, float]] = []
        self.blows: list[Blow] = []

    # ---- whom

    def targets(self, roles: Sequence[str] = ROLES) -> list[Member]:
        """Who may be hit now."""
        running = Running.read(self._home)
        if running is None or not is_supervised(self._home):
            raise ConfigError(f"no cluster runs in {self._home}; start one with: cauce up --detach --home {self._home}")
        under_way = {(blow.role, blow.index) for blow, _, _ in self._open}
        ready = [
            member
            for member in running.of_role(*roles)
            if (member.role, member.index) not in under_way and member.state is State.READY
        ]
        supervisors = [member for member in running.of_role("supervisor") if member.state is State.READY]
        return [
            member
            for member in ready
            if (member.role != "broker" or self._may_lose_a_broker(running))
            and (member.role != "supervisor" or len(supervisors) > 1)
        ]

    def _may_lose_a_broker(self, running: Running) -> bool:
        brokers = running.of_role("broker")
        return (
            len(brokers) > 2
            and all(member.state is State.READY for member in brokers)
            and not any(blow.role == "broker" for blow, _, _ in self._open)
            and not behind(running.bootstrap or "")
        )

    def choose(self, roles: Sequence[str], chance: random.Random) -> Member | None:
        """A role first, so that the few brokers are hit as often as the many workers; None while nobody may be hit."""
        for role in chance.sample(list(roles), len(roles)):
            if found := self.targets([role]):
                return chance.choice(found)
        return None

    # ---- hit, and see it come back

    def strike(self, member: Member, sign: signal.Signals) -> Blow:
        process = member.process
        if process is None or not process.alive:
            raise ConfigError(f"{member.role} {member.index} does not run; `cauce status` shows who does")
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        blow = Blow(at, member.role, member.index, process.pid, sign.name.removeprefix("SIG"))
        process.send(sign)
        self.blows.append(blow)
        self._open.append((blow, process, time.monotonic()))
        self._tell(blow.line())
        return blow

    @property
    def is_settled(self) -> bool:
        return not self._open

    def watch(self) -> None:
        """Look once at all that are not back yet."""
        running = Running.read(self._home)
        members = {(member.role, member.index): member for member in running.members} if running else {}
        still = []
        for blow, process, began in self._open:
            member = members.get((blow.role, blow.index))
            if member is not None:
                self._look(blow, process, began, member, running)
            if time.monotonic() - began > PATIENCE_SECONDS:
                blow.is_lost = True
            if blow.progress_seconds is None and not blow.is_lost:
                still.append((blow, process, began))
            else:
                self._tell(blow.line())
                self._write(blow)
        self._open = still

    def _look(self, blow: Blow, process: Process, began: float, member: Member, running: Running | None) -> None:
        if blow.ready_seconds is None:
            if member.process == process or member.state is not State.READY:
                return
            blow.ready_seconds = round(time.monotonic() - began, 3)
        bootstrap = running.bootstrap if running else None
        if _makes_progress(member, bootstrap or ""):
            blow.progress_seconds = round(time.monotonic() - began, 3)

    def _write(self, blow: Blow) -> None:
        with contextlib.suppress(OSError), (self._home / LOG_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(blow)) + "\n")

    # ---- at random

    def run(
        self, roles: Sequence[str], signs: Sequence[str], every_seconds: float, chance: random.Random,
        ending: threading.Event, window: Window | None = None,
    ) -> None:  # fmt: skip
        """Blow after blow, about so often, until told to end; then until all are back."""
        due = time.monotonic()
        while not ending.is_set() or not self.is_settled:
            self.watch()
            is_due = not ending.is_set() and time.monotonic() >= due
            if is_due and (window is None or window.has(datetime.now().astimezone().time())):
                victim = self.choose(roles, chance)
                if victim is not None:
                    self.strike(victim, SIGNALS[chance.choice(_fitting(victim, signs))])
                due = time.monotonic() + chance.uniform(0.5, 1.5) * every_seconds
            time.sleep(LOOK_SECONDS)


def _fitting(victim: Member, signs: Sequence[str]) -> list[str]:
    """SIGTERM asks a leader to bring all of it down, which is no fault to recover from."""
    return [sign for sign in signs if victim.role != "supervisor" or sign != "TERM"] or ["KILL"]


def _makes_progress(member: Member, bootstrap: str) -> bool:
    """A worker has committed, or has nothing to do; a broker has all its copies again; others work when ready."""
    match member.role:
        case "worker":
            told = gauges(member.port)
            return told.get("cauce_commits_total", 0) > 0 or told.get("cauce_lag_records", 1) == 0
        case "broker":
            return not behind(bootstrap)
        case _:
            return True


def parse_roles(text: str) -> list[str]:
    """workers,gateways,… in the plural, as one says it."""
    roles = [word.strip().removesuffix("s") for word in text.split(",")]
    for role in roles:
        if role not in ROLES:
            raise ConfigError(f"there are no {role}s to kill; there are {', '.join(f'{each}s' for each in ROLES)}")
    return roles


def parse_signals(text: str) -> list[str]:
    signs = [word.strip().upper().removeprefix("SIG") for word in text.split(",")]
    for sign in signs:
        if sign not in SIGNALS:
            raise ConfigError(f"there is no signal {sign} here; there are {', '.join(SIGNALS)}")
    return signs


def parse_seconds(text: str) -> float:
    """90, 90s, 30m, 2h."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text and text[-1] in units else (text, 1.0)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"{text!r} is no time; write it as 90, 90s, 30m or 2h")
    return seconds
