"""Which partition a key belongs to: the same in every process and on every machine."""

from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Keys = NDArray[np.int64]


def partitions_of(keys: Keys, partitions: int) -> NDArray[np.uint16]:
    """Fibonacci hashing: neighbours spread evenly, two multiplications a key, no division and no table."""
    mixed = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed >>= np.uint64(32)
    mixed *= np.uint64(partitions)
    mixed >>= np.uint64(32)
    return mixed.astype(np.uint16)  # numbers so short are sorted by radix


def text_key(text: str) -> int:
    """A text as a key. Texts that share one share a partition, and that is all."""
    return crc32(text.encode())


def text_keys(texts: Any) -> Keys:
    """The same for a column of texts without nulls; one that has few of them is hashed once for each."""
    column: Any = pa.chunked_array([texts]) if isinstance(texts, pa.Array) else texts
    encoded = column.combine_chunks().dictionary_encode()
    keys = np.fromiter(map(text_key, encoded.dictionary.to_pylist()), np.int64, len(encoded.dictionary))
    spread: Keys = keys[encoded.indices.to_numpy()]
    return spread
