"""Many short sessions, then what is left of them: `.venv/bin/python -m bench.sessions --sessions 200`.

After a few to warm up, the base is noted; after all others, memory of every process, the size of the stores and the
keys that live in compacted topics are compared with it. Then fairness: how long a small session takes beside a big one.
"""

import argparse
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from bench.end_to_end import generated
from infra import keeper
from infra.generate.datasets import GENERATORS
from infra.leftovers import settle
from infra.services import Shape
from producer_client.api import Client

DATASETS: Final = tuple(GENERATORS)
WARM_UP: Final = 20
AT_ONCE: Final = 4
SMALL_ROWS: Final = 1_000
BIG_ROWS: Final = 2_000_000
MEGA: Final = 1_000_000


def one(gateways: list[str], dataset: str, data: Path, out: Path) -> float:
    """Seconds from the opening of a session to its last answer; the session is deleted."""
    began = time.monotonic()
    with Client(gateways) as client, client.open(dataset) as session:
        session.upload(data)
        out.mkdir(parents=True, exist_ok=True)
        for _ in session.answers(out):
            pass
        return time.monotonic() - began


def many(gateways: list[str], count: int, data: dict[str, Path], out: Path) -> None:
    with ThreadPoolExecutor(AT_ONCE) as clients:
        running = [
            clients.submit(one, gateways, dataset, data[dataset], out / str(number))
            for number in range(count)
            for dataset in [DATASETS[number % len(DATASETS)]]
        ]
        for future in running:
            future.result()


def fairness(gateways: list[str], data: dict[str, Path], big: Path, out: Path) -> tuple[float, float]:
    """Seconds of a small session alone, and beside a big one of another client."""
    alone = min(one(gateways, "flights", data["flights"], out / f"alone-{turn}") for turn in range(3))
    with ThreadPoolExecutor(1) as other:
        running = other.submit(one, gateways, "flights", big, out / "big")
        time.sleep(3)  # well under way; it takes tens of seconds
        beside = [one(gateways, "flights", data["flights"], out / f"beside-{turn}") for turn in range(2)]
        still = not running.done()
        running.result()
    if not still:
        raise SystemExit("the big session ended before the small ones: give it more rows")
    return alone, max(beside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--rows", type=int, default=BIG_ROWS, help="of the big session")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cauce-sessions-") as folder:
        scratch, home = Path(folder), Path(folder) / "home"
        data = {dataset: generated(dataset, SMALL_ROWS, scratch) for dataset in DATASETS}
        big = generated("flights", given.rows, scratch)
        keeper.detach(home, Shape(brokers=1, workers=2, gateways=2, partitions=8), leash=True)
        try:
            gateways: list[str] = keeper.status(home)["gateways"]
            many(gateways, WARM_UP, data, scratch / "out")
            base = settle(home)
            began = time.monotonic()
            many(gateways, given.sessions, data, scratch / "out")
            print(f"{given.sessions} sessions, {AT_ONCE} at once, in {time.monotonic() - began:.0f} s")
            left = settle(home)
            for name, size in left.resident.items():
                print(f"  {name:10} resident {base.resident[name] / MEGA:6.0f} MB before, {size / MEGA:6.0f} MB after")
            print(f"  stores     {base.stores / MEGA:15.1f} MB before, {left.stores / MEGA:6.1f} MB after")
            print(f"  live keys  before {sum(base.keys.values())}, after {left.keys}")
            alone, beside = fairness(gateways, data, big, scratch / "out")
            print(f"a session of {SMALL_ROWS} rows: {alone:.1f} s alone, {beside:.1f} s beside {given.rows:,} rows")
        finally:
            keeper.down(home)


if __name__ == "__main__":
    main()
