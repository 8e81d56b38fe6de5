"""An agent may hold the event loop itself: then nothing commits, nothing answers, and no task of ours gets its turn to
say so. A thread looks from outside.

Invariant: time counts in looks, not by the clock. A process that was paused for an hour has missed one look.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Final

LOOK_SECONDS: Final = 1.0


class Watchdog(threading.Thread):
    """Calls `on_held` once, from this thread, when the loop has not had a turn for so many looks."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit_seconds: float,
        on_held: Callable[[], None],
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._loop = loop
        self._on_held = on_held
        self._look_seconds = look_seconds
        self._limit = max(1, round(limit_seconds / look_seconds))
        self._looks = 0  # since the loop had its last turn
        self._ended = threading.Event()

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        while not self._ended.wait(self._look_seconds):
            if self._looks >= self._limit:
                self._on_held()
                return
            self._looks += 1
            try:
                self._loop.call_soon_threadsafe(self._had_its_turn)
            except RuntimeError:  # the loop is closed: the process ends
                return

    def _had_its_turn(self) -> None:
        self._looks = 0
