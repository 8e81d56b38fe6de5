"""Hundreds of kills under constant load, then the truth: `.venv/bin/python -m bench.soak_core --kills 200 --seed 1`.

Workers are killed, stopped past their session and asked to stop, brokers are killed one at a time, at random moments.
Ends with 0 only if nothing was lost, nothing was counted twice, and changelogs and stores say what the output says.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from infra.cluster import Cluster
from tests.harness.fleet import FAILED, READY_SECONDS, Fleet, Worker, wait_for
from tests.harness.load import ConstantLoad, create_topics
from tests.harness.plan import Plan
from tests.harness.truth import Truth, Verdict

KINDS: Final = {"sigkill": 60, "sigstop": 15, "sigterm": 15, "broker": 10}  # of a hundred faults
SESSION_MS: Final = 6_000  # as in production
CATCH_UP_SECONDS: Final = 900.0


class Soak:
    """One run. Everything that waits also restarts whoever died and reads what came out."""

    def __init__(self, cluster: Cluster, plan: Plan, workers: int, chance: random.Random) -> None:
        self.faults: Counter[str] = Counter()
        self.recoveries: list[float] = []  # SIGKILL of a worker to its first commit of work afterwards
        self.fleet = Fleet(plan)
        self.truth = Truth(plan)
        self._cluster = cluster
        self._names = [f"w{number}" for number in range(workers)]
        self._chance = chance
        self._killed: list[tuple[float, Worker]] = []  # when, and the process that came after
        self._last_report = time.monotonic()

    @property
    def kills(self) -> int:
        return self.faults["sigkill"] + self.faults["broker"]

    def run(self, kills: int) -> None:
        for name in self._names:
            self.fleet.start(name)
        for worker in list(self.fleet.workers.values()):
            worker.wait_ready()
        while self.kills < kills:
            (kind,) = self._chance.choices(list(KINDS), list(KINDS.values()))
            self._fault(kind)
            self.faults[kind] += 1
            self._pause(self._chance.uniform(0.1, 3.0))
            self._report()

    def _fault(self, kind: str) -> None:
        match kind:
            case "sigkill":
                victim = self._victim()
                victim.kill()
                killed_at = time.time()
                self._killed.append((killed_at, self.fleet.start(victim.name)))
            case "sigstop":
                victim = self._victim()
                victim.pause()
                self._pause(self._chance.uniform(0.5, SESSION_MS / 1000 + 6))
                victim.resume()
            case "sigterm":
                victim = self._victim()
                code = victim.terminate()  # not 0 only if it was still importing, or failed at that very moment
                assert code in (0, -signal.SIGTERM, FAILED), f"{victim.name}: {code}: {victim.tail()}"
                self.fleet.start(victim.name)
            case "broker":
                number = self._chance.randrange(len(self._cluster.brokers))
                self._cluster.kill(number)
                self._pause(self._chance.uniform(0.5, 8.0))
                self._cluster.start_broker(number)
                self._cluster.wait_in_sync()  # one at a time: two would be more than three copies promise to survive

    def _victim(self) -> Worker:
        """Often only once it works, else at any moment of its start."""
        name = self._chance.choice(self._names)
        if self._chance.random() < 0.4:
            self._until(lambda: bool(self.fleet.workers[name].said("worker ready")), f"{name} is not ready")
        self._tend()
        return self.fleet.workers[name]

    def finish(self, count: int) -> Verdict:
        self._until(lambda: len(self.truth.times) >= count, f"not all of {count} came out", CATCH_UP_SECONDS)
        for name in self._names:
            self._until(lambda name=name: bool(self.fleet.workers[name].said("worker ready")), f"{name} is not ready")  # type: ignore[misc]
        self.fleet.stop()
        self.recoveries = sorted(seconds for at, worker in self._killed if (seconds := first_commit(worker) - at) > 0)
        return self.truth.check(count)

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._tend()

    def _until(self, condition: Callable[[], bool], otherwise: str, seconds: float = READY_SECONDS) -> None:
        def tended() -> bool:
            self._tend()
            return condition()

        wait_for(tended, seconds, otherwise)

    def _tend(self) -> None:
        self.fleet.tend()
        self.truth.look()

    def _report(self) -> None:
        if time.monotonic() - self._last_report > 30:
            self._last_report = time.monotonic()
            twice = self.truth.times.total() - len(self.truth.times)
            print(f"{self.faults.total()} faults, {len(self.truth.times)} records out, {twice} twice", flush=True)

    def close(self) -> None:
        self.fleet.close()
        self.truth.__exit__()


def first_commit(worker: Worker) -> float:
    """When its first commit of work was visible; 0 if it was killed before it had one."""
    said = worker.said("first work committed")
    return datetime.fromisoformat(said[0]["at"]).timestamp() if said else 0.0


def percentile(values: Sequence[float], percent: int) -> float:
    return values[min(len(values) - 1, len(values) * percent // 100)] if values else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="SIGKILLs; pauses and clean stops come on top")
    parser.add_argument("--seed", type=int, default=None, help="by default a new one, printed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--a-second", type=int, default=60, help="input records")
    arguments = parser.parse_args()
    seed = random.randrange(1 << 32) if arguments.seed is None else arguments.seed
    print(
        f"seed {seed}, {arguments.kills} kills, {arguments.workers} workers, {arguments.a_second} records/s",
        flush=True,
    )
    started = time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="soak-core-"))
    print(f"data and logs are in {home}; removed when all is well", flush=True)
    with Cluster(home / "kafka") as cluster:
        plan = Plan("", "soak-", cluster.bootstrap, home / "data", partitions=6, session_timeout_ms=SESSION_MS)
        create_topics(plan)
        soak = Soak(cluster, plan, arguments.workers, random.Random(seed))
        try:
            with ConstantLoad(plan, arguments.a_second) as load:
                soak.run(arguments.kills)
            verdict = soak.finish(load.sent)
        finally:
            soak.close()
    figures = {
        "seconds": round(time.monotonic() - started),
        "seed": seed,
        "records": load.sent,
        "faults": dict(soak.faults) | {"total": soak.faults.total(), "kills": soak.kills},
        "worker_processes": len(soak.fleet.all),
        "lost": verdict.lost,
        "twice": verdict.twice,
        "wrong_sequences": verdict.wrong_sequences,
        "changelog_wrong": verdict.changelog_wrong,
        "store_wrong": verdict.store_wrong,
        "store_ahead": verdict.store_ahead,
        "recovery_seconds": {
            "measured": len(soak.recoveries),
            "p50": round(percentile(soak.recoveries, 50), 2),
            "p99": round(percentile(soak.recoveries, 99), 2),
            "max": round(soak.recoveries[-1], 2) if soak.recoveries else None,
        },
    }
    print(json.dumps(figures, indent=2))
    if verdict.exact:
        shutil.rmtree(home)
    return 0 if verdict.exact else 1


if __name__ == "__main__":
    sys.exit(main())
