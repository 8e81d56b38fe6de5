"""What a supervisor can tell of its cluster: every process with what it has to do, what is wrong, what happened last.

Invariant: looked up when asked, never remembered; one process that hangs delays the answer by its own time-out only.
"""

import contextlib
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from infra import events
from infra.leadership import Leadership
from infra.processes import State
from infra.state import Member, Running, is_supervised

LAST_EVENTS: Final = 60
AT_ONCE: Final = 16
FULL_BYTES: Final = 16 << 20  # a broker cannot even begin a segment in less
# What a reader can make rates and bars of, by the name under which Prometheus knows it.
TOLD: Final = {
    "worker": {
        "in_flight": "cauce_in_flight",
        "bytes": "cauce_committed_bytes_total",
        "commit_seconds": "cauce_checkpoint_seconds_sum",
        "fenced": "cauce_fenced_total",
        "set_aside": "cauce_set_aside_total",
        "restored": "cauce_restore_records",
        "restore_wanted": "cauce_restore_wanted_offsets",
        "restore_seconds_left": "cauce_restore_seconds_left",
    },
    "gateway": {
        "sessions": "cauce_gateway_sessions",
        "live_uploads": "cauce_gateway_live_uploads",
        "rows": "cauce_gateway_rows_total",
        "rejected": "cauce_gateway_rejected_rows_total",
        "unused": "cauce_gateway_unused_rows_total",
        "bytes": "cauce_gateway_committed_bytes_total",
        "commits": "cauce_gateway_commits_total",
        "commit_seconds": "cauce_gateway_commit_seconds_sum",
    },
}


def overview(home: Path) -> dict[str, Any]:
    running = Running.read(home)
    members = [member for member in running.members if member.process is not None] if running else []
    leader = Leadership(home).leader()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        rows = list(threads.map(_look, members))
    for row in rows:
        row["leads"] = leader is not None and row["pid"] == leader.pid
    return {
        "at": time.time(),
        "bootstrap": running.bootstrap if running else None,
        "processes": rows,
        "troubles": list(troubles(home, rows)),
        "events": [asdict(event) for event in events.read(home, LAST_EVENTS)],
    }


def _look(member: Member) -> dict[str, Any]:
    told = member.told()
    names = TOLD.get(member.role, {})
    return {**member.row(told), **{name: told.get(metric) for name, metric in names.items()}}


def troubles(home: Path, rows: list[dict[str, Any]]) -> Iterator[str]:
    """What an operator should know, a sentence each."""
    if not is_supervised(home):
        yield "no supervisor is left: what falls stays down; `cauce up` takes over what runs, `cauce down` ends it"
    brokers = [row for row in rows if row["role"] == "broker"]
    away = [row["index"] for row in brokers if row["state"] != State.READY]
    if away and len(away) > len(brokers) // 2:
        yield f"{len(away)} of {len(brokers)} brokers are away: nothing is taken or lost until one of them is back"
    for row in rows:
        if row["note"]:
            yield f"{row['role']} {row['index']}: {row['note']}"
    for folder in (home, home / "brokers", home / "workers"):  # each may be a disk of its own
        with contextlib.suppress(OSError):
            if (free := shutil.disk_usage(folder).free) < FULL_BYTES:
                yield f"{folder}: {free / 1e6:.1f} MB are left on its disk; make room, and what fell goes on by itself"
