"""The control: the same app and the same kills on Faust's own exactly_once must come out wrong.

    .venv/bin/python -m bench.vanilla_control --kills 5

If it ever comes out exact, either Faust was mended or our checks see nothing: ends with 1 then, and with 0 when it is
wrong as expected.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from infra.cluster import Cluster
from tests.harness.fleet import Fleet
from tests.harness.load import ConstantLoad, create_topics
from tests.harness.plan import Plan
from tests.harness.truth import Truth

QUIET_SECONDS: Final = 45.0  # no output for so long while input waits: it is stuck, or done
KILL_AFTER_SECONDS: Final = (2.0, 8.0)  # of work, after the first output of a process


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--a-second", type=int, default=60, help="input records")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="vanilla-") as home, Cluster(Path(home) / "kafka") as cluster:
        plan = Plan("", "vanilla-", cluster.bootstrap, Path(home) / "data", session_timeout_ms=6_000, vanilla=True)
        create_topics(plan)
        fleet, truth = Fleet(plan), Truth(plan)
        try:
            with ConstantLoad(plan, arguments.a_second) as load:
                for number in range(arguments.workers):
                    fleet.start(f"w{number}")
                for _ in range(arguments.kills):
                    wait_for_news(truth)
                    work(truth, chance.uniform(*KILL_AFTER_SECONDS))
                    fleet.workers[chance.choice(list(fleet.workers))].kill()
                    fleet.tend()
                wait_for_news(truth)
                work(truth, KILL_AFTER_SECONDS[1])
            while len(truth.times) < load.sent and time.monotonic() - truth.last_news_at < QUIET_SECONDS:
                truth.look()
            work(truth, 5.0)  # what is counted twice may come late
        finally:
            fleet.close()
        verdict = truth.check(load.sent)
        truth.__exit__()
    figures = {
        "kills": arguments.kills,
        "workers": arguments.workers,
        "seed": arguments.seed,
        "records": load.sent,
        "lost": verdict.lost,
        "twice": verdict.twice,
        "keys_with_wrong_sequences": verdict.wrong_sequences,
        "keys_wrong_in_the_changelog": verdict.changelog_wrong,
        "keys": plan.keys,
    }
    print(json.dumps(figures, indent=2))
    wrong = verdict.lost or verdict.twice or verdict.wrong_sequences or verdict.changelog_wrong
    return 0 if wrong else 1


def wait_for_news(truth: Truth) -> None:
    """Until something new comes out, or nothing will."""
    seen, deadline = truth.look(), time.monotonic() + QUIET_SECONDS
    while truth.look() == seen and time.monotonic() < deadline:
        pass


def work(truth: Truth, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        truth.look()


if __name__ == "__main__":
    sys.exit(main())
