"""`cauce up`, `status` and `down`: a home's cluster as its operator sees it.

Invariants: one cluster a home. Whether processes live is always asked of the system. With an owner (a terminal, `cauce
run`) a cluster ends when its owner does; without one (`--detach`) it runs until `cauce down`, whichever supervisors
die.
"""

import contextlib
import logging.config
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

from cauce import logs
from cauce.errors import CauceError, ConfigError
from cauce.settings import Settings
from infra import sessions
from infra.cluster import Cluster
from infra.jars import ensure_jars
from infra.java import find_java
from infra.leadership import Leadership
from infra.overview import troubles
from infra.processes import POLL_SECONDS, Process, wait_until
from infra.services import Shape, supervisor_log, supervisor_order
from infra.slots import Slot
from infra.state import STATE_FILE, Phase, Running, Wish, held_or_not, is_supervised
from infra.supervisor import bring_down

DOWN_SECONDS: Final = 90.0  # a stop takes 1 s, and 45 s where all must be killed; then something is wrong
FIRST: Final = 0  # the supervisor that leads first


def status(home: Path) -> dict[str, Any]:
    """The shape that `cauce status --json` prints."""
    running = Running.read(home)
    members = [member for member in running.members if member.process is not None] if running else []
    is_live = is_supervised(home) or any(member.slot.is_held for member in members)
    if running is None or not is_live:
        return {"bootstrap": None, "gateways": [], "processes": [], "sessions": [], "troubles": []}
    rows = [member.row() for member in members]
    gateways = [member.address for member in running.of_role("gateway")]
    return {
        "bootstrap": running.bootstrap,
        "gateways": [f"http://{address}" for address in gateways],
        "processes": rows,
        "sessions": sessions.read(home, gateways),
        "troubles": list(troubles(home, rows)),
    }


def runs(home: Path) -> bool:
    """Whether a supervisor is at work here, even if nothing is ready yet."""
    return is_supervised(home)


def keep(home: Path, shape: Shape, on_ready: Callable[[], None]) -> None:
    """Run a cluster until SIGTERM (returns) or Ctrl-C (KeyboardInterrupt); either way nothing is left running."""
    try:
        with _stop_signals():
            detach(home, shape, leash=True)
            try:
                on_ready()
                while is_supervised(home):
                    time.sleep(POLL_SECONDS * 4)
            finally:
                with _deaf():  # a second signal must not cut the clean-up short
                    down(home)
    except _Stopped:
        pass


def detach(home: Path, shape: Shape, *, leash: bool = False) -> None:
    """Start a cluster; returns once it is ready, or raises with its reason. On a leash it ends when we do, however we
    end. What still runs of a cluster whose supervisors died is taken over, if it is the same that is asked for."""
    home = home.absolute()
    Cluster(home, shape.brokers, shape.heap)  # refuses what cannot be
    find_java()
    ensure_jars(Settings.load().cache)
    make_home(home)
    leadership = Leadership(home)
    if not leadership.try_take():
        raise _already_runs(home)
    try:
        if is_supervised(home):  # a follower is about to lead
            raise _already_runs(home)
        _clear(home, shape)
        Wish(shape, is_up=True, owner=Process.of(os.getpid()) if leash else None).write(home)
        lock = leadership.hand_down()  # no moment without a leader: another `cauce up` finds it taken
        first = Slot(home, "supervisor", FIRST, 0, lambda: supervisor_order(home, FIRST, str(lock)))
        first.start(lock)
    except OSError as error:
        raise ConfigError(f"{error.filename or home}: {error.strerror}; make room or choose another --home") from None
    finally:
        leadership.leave()
    try:
        _wait_until_ready(home, first)
    except BaseException:
        with _deaf():
            down(home)
        raise
    finally:
        first.let_go()


def _clear(home: Path, shape: Shape) -> None:
    """What an earlier cluster left: to be adopted if it runs and is the same, else ended."""
    running, wish = Running.read(home), Wish.read(home)
    is_same = running is not None and running.phase is not Phase.FAILED and wish is not None and wish.shape == shape
    if is_same and any(slot.is_held for slot in held_or_not(home)):
        return
    bring_down(home)
    (home / STATE_FILE).unlink(missing_ok=True)
    for slot in held_or_not(home):
        slot.forget()


def _wait_until_ready(home: Path, first: Slot) -> None:
    """Whichever supervisor leads by then."""
    while (running := Running.read(home)) is None or running.phase is Phase.STARTING:
        if not first.is_starting and not is_supervised(home):
            break
        time.sleep(POLL_SECONDS)
    wait_until(  # a leader that gave up says so, and ends what it began
        lambda: running is None or running.phase is not Phase.FAILED or not is_supervised(home),
        seconds=DOWN_SECONDS,
        otherwise=f"the supervisors of {home} do not end",
    )
    running = Running.read(home)
    if running is not None and running.phase is Phase.READY:
        return
    if running is not None and running.reason is not None:
        (home / STATE_FILE).unlink(missing_ok=True)
        raise (ConfigError if running.code == 2 else CauceError)(running.reason)
    raise CauceError(f"the supervisors ended before the cluster was ready; see {supervisor_log(home, FIRST)}")


def down(home: Path) -> str:
    """End the cluster of this home; says what was found."""
    home = home.absolute()
    found, was_supervised = Running.read(home), is_supervised(home)
    wish = Wish.read(home)
    if wish is None or (found is None and not any(slot.is_held for slot in held_or_not(home))):
        return f"nothing is running in {home}"
    Wish(wish.shape, is_up=False, owner=wish.owner).write(home)
    leadership = Leadership(home)
    deadline = time.monotonic() + DOWN_SECONDS
    while any(slot.is_held for slot in held_or_not(home)):
        if leadership.try_take():  # nobody leads: we do, for as long as this takes
            leadership.begin()
            try:
                bring_down(home)
            finally:
                leadership.leave()
        leadership.end_silent_leader()
        if time.monotonic() > deadline:
            raise CauceError(f"the cluster in {home} does not end; see {supervisor_log(home, FIRST)}")
        time.sleep(POLL_SECONDS)
    (home / STATE_FILE).unlink(missing_ok=True)
    if was_supervised:
        return f"stopped the cluster in {home}; its data is kept"
    return f"the supervisors of {home} had died; ended what they left, the data is kept"


def configure_logs(level: str) -> None:
    logging.config.dictConfig(logs.dict_config(level))


def make_home(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
        supervisor_log(home, FIRST).parent.mkdir(exist_ok=True)
        supervisor_log(home, FIRST).touch()
    except OSError as error:
        raise ConfigError(f"cannot write to the home {home}: {error.strerror}; choose another --home") from None


def _already_runs(home: Path) -> ConfigError:
    return ConfigError(
        f"a cluster already runs in {home}; see it with `cauce status`, end it with `cauce down`, "
        "or start another one with --home DIR"
    )


class _Stopped(BaseException):
    """SIGTERM came. Not an Exception: nothing on the way may take it for an error of its own."""


@contextlib.contextmanager
def _stop_signals() -> Iterator[None]:
    """SIGTERM and a closed terminal end what is under way, wherever it is; Ctrl-C does so by itself."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _Stopped

    before = {sign: signal.signal(sign, stop) for sign in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    signs = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = {sign: signal.signal(sign, signal.SIG_IGN) for sign in signs}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
