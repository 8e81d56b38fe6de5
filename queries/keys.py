"""Which partition a key belongs to: the same in every process and on every machine."""

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]


def partitions_of(keys: Keys, partitions: int) -> NDArray[np.intp]:
    """Fibonacci hashing: neighbours spread evenly, one multiplication a key, no table."""
    mixed = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(32)) % np.uint64(partitions)).astype(np.intp)
