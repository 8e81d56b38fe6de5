"""A supervisor: `python -m infra.supervisor HOME INDEX`. One of them leads; the others wait to.

The leader fills the slots of the home and tends them (infra/tending.py): brokers first, then workers and gateways, and
the other supervisors from the start. What it knows beyond the slots themselves is in HOME/cluster.json, so that whoever
leads next goes on at once and restarts nothing that runs.

It leads until the wish is to be down (`cauce down`, SIGTERM to the leader, the end of an owner): then it ends all of it
in order, and itself last. A leader that dies on the way down is followed by one that goes on with that.
"""

import logging
import logging.config
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final

from cauce import logs
from cauce.errors import CauceError, ConfigError
from cauce.settings import Settings
from infra.broker import STOP_SECONDS
from infra.cluster import counted_on
from infra.events import Events
from infra.health import Doctor
from infra.leadership import Leadership
from infra.services import Plan
from infra.slots import SPARE, Slot, ask_to_stop
from infra.spares import Spare
from infra.state import STATE_FILE, Member, Phase, Running, Wish, held_or_not
from infra.supervisor_metrics import serve
from infra.tending import Tended

log = logging.getLogger(__name__)

TURN_SECONDS: Final = 0.1
SERVICE_STOP_SECONDS: Final = 20.0  # they promise ten
FOLLOWER_STOP_SECONDS: Final = 5.0


class Supervisor:
    def __init__(self, home: Path, index: int, leadership: Leadership) -> None:
        self._home = home
        self._index = index
        self._leadership = leadership
        self._stopping = threading.Event()

    def run(self) -> None:
        for sign in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(sign, self._stop)
        if self._follow():
            self._leadership.begin()
            Leader(self._home, self._index, self._leadership, self._stopping).run()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping.set()

    def _follow(self) -> bool:
        """Until we lead; False if we are to end before that."""
        if not self._leadership.is_ours:
            serve_of(self._home, self._index)
        while not self._leadership.is_ours and not self._leadership.try_take():
            self._leadership.end_silent_leader()
            if self._stopping.wait(TURN_SECONDS):
                return False
        return True


class Leader:
    """All of one reign."""

    def __init__(self, home: Path, index: int, leadership: Leadership, stopping: threading.Event) -> None:
        wish = Wish.read(home)
        assert wish is not None, "who starts us has written it"
        self._home = home
        self._index = index
        self._leadership = leadership
        self._stopping = stopping
        self._wish = wish
        self._plan = Plan(home, wish.shape)
        self._events = Events(home)
        shape = wish.shape
        self._doctor = Doctor(shape.brokers + shape.workers + shape.gateways + shape.supervisors)
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="ask-kafka")
        self._counted: Future[bool] | None = None
        self._tended: list[Tended] = []
        self._spares: list[Spare] = []
        self._running = Running(Phase.STARTING, None, ())

    def run(self) -> None:
        self._events.tell("supervisor", self._index, "leads")
        try:
            self._take_stock()
            while self._is_wanted():
                self._turn()
                self._stopping.wait(TURN_SECONDS)
        except CauceError as error:
            log.error("the cluster cannot run", extra={"reason": str(error)})  # noqa: TRY400  (the sentence says it all)
            code = 2 if isinstance(error, ConfigError) else 1
            self._running = replace(self._running, phase=Phase.FAILED, reason=str(error), code=code)
            self._running.write(self._home)
        replace(self._wish, is_up=False).write(self._home)
        self._events.tell("supervisor", self._index, "stopping")
        for spare in self._spares:
            spare.end()
        bring_down(self._home, self._index)
        self._doctor.close()

    def _is_wanted(self) -> bool:
        wish = Wish.read(self._home)
        owner = self._wish.owner
        return wish is not None and wish.is_up and not self._stopping.is_set() and (owner is None or owner.alive)

    def _take_stock(self) -> None:
        """As the leader before us wrote it, or anew."""
        found = Running.read(self._home)
        if found is not None and found.members:
            self._running = found
            self._plan.adopt([member.record for member in found.members])
        else:
            records = self._plan.new_records()
            members = tuple(Member(self._home, record) for record in records)
            self._running = Running(Phase.STARTING, self._plan.bootstrap, members)
            self._running.write(self._home)
        self._tended = [
            Tended(self._plan.slot(member.record), member.record, self._doctor, self._events)
            for member in self._running.members
        ]
        if self._wish.shape.spares:
            self._spares = [Spare(self._plan.spare(each.record), each) for each in self._of("worker")]
        serve_of(self._home, self._index)

    # ---- one turn

    def _turn(self) -> None:
        self._leadership.turn()
        brokers, services = self._of("broker"), self._of("worker", "gateway")
        changed = [each.tend() for each in [*self._of("supervisor"), *brokers]]
        enough = sum(each.is_ready for each in brokers) > len(brokers) // 2
        changed += [each.tend(may_start=self._running.is_open, is_blameless=not enough) for each in services]
        if self._running.phase is Phase.STARTING:
            self._refuse_failures()
            changed.append(self._go_on(brokers, services))
        if self._running.phase is Phase.READY:
            for spare in self._spares:
                spare.tend()
        if any(changed):
            self._running.write(self._home)

    def _go_on(self, brokers: Sequence[Tended], services: Sequence[Tended]) -> bool:
        """Starting: services once Kafka counts on every broker; ready when they all are."""
        if not self._running.is_open:
            if not all(each.is_ready for each in brokers) or not self._all_counted():
                return False
            self._running = replace(self._running, is_open=True)
            return True
        if not all(each.is_ready for each in services):
            return False
        self._running = replace(self._running, phase=Phase.READY)
        return True

    def _all_counted(self) -> bool:
        """Whether Kafka counts on all; asked on a thread of its own, as it may take a while."""
        if self._counted is None or (self._counted.done() and not self._counted.result()):
            self._counted = self._asking.submit(counted_on, self._plan.cluster.brokers)
        return self._counted.done() and self._counted.result()

    def _refuse_failures(self) -> None:
        """A start in which something ends by itself is a mistake to be told at once. A kill is none: it is revived."""
        for each in self._tended:
            code = each.slot.exit_code()
            if code is not None and code > 0 and each.slot.role != "supervisor":
                raise ConfigError(self._why(each, code)) if code == 2 else CauceError(self._why(each, code))

    def _why(self, each: Tended, code: int) -> str:
        if each.slot.role != "broker":
            where = self._home / f"{each.slot.role}s" / f"{each.slot.name}.log"
            return f"{each.slot.name} ended with exit code {code}; see {where}"
        broker = self._plan.cluster.broker(each.slot.index)
        reason = broker.last_error()
        return f"broker {broker.id} ended by exit code {code}{f' ({reason})' if reason else ''}; see {broker.log_file}"

    def _of(self, *roles: str) -> list[Tended]:
        return [each for each in self._tended if each.slot.role in roles]


def bring_down(home: Path, but_supervisor: int | None = None) -> None:
    """End everything of a home in order: gateways and workers, who commit what they began; brokers; supervisors.

    Only who leads may call this. It can be called again, by whoever leads then, and goes on.
    """
    slots = [slot for slot in held_or_not(home) if slot.is_held]
    for slot in slots:
        if slot.role == SPARE:
            slot.kill()  # before it takes the place of a worker that is asked to stop
    ask_to_stop([slot for slot in slots if slot.role in {"worker", "gateway"}], SERVICE_STOP_SECONDS)
    ask_to_stop([slot for slot in slots if slot.role == "broker"], STOP_SECONDS, lambda left: _are_closed(home, left))
    others = [slot for slot in slots if slot.role == "supervisor" and slot.index != but_supervisor]
    ask_to_stop(others, FOLLOWER_STOP_SECONDS)
    running = Running.read(home)
    if running is not None and running.phase is not Phase.FAILED:
        (home / STATE_FILE).unlink(missing_ok=True)


def _are_closed(home: Path, left: Sequence[Slot]) -> bool:
    """The last controller waits 5 s for the others, who are gone; once its data is closed we do not wait with it."""
    marks = [home / "brokers" / str(slot.index) / "data" / ".kafka_cleanshutdown" for slot in left]
    return len(left) == 1 and marks[0].exists()


def serve_of(home: Path, index: int) -> None:
    """Metrics on the port that was planned for us, once there is one."""
    running = Running.read(home)
    for member in running.of_role("supervisor") if running else []:
        if member.index == index:
            serve(home, member.port)


def main(arguments: list[str]) -> int:
    """HOME INDEX [the descriptor of the leader's lock]."""
    home, index = Path(arguments[0]), int(arguments[1])
    handed = int(arguments[2]) if len(arguments) > 2 else None
    logging.config.dictConfig(logs.dict_config(Settings.load().log_level))
    Supervisor(home, index, Leadership(home, handed)).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
