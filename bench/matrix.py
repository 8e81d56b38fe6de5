"""The same bytes from any shape of cluster: `.venv/bin/python -m bench.matrix ../shared/data`.

Every dataset of the folder on 1 and 3 brokers, 1 and 3 workers, 1 and 8 partitions; each answer against the oracle.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

from infra.generate.datasets import GENERATORS

BROKERS, WORKERS, PARTITIONS = (1, 3), (1, 3), (1, 8)


def cauce(*arguments: str) -> bool:
    done = subprocess.run([sys.executable, "-m", "infra", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n")
    return done.returncode == 0


def one(dataset: str, data: Path, brokers: int, workers: int, partitions: int) -> bool:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cauce-matrix-") as out:
        shape = ["--brokers", str(brokers), "--workers", str(workers), "--partitions", str(partitions)]
        shape += ["--home", f"{out}/home"]
        is_right = cauce("run", dataset, str(data), "--out", out, *shape) and cauce("verify", dataset, str(data), out)
    verdict = "same bytes" if is_right else "DIFFERENT"
    seconds = time.monotonic() - began
    print(
        f"{dataset:8} brokers {brokers} workers {workers} partitions {partitions}: {verdict}, {seconds:.0f} s",
        flush=True,
    )
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with a folder for each dataset")
    folder: Path = parser.parse_args().folder
    shapes = product(GENERATORS, BROKERS, WORKERS, PARTITIONS)
    outcomes = [one(dataset, folder / dataset, *shape) for dataset, *shape in shapes]
    print(f"{sum(outcomes)} of {len(outcomes)} right")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
