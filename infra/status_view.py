"""`cauce status` for people: a table once, or a live view until Ctrl-C.

Colours only where there is a terminal that wants them (NO_COLOR is heeded by Rich); piped, it is plain text.
"""

import sys
import time
from collections.abc import Callable
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cauce.errors import ConfigError

REFRESH_SECONDS: Final = 1.0
STYLES: Final = {"ready": "green", "starting": "yellow", "paused": "red", "dead": "red"}

Status = dict[str, Any]


def show(now: Status, console: Console | None = None) -> None:
    (console or Console(soft_wrap=True, highlight=False)).print(view(now))


def watch(look: Callable[[], Status]) -> None:
    if not sys.stdout.isatty():
        raise ConfigError("--watch wants a terminal; in a pipe, ask `cauce status --json` as often as you like")
    with Live(view(look()), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(REFRESH_SECONDS)
            live.update(view(look()), refresh=True)


def view(now: Status) -> RenderableType:
    parts: list[RenderableType] = [_processes(now["processes"])]
    parts += [Text(f"! {trouble}", style="bold red") for trouble in now["troubles"]]
    if now["sessions"]:
        parts += [Text(), _sessions(now["sessions"])]
    return Group(*parts)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    for column in columns:
        is_number = column in {"INDEX", "PID", "RESTARTS", "PARTITIONS", "LAG", "COMMITS"}
        table.add_column(column, justify="right" if is_number else "left", no_wrap=True)
    return table


def _processes(rows: list[dict[str, Any]]) -> RenderableType:
    if not rows:
        return Text("the brokers are about to start")
    table = _table("ROLE", "INDEX", "PID", "STATE", "ADDRESS", "RESTARTS", "PARTITIONS", "LAG", "COMMITS")
    for row in rows:
        work = [f"{row[name]:,}" if row.get(name) is not None else "" for name in ("partitions", "lag", "commits")]
        state = Text(row["state"], style=STYLES.get(row["state"], ""))
        who = (row["role"], str(row["index"]), str(row["pid"] or ""))
        table.add_row(*who, state, row["address"], str(row["restarts"]), *work)
    return table


def _sessions(sessions: list[dict[str, Any]]) -> Table:
    table = _table("SESSION", "DATASET", "QUERIES", "STATE", "ROWS READ, REJECTED, USED BY NO QUERY, SENT, FOLDED")
    for each in sessions:
        queries = ",".join(query.removeprefix(f"{each['dataset']}-") for query in each["queries"])
        table.add_row(each["client_id"], each["dataset"], queries, each["state"], _counts(each["files"]))
    return table


def _counts(files: list[dict[str, Any]]) -> str:
    """Of each kind of file; what is not folded yet is a question mark."""
    shown = []
    for file in files:
        folded = "?" if file["folded"] is None else f"{file['folded']:,}"
        read = f"{file['rows']:,} {sum(file['rejected'].values()):,} {file['unused']:,}"
        shown.append(f"{file['kind']} {read} {file['sent']:,} {folded}")
    return "; ".join(shown)
