"""How a process is, asked from outside and off the supervisor's own thread: one that hangs delays nobody.

Invariant: what is told was seen; where nothing was seen yet, nothing is told.
"""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from cauce.process import STUCK
from infra.processes import accepts
from infra.service import page
from infra.slots import Slot

BUSY_SECONDS: Final = 0.2  # between two looks at one that comes up
CALM_SECONDS: Final = 1.0  # at one that is ready


@dataclass(frozen=True, slots=True)
class Health:
    """`is_stuck`: alive, and no progress while there is something to do."""

    is_live: bool
    is_ready: bool
    is_stuck: bool
    reason: str
    seen_at: float


def look(role: str, port: int) -> Health:
    """A worker or a gateway says how it is; of the others, whether somebody listens."""
    if role not in {"worker", "gateway"}:
        opens = accepts(port)
        return Health(opens, opens, False, "" if opens else "its port is closed", time.monotonic())
    is_live = page(port, "/livez")[0] == 200
    status, text = page(port, "/readyz") if is_live else (0, "does not answer")
    reason = "" if status == 200 else text
    return Health(is_live, status == 200, reason.startswith(STUCK), reason, time.monotonic())


class Doctor:
    """Looks at many, each as often as it needs."""

    def __init__(self, patients: int) -> None:
        self._threads = ThreadPoolExecutor(max(1, patients), thread_name_prefix="look")
        self._under_way: dict[str, Future[Health]] = {}
        self._last: dict[str, Health] = {}

    def health(self, slot: Slot) -> Health | None:
        """What was seen last; a new look is begun where that is old."""
        under_way = self._under_way.get(slot.name)
        if under_way is not None and under_way.done():
            self._last[slot.name] = under_way.result()
            del self._under_way[slot.name]
        seen = self._last.get(slot.name)
        rest = CALM_SECONDS if seen is not None and seen.is_ready else BUSY_SECONDS
        if slot.name not in self._under_way and (seen is None or time.monotonic() - seen.seen_at > rest):
            self._under_way[slot.name] = self._threads.submit(look, slot.role, slot.port)
        return seen

    def forget(self, slot: Slot) -> None:
        """Another process has the slot."""
        self._last.pop(slot.name, None)
        self._under_way.pop(slot.name, None)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
