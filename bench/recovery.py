"""How soon all goes on after a SIGKILL: `python -m bench.recovery --kills 20`. Three brokers, two workers, two gateways
and a supervisor, one kill at a time, while a client uploads and another writes transactions.

1. worker: until its next process has committed
2. gateway: until another one takes bytes of the file that was being uploaded
3. broker: the longest that a transaction took
"""

import argparse
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from cauce.kafka import PRODUCER
from cauce.provision import WantedTopic, ensure_topics
from infra import keeper
from infra.chaos import LOOK_SECONDS, Chaos
from infra.cluster import behind
from infra.generate.datasets import GENERATORS
from infra.processes import wait_until
from infra.services import Shape
from infra.slots import SPARE, Slot
from infra.state import Member, Running
from producer_client.api import Client

SHAPE: Final = Shape(brokers=3, workers=2, gateways=2, partitions=8, supervisors=1)
BACK_SECONDS: Final = 120.0
AFTERMATH_SECONDS: Final = 15.0  # a broker's session ends after 3 s, and leaders are chosen then


def members(home: Path, role: str) -> list[Member]:
    running = Running.read(home)
    assert running is not None
    return running.of_role(role)


class Uploads(threading.Thread):
    """One session after the other; tells when bytes are taken after a trouble."""

    def __init__(self, home: Path, folder: Path) -> None:
        super().__init__(name="uploads", daemon=True)
        self._gateways: list[str] = keeper.status(home)["gateways"]
        self._folder = folder
        self.ending = threading.Event()
        self.sessions = 0
        self._told: dict[str, int] = {}  # after a trouble: how far a gateway says the file is
        self._troubled: set[str] = set()
        self.resumed = threading.Event()

    def run(self) -> None:
        with Client(self._gateways, watcher=self) as client:
            while not self.ending.is_set():
                with client.open("coffee") as session:
                    session.upload(self._folder)
                    for _ in session.watch():
                        pass
                self.sessions += 1

    def begin(self, name: str, length: int) -> None: ...

    def trouble(self, name: str, what: str) -> None:
        self._troubled.add(name)
        self._told.pop(name, None)

    def at(self, name: str, offset: int) -> None:
        if name in self._troubled and name not in self._told:
            self._told[name] = offset
        elif name in self._troubled and offset > self._told[name]:
            self._troubled.discard(name)
            self._told.pop(name)
            self.resumed.set()


class Transactions(threading.Thread):
    """A small one after the other; how long the longest took since it was last asked."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="transactions", daemon=True)
        client = {"bootstrap.servers": bootstrap}
        ensure_topics(client, [WantedTopic("ticks", 3, {})], 3)
        own = {"transactional.id": "ticks", "transaction.timeout.ms": 60_000, "log_level": 0}
        self._producer = Producer({**client, **PRODUCER, **own})
        self._producer.init_transactions(60)
        self.ending = threading.Event()
        self.longest = 0.0

    def run(self) -> None:
        while not self.ending.wait(0.02):
            began = time.monotonic()
            self._producer.begin_transaction()
            for partition in range(3):
                self._producer.produce("ticks", b"tick", partition=partition)
            self._producer.commit_transaction(60)
            self.longest = max(self.longest, time.monotonic() - began)


def spares_wait(home: Path) -> bool:
    """All is well: each worker has one in waiting."""
    waiting = [Slot(home, SPARE, member.index, port=0) for member in members(home, "worker")]
    return all(slot.is_held and (who := slot.process) is not None and who.waits_for_a_lock() for slot in waiting)


def of_workers(home: Path, kills: int, chance: random.Random) -> Iterator[float]:
    chaos = Chaos(home, lambda line: None)
    for _ in range(kills):
        wait_until(lambda: len(chaos.targets(["worker"])) == SHAPE.workers, seconds=BACK_SECONDS, otherwise="not ready")
        wait_until(lambda: spares_wait(home), seconds=BACK_SECONDS, otherwise="nobody is in waiting")
        blow = chaos.strike(chance.choice(chaos.targets(["worker"])), signal.SIGKILL)
        while not chaos.is_settled:
            chaos.watch()
            time.sleep(LOOK_SECONDS / 4)
        assert blow.progress_seconds is not None, "a worker did not come back"
        yield blow.progress_seconds


def of_gateways(home: Path, uploads: Uploads, kills: int) -> Iterator[float]:
    """Both in turn: the one that has the upload is one of them, and the kill of the other shows nothing."""
    chaos = Chaos(home, lambda line: None)
    found = 0
    while found < kills:
        for index in range(SHAPE.gateways):
            wait_until(
                lambda: len(chaos.targets(["gateway"])) == SHAPE.gateways, seconds=BACK_SECONDS, otherwise="not ready"
            )
            uploads.resumed.clear()
            began = time.monotonic()
            chaos.strike(members(home, "gateway")[index], signal.SIGKILL)
            while not chaos.is_settled:
                chaos.watch()
                if uploads.resumed.wait(LOOK_SECONDS / 10) and found < kills:
                    found += 1
                    uploads.resumed.clear()
                    yield time.monotonic() - began


def of_brokers(home: Path, transactions: Transactions, kills: int) -> Iterator[float]:
    chaos = Chaos(home, lambda line: None)
    for number in range(kills):
        wait_until(lambda: bool(chaos.targets(["broker"])), seconds=BACK_SECONDS, otherwise="brokers are not in sync")
        transactions.longest = 0.0
        chaos.strike(members(home, "broker")[number % SHAPE.brokers], signal.SIGKILL)
        until = time.monotonic() + AFTERMATH_SECONDS
        while time.monotonic() < until or not chaos.is_settled:
            chaos.watch()
            time.sleep(LOOK_SECONDS)
        assert not behind(keeper.status(home)["bootstrap"])
        yield transactions.longest


@contextmanager
def cluster(rows: int) -> Iterator[tuple[Path, Uploads, Transactions]]:
    with tempfile.TemporaryDirectory(prefix="cauce-recovery-") as scratch:
        home, data = Path(scratch) / "home", Path(scratch) / "data"
        data.mkdir()
        GENERATORS["coffee"](data, rows, 1, lambda file, rows, done: None)
        keeper.detach(home, SHAPE, leash=True)
        try:
            uploads, transactions = Uploads(home, data), Transactions(keeper.status(home)["bootstrap"])
            for thread in (uploads, transactions):
                thread.start()
            yield home, uploads, transactions
            for thread in (uploads, transactions):
                thread.ending.set()
                thread.join(BACK_SECONDS)
            assert uploads.sessions, "no session ended: there was no load"
        finally:
            keeper.down(home)


def show(what: str, goal: str, seconds: Sequence[float]) -> None:
    ordered = sorted(seconds)
    p50, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, round(len(ordered) * 0.99))]
    print(f"{what:46} {len(ordered):>3} kills  p50 {p50:.2f} s  p99 {p99:.2f} s  max {ordered[-1]:.2f} s  ({goal})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of each role")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=300_000, help="of each session; the next begins when one has ended")
    wish = parser.parse_args()
    with cluster(wish.rows) as (home, uploads, transactions):
        measures: list[tuple[str, str, Callable[[], Iterator[float]]]] = [
            (
                "worker: to its first commit",
                "goal: p99 under 5",
                lambda: of_workers(home, wish.kills, random.Random(wish.seed)),
            ),
            ("gateway: to bytes taken by another", "goal: under 3", lambda: of_gateways(home, uploads, wish.kills)),
            (
                "broker: the longest transaction",
                "goal: p99 under 8",
                lambda: of_brokers(home, transactions, wish.kills),
            ),
        ]
        for what, goal, measure in measures:
            show(what, goal, list(measure()))


if __name__ == "__main__":
    main()
