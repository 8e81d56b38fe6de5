"""`cauce up`, `status` and `down`: the process that keeps a cluster, and the file that says what it keeps.

Invariants: one keeper a home (a lock that dies with it). HOME/cluster.json is replaced as a whole and names processes;
whether they live is always asked of the system. What a keeper started never outlives it.
"""

import contextlib
import fcntl
import json
import logging
import logging.config
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from cauce import logs
from cauce.errors import CauceError, ConfigError
from cauce.settings import Settings
from infra import sessions
from infra.cluster import Cluster
from infra.layout import write_atomically
from infra.ports import Ports
from infra.processes import ON_LINUX, POLL_SECONDS, Process, State, leashed, wait_until
from infra.service import page
from infra.services import Services, Shape

log = logging.getLogger(__name__)

STATE_FILE = "cluster.json"
DOWN_SECONDS = 60  # a stop takes 1 s, and 20 s where a broker must be killed; then something is wrong
GONE_SECONDS = 10  # SIGKILL works at once; a busy disk may hold a process a little longer


@dataclass(frozen=True, slots=True)
class Member:
    """One process of the cluster, as written down by the keeper."""

    role: str
    index: int
    process: Process
    port: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def state(self) -> State:
        """A broker is ready when its port answers; the others say so themselves."""
        state = self.process.state(self.port)
        if state is State.READY and self.role != "broker" and page(self.port, "/readyz")[0] != 200:
            return State.STARTING
        return state

    def row(self) -> dict[str, object]:
        return {
            "role": self.role,
            "index": self.index,
            "pid": self.process.pid,
            "state": self.state.value,
            "address": self.address,
        }


@dataclass(frozen=True, slots=True)
class Running:
    """What HOME/cluster.json says."""

    keeper: Process
    bootstrap: str | None
    members: tuple[Member, ...]

    @property
    def kept(self) -> bool:
        return self.keeper.alive


def read_running(home: Path) -> Running | None:
    """What was last written, whether it still lives or not; None if nothing was."""
    try:
        kept: Any = json.loads((home / STATE_FILE).read_text(encoding="utf-8"))
        members = [Member(**{**member, "process": Process(**member["process"])}) for member in kept["members"]]
        return Running(Process(**kept["keeper"]), kept["bootstrap"], tuple(members))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{home / STATE_FILE} is not what Cauce wrote; remove it and run `cauce up` again") from None
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}; choose another --home") from None


def status(home: Path) -> dict[str, Any]:
    """The shape that `cauce status --json` prints."""
    running = read_running(home)
    live = running if running and running.kept else None
    return {
        "bootstrap": live.bootstrap if live else None,
        "gateways": [f"http://{member.address}" for member in live.members if member.role == "gateway"] if live else [],
        "processes": [member.row() for member in live.members] if live else [],
        "sessions": sessions.read(home, [member.address for member in live.members if member.role == "gateway"])
        if live
        else [],
    }


def runs(home: Path) -> bool:
    """Whether a keeper is at work here, even if nothing is ready yet."""
    running = read_running(home)
    return running is not None and running.kept


def keep(home: Path, shape: Shape, on_ready: Callable[[], None]) -> None:
    """Run a cluster until SIGTERM (returns) or Ctrl-C (KeyboardInterrupt); either way nothing is left running."""
    cluster = Cluster(home, shape.brokers, shape.heap)
    try:
        with _stop_signals(), _home_lock(home):
            _end_leftovers(home)
            _run(home, cluster, shape, on_ready)
    except _Stopped:
        log.info("stopped as asked", extra={"home": str(home)})
    except OSError as error:
        raise ConfigError(f"{error.filename or home}: {error.strerror}; make room or choose another --home") from None


def _run(home: Path, cluster: Cluster, shape: Shape, on_ready: Callable[[], None]) -> None:
    services: Services | None = None
    try:
        _write(home, cluster, services)  # from now on `cauce down` finds us
        cluster.launch()
        _write(home, cluster, services)
        cluster.wait_ready()
        services = Services(home, shape, cluster.bootstrap, Ports(Settings.load().cache / "ports"))
        services.launch()
        _write(home, cluster, services)
        services.wait_ready()
        on_ready()
        _watch(home, cluster, services)
    finally:
        with _deaf():  # a second signal must not cut the clean-up short
            if services is not None:
                services.stop()
            cluster.stop()
            (home / STATE_FILE).unlink(missing_ok=True)


def detach(home: Path, shape: Shape, *, leash: bool = False) -> None:
    """Start a keeper in a session of its own; returns once it is ready, or raises with its reason. On a leash it ends
    when we do, however we end."""
    make_home(home)
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "infra.keeper", str(home.absolute()), shape.to_json(), str(writing)]
    command = leashed(command) if leash else command
    with open(reading, "rb") as told, (home / "keeper.log").open("ab") as output:  # noqa: PTH123  (a descriptor, not a path)
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                     pass_fds=[writing], start_new_session=True)  # fmt: skip
        finally:
            os.close(writing)
        try:
            word = told.read().decode()  # ends when the keeper closes the pipe: ready, failed or killed
        except BaseException:
            child.terminate()
            child.wait()
            raise
    if word == READY:
        child.returncode = 0  # it goes on without us: not a child that was forgotten
        return
    code = child.wait()
    kind = ConfigError if code == 2 else CauceError
    raise kind(word or f"the keeper ended with code {code} before the cluster was ready; see {home / 'keeper.log'}")


def down(home: Path) -> str:
    """End the cluster of this home; says what was found."""
    running = read_running(home)
    if running is None:
        return f"nothing is running in {home}"
    if running.kept:
        running.keeper.send(signal.SIGTERM)
        wait_until(
            lambda: not running.kept,
            seconds=DOWN_SECONDS,
            otherwise=f"the keeper (pid {running.keeper.pid}) does not end; see {home / 'keeper.log'}",
        )
        _end_leftovers(home)
        return f"stopped the cluster in {home}; its data is kept"
    _end_leftovers(home)
    return f"the keeper of {home} had died, and its brokers with it; cleaned up, the data is kept"


def configure_logs(level: str) -> None:
    logging.config.dictConfig(logs.dict_config(level))


def make_home(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
        (home / "keeper.log").touch()
    except OSError as error:
        raise ConfigError(f"cannot write to the home {home}: {error.strerror}; choose another --home") from None


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


@contextlib.contextmanager
def _home_lock(home: Path) -> Iterator[None]:
    make_home(home)
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"a cluster already runs in {home}; see it with `cauce status`, end it with `cauce down`, "
                "or start another one with --home DIR"
            ) from None
        yield


def _write(home: Path, cluster: Cluster, services: Services | None) -> None:
    members = [Member("broker", b.id, b.process, b.port) for b in cluster.brokers if b.process]
    members += [
        Member(kept.role, kept.index, kept.service.process, kept.service.port)
        for kept in (services.kept if services else [])
        if kept.service.process is not None
    ]
    running = Running(Process.of(os.getpid()), cluster.bootstrap or None, tuple(members))
    write_atomically(home / STATE_FILE, json.dumps(asdict(running), indent=2) + "\n")


def _watch(home: Path, cluster: Cluster, services: Services) -> None:
    """Until a signal ends it: one line in the log for whatever ended without being asked to. Workers and gateways are
    started again, brokers are not: their data may be what is wrong."""
    while True:
        if services.tend():
            _write(home, cluster, services)
        for broker in cluster.brokers:
            if end := broker.unexpected_end():
                log.error("broker ended", extra={"broker": broker.id, "pid": broker.pid, "how": end})
        time.sleep(POLL_SECONDS * 4)


def _end_leftovers(home: Path) -> None:
    """After a keeper that was killed: its brokers are ending or (not on Linux) must be ended. We hold no child here."""
    running = read_running(home)
    if running is None:
        return
    for member in running.members:
        process = member.process
        deadline = time.monotonic() + 1
        while process.alive and ON_LINUX and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)  # the kernel has sent it SIGKILL with the keeper's end
        process.send(signal.SIGKILL)
        wait_until(
            lambda process=process: not process.alive,  # type: ignore[misc]
            seconds=GONE_SECONDS,
            otherwise=f"{member.role} {member.index} (pid {process.pid}) of an earlier run does not end",
        )
    (home / STATE_FILE).unlink(missing_ok=True)


READY = "ready"


def _tell(pipe: int, word: str) -> None:
    """Tell the process that detached us, then let it go."""
    with contextlib.suppress(OSError):  # told before, or nobody listens any more
        os.write(pipe, word.encode())
        os.close(pipe)


def main(arguments: list[str]) -> int:
    """The detached keeper: HOME SHAPE PIPE."""
    home, shape, pipe = Path(arguments[0]), Shape.from_json(arguments[1]), int(arguments[2])
    os.set_inheritable(pipe, False)  # or the brokers would hold it open
    try:
        configure_logs(Settings.load().log_level)
        keep(home, shape, on_ready=lambda: _tell(pipe, READY))
    except CauceError as error:
        _tell(pipe, str(error))
        log.error("the cluster ended", extra={"reason": str(error)})  # noqa: TRY400  (the sentence says it all)
        return 2 if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
