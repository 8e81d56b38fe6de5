"""`make demo`: films from files to answers, with a worker and a gateway killed on the way, and a second opinion.

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
from infra.generate.movies import generate
from infra.services import Shape
from producer_client.api import Client, Session

ROWS = 200_000
SHAPE = Shape(brokers=3, workers=2, gateways=2, partitions=4)

console = Console()


def main() -> None:
    with contextlib.suppress(KeyboardInterrupt), tempfile.TemporaryDirectory(prefix="cauce-demo-") as folder:
        show(Path(folder))


def show(folder: Path) -> None:
    began = time.monotonic()
    home, data, out = folder / "home", folder / "data", folder / "out"
    for each in (data, out):
        each.mkdir()
    console.print(f"[bold]1.[/] cauce generate movies DATA --rows {ROWS}")
    generate(data, ROWS, seed=1)
    for file in sorted(data.iterdir()):
        console.print(f"   {file.name:20} {file.stat().st_size / 1e6:5.1f} MB")
    console.print("[bold]2.[/] cauce up: three brokers, two workers, two gateways")
    keeper.detach(home, SHAPE, leash=True)
    try:
        console.print(f"   ready after {time.monotonic() - began:.1f} s")
        upload(home, data, out)
        show_answers(out)
        differences = check(data, out)
        show_with_kafkas_own_tool(home)
    finally:
        keeper.down(home)
    console.print(f"[bold]7.[/] cauce down: nothing is left running; {time.monotonic() - began:.0f} s in all")
    if differences:
        raise SystemExit("an answer is wrong: a bug, please report it")


def upload(home: Path, data: Path, out: Path) -> None:
    """Send the files; kill a gateway half-way, and a worker when all is sent."""
    console.print("[bold]3.[/] cauce upload movies DATA --out OUT")
    gateways: list[str] = keeper.status(home)["gateways"]
    half = Half(home, (data / "ratings.csv").stat().st_size // 2)
    with Client(gateways, watcher=half) as client:
        session = client.open("movies")
        session.upload(data)
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
    console.print("[bold]4.[/] the answers")
    for file in sorted(out.glob("*.csv")):
        header, *rows = csv.reader(io.StringIO(file.read_text(encoding="utf-8"), newline=""))
        shown = Table(title=file.name, title_justify="left")
        for column in header:
            shown.add_column(column)
        for row in rows[:5]:
            shown.add_row(*row)
        console.print(shown)


def check(data: Path, out: Path) -> list[Any]:
    console.print("[bold]5.[/] cauce verify movies DATA OUT: one careful pass over the files, byte by byte")
    differences = list(verify.verify("movies", data, out, None))
    console.print(verify.describe("movies", differences), highlight=False)
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
