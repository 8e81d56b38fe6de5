"""A second process for every worker, which waits for its slot: it takes the worker's place the moment that one is gone.

It has a slot of its own while it waits (spare-0 …), so that whoever leads knows of it, and it is no member of the
cluster before it is a worker.
"""

import time
from typing import Final

from infra.slots import Slot
from infra.tending import Tended

BETWEEN_SECONDS: Final = 10.0  # one that cannot even wait is not started all the time


class Spare:
    def __init__(self, slot: Slot, worker: Tended) -> None:
        self._slot = slot
        self._worker = worker
        self._due_at = 0.0

    def end(self) -> None:
        """Also one that was started a moment ago."""
        self._slot.hand_over(self._worker.slot)
        self._slot.kill()

    def tend(self) -> None:
        """One turn. It is started when the worker is at work: until then that one needs the machine."""
        self._slot.hand_over(self._worker.slot)
        if self._slot.is_held or self._slot.is_starting or not self._worker.is_ready:
            return
        if time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + BETWEEN_SECONDS
            self._slot.start()
