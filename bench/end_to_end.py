"""`cauce bench`: from files to answers, against peers on the same files, in one run.

One broker, two workers, exactly-once on. The time is a client's: from the opening of its session to an answer on its
disk. Peers: DuckDB over the same files, and vanilla Faust with one record a row. Ratios count: machines differ.
"""

import os
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench import peers
from bench.peers import Spent
from infra import keeper
from infra.generate.datasets import GENERATORS
from infra.services import Shape
from producer_client.api import Client, Session

SMALL: Final = 1_000_000  # memory must be the same as with this many rows
FAUST_ROWS: Final = 20_000
MEGA: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """One session."""

    rows: int
    size_bytes: int
    answers: dict[str, Spent]  # until each of them
    upload_seconds: float
    peaks: dict[str, int]  # resident bytes, by process
    cpu_seconds: dict[str, float]  # spent during the session, by process
    labelled: int = 0  # films that a model has read

    @property
    def total(self) -> Spent:
        return max(self.answers.values())


@dataclass(slots=True)
class Figures:
    dataset: str
    run: Run
    small: Run
    duckdb: dict[str, Spent]  # by what it answers
    faust_rate: float | None = None
    model_seconds: float | None = None


def bench(dataset: str, rows: int, shape: Shape, folder: Path | None, *, faust: bool) -> Figures:
    """Generates what is not there, runs everything, and throws away what it made. A small session comes first: it shows
    whether memory grows with the rows, and the large one meets processes that have been up for a while, as a client
    does."""
    with tempfile.TemporaryDirectory(prefix="cauce-bench-") as scratch:
        data = folder or generated(dataset, rows, Path(scratch))
        small_data = generated(dataset, SMALL, Path(scratch))
        duckdb = peers.duckdb_spent(dataset, data)  # first: it warms the file cache for both
        home = Path(scratch) / "home"
        keeper.detach(home, shape, leash=True)
        try:
            small = one_session(dataset, small_data, SMALL, home)
            run = one_session(dataset, data, rows, home)
        finally:
            keeper.down(home)
        figures = Figures(dataset, run, small, duckdb)
        if run.labelled:
            figures.model_seconds = run.labelled * peers.model_seconds(data)
        if faust:
            figures.faust_rate = peers.faust_rows_a_second(Path(scratch) / "faust", FAUST_ROWS)
        return figures


def generated(dataset: str, rows: int, scratch: Path) -> Path:
    folder = scratch / f"{dataset}-{rows}"
    if folder.exists():  # the large one may be as small as the small one
        return folder
    folder.mkdir()
    GENERATORS[dataset](folder, rows, 1, lambda file, all_rows, done: None)
    return folder


def one_session(dataset: str, data: Path, rows: int, home: Path) -> Run:
    status = keeper.status(home)
    processes = {f"{each['role']} {each['index']}": each["pid"] for each in status["processes"]}
    before = {name: cpu_seconds(pid) for name, pid in processes.items()}
    own_before, began = time.process_time(), time.monotonic()

    def spent() -> dict[str, float]:
        of_processes = {name: cpu_seconds(pid) - before[name] for name, pid in processes.items()}
        return of_processes | {"client": time.process_time() - own_before}

    answers = {}
    with Client(status["gateways"]) as client, client.open(dataset) as session:
        uploading = Uploading(session, data)
        uploading.start()
        for query in session.watch():
            if query.state != "done":
                raise SystemExit(f"{query.query} failed: {query.reason}")
            session.save_answer(query.query, home / f"{query.query}.csv")
            answers[query.query] = Spent(time.monotonic() - began, sum(spent().values()))
        uploading.join()
        if uploading.failed:
            raise uploading.failed
        stages = {stage.kind: stage for stage in session.state().files}
    return Run(
        rows=rows,
        size_bytes=sum(file.stat().st_size for file in data.rglob("*.csv")),
        answers=answers,
        upload_seconds=uploading.ended_at - began,
        peaks={name: peak_bytes(pid) for name, pid in processes.items()},
        cpu_seconds=spent(),
        labelled=(stages["overviews"].folded or 0) if "overviews" in stages else 0,
    )


class Uploading(threading.Thread):
    """The upload, while answers are already waited for: some are there before the last file."""

    def __init__(self, session: Session, data: Path) -> None:
        super().__init__(name="upload", daemon=True)
        self._session, self._data = session, data
        self.ended_at = 0.0
        self.failed: Exception | None = None

    def run(self) -> None:
        try:
            self._session.upload(self._data)
        except Exception as error:  # noqa: BLE001 raised by who waits for this
            self.failed = error
        self.ended_at = time.monotonic()


def peak_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show(figures: Figures, console: Console) -> None:
    run = figures.run
    size = f"{run.rows:,} rows, {run.size_bytes / MEGA:,.0f} MB"
    console.print(f"{figures.dataset}: {size}; uploaded after {run.upload_seconds:.1f} s")
    console.print(answers_table(figures))
    if figures.faust_rate:
        ours = run.rows / run.total.seconds
        console.print(
            f"rows/s to the last answer: {ours:,.0f}; vanilla Faust, one record a row, at least once: "
            f"{figures.faust_rate:,.0f}; ours is {ours / figures.faust_rate:,.0f} ×"
        )
    if figures.model_seconds:
        console.print(
            f"of it the model's own time, on one core: {figures.model_seconds:.1f} s for {run.labelled} films"
        )
    spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in run.cpu_seconds.items())
    console.print(f"CPU seconds: {spent}; {sum(run.cpu_seconds.values()):.1f} in all")
    console.print(memory_table([figures.small, run]))


def answers_table(figures: Figures) -> Table:
    table = Table("answer", "s", "DuckDB", "ratio", "CPU s", "DuckDB", "ratio", title="client start to answer")
    for query, ours in [*sorted(figures.run.answers.items()), ("all", figures.run.total)]:
        peer = figures.duckdb.get(query)
        by_clock = compared(ours.seconds, peer.seconds if peer else None)
        table.add_row(query, *by_clock, *compared(ours.cpu_seconds, peer.cpu_seconds if peer else None))
    return table


def compared(ours: float, peer: float | None) -> tuple[str, str, str]:
    return (f"{ours:.2f}", f"{peer:.2f}", f"{ours / peer:.2f} ×") if peer else (f"{ours:.2f}", "", "")


def memory_table(runs: Sequence[Run]) -> Table:
    table = Table("process", *(f"{run.rows:,} rows, MB" for run in runs), title="peak memory", title_justify="left")
    for name in runs[0].peaks:
        table.add_row(name, *(f"{run.peaks[name] / MEGA:,.0f}" for run in runs))
    return table


def as_json(figures: Figures) -> Mapping[str, Any]:
    run = figures.run
    return {
        "dataset": figures.dataset,
        "rows": run.rows,
        "bytes": run.size_bytes,
        "seconds": {query: spent.seconds for query, spent in run.answers.items()},
        "cpu_seconds_until": {query: spent.cpu_seconds for query, spent in run.answers.items()},
        "upload_seconds": run.upload_seconds,
        "duckdb_seconds": {what: spent.seconds for what, spent in figures.duckdb.items()},
        "duckdb_cpu_seconds": {what: spent.cpu_seconds for what, spent in figures.duckdb.items()},
        "faust_rows_a_second": figures.faust_rate,
        "model_seconds": figures.model_seconds,
        "cpu_seconds": run.cpu_seconds,
        "peak_bytes": run.peaks,
        "peak_bytes_small": figures.small.peaks,
    }
