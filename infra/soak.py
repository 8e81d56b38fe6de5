"""`cauce soak`: clients on three datasets, kills of everything, and every answer compared with the oracle's bytes.

It is right only if no answer differs, no client failed that was not killed, everything that was hit came back, and
nothing is left at the end: no session, no key in a compacted topic, no process.
"""

import json
import os
import random
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from infra import clients, keeper
from infra.chaos import SIGNALS, Blow, Chaos, Tell
from infra.leftovers import Left, settle
from infra.services import Shape

SHAPE: Final = Shape(brokers=3, workers=2, gateways=2, partitions=8, supervisors=3)
ROWS: Final = (200, 20_000)
TTL_SECONDS: Final = 120  # of the sessions of killed clients
CHOOSY_SHARE: Final = 0.4  # of the clients ask for some queries only
CLIENT_KILL_SHARE: Final = 0.05  # of all blows; the session of such a client ends by its time to live


@dataclass(frozen=True, slots=True)
class Wish:
    seconds: float
    seed: int
    every_seconds: float
    roles: Sequence[str]
    clients_at_once: int = 3
    rows: tuple[int, int] = ROWS


@dataclass(frozen=True, slots=True)
class Outcome:
    wish: Wish
    ended: Sequence[clients.Client]
    blows: Sequence[Blow]
    left: Left
    processes_left: int

    @property
    def wrong(self) -> list[clients.Client]:
        return [client for client in self.ended if client.differences]

    @property
    def failed(self) -> list[clients.Client]:
        """Without an answer, and not by a kill of ours."""
        return [client for client in self.ended if client.code is not None and client.code > 0]

    @property
    def is_right(self) -> bool:
        lost = [blow for blow in self.blows if blow.is_lost]
        is_well = not (self.wrong or self.failed or lost)
        return is_well and bool(self.ended) and self.left.is_clean and not self.processes_left

    def lines(self) -> list[str]:
        states = Counter(client.state for client in self.ended)
        hits = Counter(f"{blow.role} SIG{blow.sign}" for blow in self.blows)
        said = [
            f"seed {self.wish.seed}: {len(self.ended)} sessions ({_counts(states)})",
            f"{len(self.blows)} kills ({_counts(hits)})",
        ]
        for role in sorted({blow.role for blow in self.blows}):
            ready = [b.ready_seconds for b in self.blows if b.role == role and b.ready_seconds is not None]
            work = [b.progress_seconds for b in self.blows if b.role == role and b.progress_seconds is not None]
            said.append(f"  {role:10} ready after {_spread(ready)}; at work after {_spread(work)}")
        lost = sum(blow.is_lost for blow in self.blows)
        said.append(f"wrong answers {len(self.wrong)}, failed {len(self.failed)}, not back {lost}")
        keys = sum(self.left.keys.values())
        said.append(
            f"left: {self.left.sessions} sessions, {keys} keys, {self.left.stores / 1e6:.1f} MB in stores, "
            f"{self.processes_left} processes"
        )
        return said

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.wish.seed,
            "seconds": self.wish.seconds,
            "sessions": len(self.ended),
            "states": Counter(client.state for client in self.ended),
            "kills": Counter(f"{blow.role} {blow.sign}" for blow in self.blows),
            "wrong": [client.number for client in self.wrong],
            "failed": [client.number for client in self.failed],
            "is_right": self.is_right,
        }


def soak(wish: Wish, tell: Tell, shape: Shape = SHAPE) -> Outcome:
    """Blocks for as long as was asked for, and a little more for the last sessions and the settling."""
    with tempfile.TemporaryDirectory(prefix="cauce-soak-") as folder:
        home = Path(folder) / "home"
        os.environ["CAUCE_SESSION_TTL_SECONDS"] = str(TTL_SECONDS)  # what we start inherits it
        keeper.detach(home, shape, leash=True)
        try:
            ended, blows = _rage(home, wish, tell)
            left = settle(home, seconds=300.0)
            if wrong := [client for client in ended if client.differences]:
                _keep_evidence(home, wrong, tell)
        finally:
            keeper.down(home)
        return Outcome(wish, ended, blows, left, len(keeper.status(home)["processes"]))


def _rage(home: Path, wish: Wish, tell: Tell) -> tuple[list[clients.Client], list[Blow]]:
    chance = random.Random(wish.seed)
    gateways: list[str] = keeper.status(home)["gateways"]
    spawning = clients.Spawning(home, gateways, _clients(wish), tell)
    chaos, ending = Chaos(home, tell), threading.Event()
    failures: list[BaseException] = []

    def strike() -> None:
        try:
            chaos.run(wish.roles, list(SIGNALS), wish.every_seconds, chance, ending)
        except BaseException as error:  # noqa: BLE001  (told by the thread that waits for us)
            failures.append(error)
            spawning.enough.set()

    hitting = threading.Thread(target=strike, name="chaos", daemon=True)
    timer = threading.Timer(wish.seconds, spawning.enough.set)
    timer.daemon = True
    timer.start()
    hitting.start()
    killing = random.Random(wish.seed + 1)
    killer = threading.Thread(target=_kill_clients, args=[home, wish, killing, ending], daemon=True)
    killer.start()
    before = {sign: signal.signal(sign, lambda *_: spawning.enough.set()) for sign in (signal.SIGINT, signal.SIGTERM)}
    try:
        spawning.run()
    finally:
        for sign, handler in before.items():  # once is enough: what was begun is ended and told; twice breaks off
            signal.signal(sign, handler)
        ending.set()
        timer.cancel()
    hitting.join()
    killer.join()
    if failures:
        raise failures[0]
    return spawning.ended, chaos.blows


def _clients(wish: Wish) -> clients.Wish:
    return clients.Wish(
        clients.ALL, None, clients=None, stagger_seconds=0.2, rows=wish.rows, is_verified=True,
        at_once=wish.clients_at_once, is_kept=False, choosy=CHOOSY_SHARE,
    )  # fmt: skip


def _kill_clients(home: Path, wish: Wish, chance: random.Random, ending: threading.Event) -> None:
    """Now and then one of them."""
    while not ending.wait(wish.every_seconds / CLIENT_KILL_SHARE * chance.uniform(0.5, 1.5)):
        clients.kill(home, [], at_random=1, chance=chance)


def _keep_evidence(home: Path, wrong: Sequence[clients.Client], tell: Tell) -> None:
    for client in wrong:
        tell(f"client {client.number} got wrong answers; its files are lost with the home: seed and number make them")
        tell(json.dumps(client.row()))


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counter.items())) or "none"


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "–"
    ordered = sorted(seconds)
    p50, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, round(len(ordered) * 0.99))]
    return f"p50 {p50:.1f}, p99 {p99:.1f}, max {ordered[-1]:.1f} s"
