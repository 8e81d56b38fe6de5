"""When the next checkpoint is due: after a while, as soon as much was written, and soon where somebody waits for it."""

import asyncio
import contextlib
import time
from typing import Final

HASTE_SECONDS: Final = 0.01  # what comes along in this shares the commit
BETWEEN_SECONDS: Final = 0.05  # a commit takes about as long


class Pace:
    """Asked on the event loop only."""

    def __init__(self, every_ms: int) -> None:
        self._every_seconds = every_ms / 1000
        self._due = asyncio.Event()
        self._hastened: asyncio.TimerHandle | None = None
        self._last = float("-inf")

    async def wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._due.wait(), self._every_seconds)
        self._due.clear()

    def now(self) -> None:
        self._due.set()

    def hasten(self) -> None:
        """Soon, and together with what is sent in the next few milliseconds."""
        if self._hastened is None:
            delay = max(HASTE_SECONDS, self._last + BETWEEN_SECONDS - time.monotonic())
            self._hastened = asyncio.get_running_loop().call_later(delay, self._due.set)

    def committed(self) -> None:
        self._last = time.monotonic()
        if self._hastened is not None:
            self._hastened.cancel()
            self._hastened = None
