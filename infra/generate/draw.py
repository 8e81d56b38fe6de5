"""Random choices that no version of Python or numpy changes.

They stand on `Random.random()`, whose sequence Python promises to keep, and on the plain 32-bit words of the same
generator (the Mersenne Twister); `choice`, `shuffle` and numpy's own generators make no such promise.
"""

import hashlib
from collections.abc import Sequence
from random import Random
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
Numbers = npt.NDArray[np.int64]


class Draw:
    """One stream of choices; streams with other names do not disturb each other."""

    def __init__(self, seed: int, name: str) -> None:
        digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
        self._random = Random(int.from_bytes(digest, "big"))

    def below(self, limit: int) -> int:
        """0 ≤ number < limit, for limits well below 2^53."""
        return int(self._random.random() * limit)

    def between(self, first: int, last: int) -> int:
        return first + self.below(last - first + 1)

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def some(self, choices: Sequence[T], count: int) -> list[T]:
        """Different ones, in the order drawn."""
        places: dict[int, None] = {}
        while len(places) < min(count, len(choices)):
            places[self.below(len(choices))] = None
        return [choices[place] for place in places]

    def shuffled(self, count: int) -> list[int]:
        """0 … count − 1 in a random order (Fisher and Yates)."""
        order = list(range(count))
        for place in range(count - 1, 0, -1):
            other = self.below(place + 1)
            order[place], order[other] = order[other], order[place]
        return order

    def words(self, count: int) -> Numbers:
        """Many 32-bit numbers at once, for arithmetic in integers: floats may round differently elsewhere."""
        data = self._random.getrandbits(32 * count).to_bytes(4 * count, "little")
        return np.frombuffer(data, dtype="<u4").astype(np.int64)
