"""A worker that one film ends: `faust -A tests.harness.poisoned worker`, with how in POISON: a crash in native code, an
agent that never lets go of the event loop, or a death that leaves no trace. Nothing of this is in the product."""

import ctypes
import os
import signal
import time
from typing import Any, Literal

import pyarrow as pa

from agents.fold import Folder, Outgoing
from streams.wiring import build_app

Poison = Literal["crash", "hang", "kill"]
TITLE = "the film that ends workers"

take = Folder.take


def take_or_die(folder: Folder, rows: pa.Table) -> list[Outgoing]:
    if "title" in rows.column_names and TITLE in rows.column("title").to_pylist():
        match os.environ["POISON"]:
            case "crash":
                ctypes.string_at(0)
            case "hang":
                time.sleep(3600)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
    return take(folder, rows)


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(name)
    Folder.take = take_or_die  # type: ignore[method-assign, assignment]
    return build_app()
