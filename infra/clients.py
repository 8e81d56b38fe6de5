"""`cauce clients`: many clients of one cluster, each a process of its own with its own files and answers.

Invariant: whether a client lives is asked of the system, by pid and start time; how it ended is what its process said.
A client never outlives the command that spawned it; a session that it leaves behind ends by its time to live.
"""

import contextlib
import json
import math
import queue
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from cauce.errors import ConfigError
from infra import verify
from infra.generate.datasets import GENERATORS
from infra.layout import write_atomically
from infra.oracle.datasets import ORACLES
from infra.processes import Process, Spawner, State, wait_until

FOLDER: Final = "clients"
NOTE: Final = "client.json"
ALL: Final = "all"
LOOK_SECONDS: Final = 0.5  # how soon it is noticed that there are enough
MIX: Final = tuple(GENERATORS)

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Client:
    """As written down in HOME/clients/NUMBER."""

    number: int
    dataset: str
    data: str
    process: Process
    began_at: float
    code: int | None = None  # None: it lives, or nobody saw its end
    seconds: float | None = None
    differences: tuple[str, ...] | None = None  # None: not verified

    @property
    def state(self) -> str:
        """running or paused; then done, or right or wrong where that was looked at; the exit code, or the signal."""
        now = self.process.state()
        if now is not State.DEAD:
            return "paused" if now is State.PAUSED else "running"
        if self.code is None:
            return "gone"
        if self.code == 0:
            return "done" if self.differences is None else "wrong" if self.differences else "right"
        return signal.Signals(-self.code).name if self.code < 0 else f"failed ({self.code})"

    @classmethod
    def read(cls, note: Path) -> Self:
        try:
            fields: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
            differences = fields["differences"]
            fields["differences"] = None if differences is None else tuple(differences)
            return cls(**{**fields, "process": Process(**fields["process"])})
        except FileNotFoundError:
            raise
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise ConfigError(f"{note} is not what Cauce wrote ({error}); remove its folder") from None

    def row(self) -> dict[str, Any]:
        """The shape that `cauce clients list --json` prints."""
        differences = None if self.differences is None else list(self.differences)
        return {
            "number": self.number,
            "dataset": self.dataset,
            "pid": self.process.pid,
            "state": self.state,
            "seconds": self.seconds,
            "differences": differences,
        }


@dataclass(frozen=True, slots=True)
class Wish:
    """What to spawn."""

    dataset: str  # or all: one after the other of the three
    data: Path | None  # None: files of its own for each, generated
    clients: int | None  # None: until `Spawning.enough` is set
    stagger_seconds: float
    rows: tuple[int, int]  # of generated files: at least, at most
    is_verified: bool
    out: Path | None = None  # None: in the home
    at_once: int | None = None
    queries: tuple[str, ...] = ()  # that every client asks for; empty: all of its dataset
    choosy: float = 0.0  # the share of clients that ask for some queries, chosen at random
    is_kept: bool = True  # files and right answers stay on disk

    def dataset_of(self, number: int) -> str:
        return MIX[number % len(MIX)] if self.dataset == ALL else self.dataset

    def rows_of(self, number: int) -> int:
        """As many small ones as large ones, by orders of magnitude; the same for the same number."""
        low, high = self.rows
        return round(math.exp(random.Random(number).uniform(math.log(low), math.log(high))))

    def queries_of(self, number: int) -> tuple[str, ...]:
        """Returns what this client names; the same for the same number. Empty: it asks for all."""
        chance = random.Random(f"queries of {number}")
        if self.queries or chance.random() >= self.choosy:
            return self.queries
        names = [name.removesuffix(".csv") for name in ORACLES[self.dataset_of(number)].answers]
        return tuple(chance.sample(names, chance.randint(1, len(names) - 1)))


def known(home: Path) -> list[Client]:
    found = []
    for note in (home / FOLDER).glob(f"*/{NOTE}"):
        with contextlib.suppress(FileNotFoundError):  # its folder was cleared away meanwhile
            found.append(Client.read(note))
    return sorted(found, key=lambda client: client.number)


def kill(home: Path, numbers: Sequence[int], at_random: int, chance: random.Random) -> list[Client]:
    """SIGKILL these, and so many others that live. Returns when they are gone."""
    living = {client.number: client for client in known(home) if client.process.alive}
    for number in numbers:
        if number not in living:
            raise ConfigError(f"no client {number} is running; `cauce clients list` shows them")
    others = [number for number in living if number not in numbers]
    chosen = [*numbers, *chance.sample(others, min(at_random, len(others)))]
    for number in chosen:
        living[number].process.send(signal.SIGKILL)
    wait_until(
        lambda: not any(living[number].process.alive for number in chosen),
        seconds=10,
        otherwise="a killed client is still there",
    )
    return [living[number] for number in chosen]


class Spawning:
    """One `cauce clients spawn`, from the first client to the end of the last."""

    def __init__(self, home: Path, gateways: Sequence[str], wish: Wish, tell: Tell) -> None:
        if wish.dataset not in (*MIX, ALL):
            raise ConfigError(f"there is no dataset {wish.dataset}; there are {', '.join(MIX)}, or {ALL}")
        if not gateways:
            raise ConfigError(f"no cluster runs in {home}; start one with: cauce up --detach --home {home}")
        self._home, self._gateways, self._wish, self._tell = home, gateways, wish, tell
        self._running: dict[int, tuple[Client, subprocess.Popen[bytes]]] = {}
        self._next = max((client.number for client in known(home)), default=-1) + 1
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._spawner = Spawner()
        self.ended: list[Client] = []
        self.enough = threading.Event()

    def run(self) -> bool:
        """Whether all of them got their answers, and the right ones where that was asked for."""
        try:
            first, due, is_well = self._next, time.monotonic(), True
            while (more := self._wants_more(first)) or self._running:
                may_start = more and len(self._running) < (self._wish.at_once or len(self._running) + 1)
                pause = max(0.0, due - time.monotonic()) if may_start else LOOK_SECONDS
                try:
                    is_well &= self._end(self._ended.get(timeout=pause))
                except queue.Empty:
                    if may_start and time.monotonic() >= due:
                        self._start(self._next)
                        self._next, due = self._next + 1, time.monotonic() + self._wish.stagger_seconds
            return is_well
        finally:
            for _, process in self._running.values():
                process.kill()
            self._spawner.close()

    def _wants_more(self, first: int) -> bool:
        clients = self._wish.clients
        return not self.enough.is_set() and (clients is None or self._next < first + clients)

    def _start(self, number: int) -> None:
        folder, dataset = self._home / FOLDER / str(number), self._wish.dataset_of(number)
        folder.mkdir(parents=True)
        data = self._wish.data or folder / "data"
        if self._wish.data is None:
            data.mkdir()
            GENERATORS[dataset](data, self._wish.rows_of(number), number, lambda *_: None)
        gateways = [word for url in self._gateways for word in ("--gateway", url)]
        command = [sys.executable, "-m", "infra", "upload", dataset, str(data), "--out", str(self._answers(number))]
        queries = self._wish.queries_of(number)
        asked = ["--queries", ",".join(queries)] if queries else []
        with (folder / "log").open("wb") as log:
            child = self._spawner.spawn([*command, *asked, *gateways, "--json"], cwd=Path.cwd(), output=log)
        client = Client(number, dataset, str(data), Process.of(child.pid), time.time())
        self._running[number] = client, child
        self._write(client)
        threading.Thread(target=self._wait, args=[number, child], daemon=True).start()
        about = f"{dataset}, {','.join(queries)}" if queries else dataset
        self._tell(f"client {number}: {about}, pid {child.pid}")

    def _wait(self, number: int, child: subprocess.Popen[bytes]) -> None:
        child.wait()
        self._ended.put(number)

    def _end(self, number: int) -> bool:
        client, process = self._running.pop(number)
        ended = replace(client, code=process.returncode, seconds=round(time.time() - client.began_at, 3))
        if ended.code == 0 and self._wish.is_verified:
            found = verify.verify(client.dataset, Path(client.data), self._answers(number))
            ended = replace(
                ended, differences=tuple(verify.describe(client.dataset, found).splitlines() if found else ())
            )
        self._write(ended)
        self.ended.append(ended)
        if not self._wish.is_kept and not ended.differences:
            shutil.rmtree(self._home / FOLDER / str(number))
        self._tell(f"client {number}: {ended.state} after {ended.seconds:.1f} s")
        for difference in ended.differences or ():
            self._tell(f"client {number}: {difference}")
        return ended.code == 0 and not ended.differences

    def _answers(self, number: int) -> Path:
        return self._wish.out / str(number) if self._wish.out else self._home / FOLDER / str(number) / "answers"

    def _write(self, client: Client) -> None:
        write_atomically(self._home / FOLDER / str(client.number) / NOTE, json.dumps(asdict(client)))
