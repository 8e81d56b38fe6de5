"""What a run leaves behind in OUT: the answers as `movies-q1.csv` …, and report.json that tells how it went."""

import csv
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from producer_client.files import replacing
from producer_client.state import QueryState, SessionState, StageState

NAME: Final = "report.json"
SHOWN_ROWS: Final = 10


@dataclass(frozen=True, slots=True)
class FileReport:
    name: str
    kind: str
    bytes: int
    rows: int  # read, the rejected ones among them
    rejected: dict[str, int]  # by reason
    unused: int  # rows that no query uses
    state: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class QueryReport:
    query: str
    state: str
    reason: str | None = None
    file: str | None = None  # in the folder of the report


@dataclass(frozen=True, slots=True)
class Report:
    client_id: str
    dataset: str
    options: dict[str, Any]
    files: list[FileReport]
    stages: list[StageState]  # of each kind of file: rows read = rejected + unused + sent; folded = sent
    queries: list[QueryReport]
    seconds: dict[str, float]
    gateways: list[str]  # that answered, in the order in which they first did
    resumed: bool = False

    @property
    def complete(self) -> bool:
        return all(query.state == "done" for query in self.queries)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    def write(self, out: Path) -> None:
        with replacing(out / NAME) as file:
            file.write(self.to_json().encode() + b"\n")


@dataclass
class Phases:
    """Seconds of connect, upload and answers, one after the other."""

    began: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        since = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - since, 3)

    def total(self) -> dict[str, float]:
        return {**self.seconds, "total": round(time.monotonic() - self.began, 3)}


def files_of(
    state: SessionState | None, kinds: Mapping[str, tuple[str, int]], refused: Mapping[str, str]
) -> list[FileReport]:
    """One line for each file that was sent (`kinds`: name → kind, bytes or 0), as the gateways counted it."""
    known = {upload.name: upload for upload in state.uploads} if state else {}
    reports = []
    for name, (kind, size) in kinds.items():
        upload, reason = known.get(name), refused.get(name)
        reports.append(
            FileReport(
                name=name,
                kind=kind,
                bytes=size or (upload.offset if upload else 0),
                rows=upload.rows if upload else 0,
                rejected=upload.rejected if upload else {},
                unused=upload.unused if upload else 0,
                state="failed" if reason else upload.state if upload else "unknown",
                reason=reason or (upload.reason if upload else None),
            )
        )
    return reports


def queries_of(names: Sequence[str], ended: Mapping[str, QueryState], saved: Mapping[str, Path]) -> list[QueryReport]:
    reports = []
    for name in names:
        state = ended.get(name, QueryState(name, "waiting", "it waits for a file that was refused"))
        reports.append(QueryReport(name, state.state, state.reason, saved[name].name if name in saved else None))
    return reports


def remove_old(out: Path, dataset: str) -> None:
    """Removes what an earlier run left: it may not pass for an answer of this one, which may ask
    for other queries."""
    for path in [out / NAME, *out.glob(f"{dataset}-q[0-9]*.csv")]:
        path.unlink(missing_ok=True)


def show(report: Report, out: Path, console: Console) -> None:
    """The first rows of every answer, then what was read."""
    for query in report.queries:
        if query.file:
            console.print(_table(out / query.file))
    for stage in report.stages:
        console.print(_stage_line(stage), markup=False, highlight=False, soft_wrap=True)
    console.print(f"answers and {NAME} are in {out}", markup=False, highlight=False, soft_wrap=True)


def _stage_line(stage: StageState) -> str:
    folded = "?" if stage.folded is None else f"{stage.folded:,}"
    if not stage.rows:  # of a stage between the workers
        return f"{stage.kind}: {folded} rows folded"
    rejected = ", ".join(f"{count:,} {reason}" for reason, count in sorted(stage.rejected.items())) or "none"
    unused = f"; {unused_rows(stage.unused)}" if stage.unused else ""
    return f"{stage.kind}: {stage.rows:,} rows read, {folded} folded; rejected: {rejected}{unused}"


def unused_rows(count: int) -> str:
    """Says it as a person would: a value that cannot be read, or a film that no query asks about, is one of these."""
    return f"{count:,} row{'s' * (count != 1)} that no query uses"


def _table(path: Path) -> Table:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = list(islice(csv.reader(file), SHOWN_ROWS + 2)) or [[]]
    more = f"the first {SHOWN_ROWS} rows; all are in {path.name}" if len(rows) > SHOWN_ROWS else None
    table = Table(title=path.stem, caption=more, title_justify="left", caption_justify="left")
    for name in header:
        table.add_column(_plain(name))
    for row in rows[:SHOWN_ROWS]:
        table.add_row(*(_plain(cell) for cell in row))
    return table


def _plain(cell: str) -> Text:
    """What a file says is shown, never obeyed: no colours, no cursor moves."""
    return Text("".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in cell))
