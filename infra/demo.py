"""`make demo`: fourteen answers over three datasets, a worker and a gateway killed on the way, and a second opinion.

It uses only what any user has: the command line, HTTP, signals and Kafka's own console consumer.
"""

import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from cauce.errors import CauceError
from cauce.topics import ANSWERS
from infra import keeper, verify
from infra.generate.datasets import GENERATORS
from infra.services import Shape
from producer_client.api import Client, Session

ROWS = {"movies": 200_000, "flights": 20_000, "coffee": 50_000}
SHAPE = Shape(brokers=3, workers=2, gateways=2, partitions=4)

console = Console()


def main() -> None:
    with contextlib.suppress(KeyboardInterrupt), tempfile.TemporaryDirectory(prefix="cauce-demo-") as folder:
        show(Path(folder))


def show(folder: Path) -> None:
    began = time.monotonic()
    home = folder / "home"
    console.print("[bold]1.[/] cauce generate")
    for dataset, rows in ROWS.items():
        GENERATORS[dataset](folder / dataset, rows, 1, lambda file, all_rows, done: None)
        files = list((folder / dataset).rglob("*.csv"))
        size = sum(file.stat().st_size for file in files) / 1e6
        console.print(f"   {dataset:8} {rows:7,} rows in the largest of {len(files)} files, {size:5.1f} MB")
    console.print("[bold]2.[/] cauce up: three brokers, two workers, two gateways")
    keeper.detach(home, SHAPE, leash=True)
    differences: list[Any] = []
    try:
        console.print(f"   ready after {time.monotonic() - began:.1f} s")
        for number, dataset in enumerate(ROWS, start=3):
            console.print(f"[bold]{number}.[/] cauce upload {dataset} DATA --out OUT; cauce verify {dataset} DATA OUT")
            data, out = folder / dataset, folder / f"{dataset}-out"
            out.mkdir()
            upload(home, dataset, data, out)
            show_answers(out)
            differences += check(dataset, data, out)
        show_with_kafkas_own_tool(home)
    finally:
        keeper.down(home)
    console.print(f"[bold]7.[/] cauce down: nothing is left running; {time.monotonic() - began:.0f} s in all")
    if differences:
        raise SystemExit("an answer is wrong: a bug, please report it")


def upload(home: Path, dataset: str, data: Path, out: Path) -> None:
    """Send the files. Of the films, kill a gateway half-way, and a worker when all is sent."""
    gateways: list[str] = keeper.status(home)["gateways"]
    films = dataset == "movies"
    half = Half(home, (data / "ratings.csv").stat().st_size // 2 if films else 0)
    with Client(gateways, watcher=half) as client:
        session = client.open(dataset)
        session.upload(data)
        if films:
            kill(home, "worker")
        for query, _ in session.answers(out):
            console.print(f"   {query} is here")
        write_report(session, out)


class Half:
    """Watches the upload, and kills the gateway that has half of it."""

    def __init__(self, home: Path, offset: int) -> None:
        self._home = home
        self._offset = offset

    def begin(self, name: str, length: int) -> None: ...

    def at(self, name: str, offset: int) -> None:
        if name == "ratings.csv" and 0 < self._offset <= offset:
            self._offset = 0
            kill(self._home, "gateway")

    def trouble(self, name: str, what: str) -> None:
        console.print(f"   [dim]{name}: {what}[/]", highlight=False)


def kill(home: Path, role: str) -> None:
    process = next(each for each in keeper.status(home)["processes"] if each["role"] == role)
    console.print(f"   [red]kill -9 {process['pid']}[/], {role} {process['index']}")
    with contextlib.suppress(ProcessLookupError):
        os.kill(process["pid"], signal.SIGKILL)


def write_report(session: Session, out: Path) -> None:
    """What `cauce verify` wants to know."""
    (out / "report.json").write_text(json.dumps({"options": session.options}), encoding="utf-8")


def show_answers(out: Path) -> None:
    for file in sorted(out.glob("*.csv")):
        header, *rows = csv.reader(io.StringIO(file.read_text(encoding="utf-8"), newline=""))
        shown = Table(title=file.name, title_justify="left")
        for column in header:
            shown.add_column(column)
        for row in rows[:5]:
            shown.add_row(*row)
        console.print(shown)


def check(dataset: str, data: Path, out: Path) -> list[Any]:
    """One careful pass over the files, byte by byte."""
    differences = list(verify.verify(dataset, data, out, None))
    console.print(verify.describe(dataset, differences), highlight=False)
    return differences


def show_with_kafkas_own_tool(home: Path) -> None:
    arguments = ["--topic", ANSWERS.name, "--from-beginning", "--isolation-level", "read_committed"]
    console.print(f"[bold]6.[/] the same with Kafka's own tool: cauce kafka console-consumer {' '.join(arguments)}")
    answer = subprocess.run(
        [sys.executable, "-m", "infra", "kafka", "--home", str(home), "console-consumer", *arguments,
         "--max-messages", "5"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    if answer.returncode != 0:
        raise CauceError(f"the console consumer ended with {answer.returncode}: {answer.stderr.strip()}")
    for line in answer.stdout.splitlines():
        console.print(f"   {line[:110]}", highlight=False)


if __name__ == "__main__":
    main()
