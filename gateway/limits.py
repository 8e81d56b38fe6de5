"""How often somebody may ask, and how much may be under way for one client at once.

Invariant: what is remembered here does not grow with the number of requests. A key that has not asked for a while is as
good as new, and is forgotten; keys are made by us only (client ids with a good token, never what a stranger wrote).
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Final

from gateway.problems import later

BURST_SECONDS: Final = 2.0  # so many seconds' worth may come at once: a folder of small files does
REMEMBERED: Final = 1000


class Rates:
    """So many requests a second for each key, as a bucket that fills again."""

    def __init__(
        self, per_second: float, what: str, clock: Callable[[], float] = time.monotonic, at_once: float | None = None
    ) -> None:
        """`at_once`: how many may come together, where that is not two seconds' worth."""
        self._per_second = per_second
        self._what = what  # to be asked less often, and the variable that says how often
        self._clock = clock
        self._full = max(1.0, per_second * BURST_SECONDS) if at_once is None else at_once
        self._left: dict[Hashable, tuple[float, float]] = {}  # requests that may come now, and when that was so
        self._tidy_at = REMEMBERED

    def take(self, key: Hashable) -> None:
        """Count a request, or refuse it with the time to wait."""
        if wait := self.wait(key):
            detail = f"{self._what}: {self._per_second:g} a second are taken; wait a little"
            raise later(429, "too-often", detail, wait)

    def wait(self, key: Hashable) -> float:
        """Counts a request and returns 0, or returns in how many seconds there is room for one."""
        now = self._clock()
        left = self._now(key, now)
        if left < 1:
            return (1 - left) / self._per_second
        if len(self._left) >= self._tidy_at:
            self._left = {known: at for known, at in self._left.items() if self._now(known, now) < self._full}
            self._tidy_at = max(REMEMBERED, 2 * len(self._left))
        self._left[key] = (left - 1, now)
        return 0.0

    def give_back(self, key: Hashable) -> None:
        """Makes room for one more, up to as many as may come together."""
        if key in self._left:
            now = self._clock()
            self._left[key] = (min(self._full, self._now(key, now) + 1), now)

    def _now(self, key: Hashable, now: float) -> float:
        left, at = self._left.get(key, (self._full, now))
        return min(self._full, left + (now - at) * self._per_second)


class AtOnce:
    """So many at a time for each key."""

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._what = what
        self._now: Counter[Hashable] = Counter()

    @contextlib.contextmanager
    def one(self, key: Hashable) -> Iterator[None]:
        if self._now[key] >= self._most:
            raise later(429, "too-often", f"{self._most} {self._what} are open; close one, or wait")
        self._now[key] += 1
        try:
            yield
        finally:
            self._now[key] -= 1
            if not self._now[key]:
                del self._now[key]
