"""What both sides of a comparison do with a big record: a pass over its bytes, and a small result."""

import zlib

DIGEST_BYTES = 1024


def checksum(value: bytes) -> bytes:
    """Hardly any work: shows what the machinery costs."""
    return zlib.crc32(value).to_bytes(4, "big") * (DIGEST_BYTES // 4)


def column_sum(value: bytes) -> bytes:
    """A column of int32 folded in Python, about as long as Arrow takes to decode and group it."""
    return (sum(memoryview(value).cast("i")) & (1 << 64) - 1).to_bytes(8, "big") * (DIGEST_BYTES // 8)


WORK = {"checksum": checksum, "column sum": column_sum}
