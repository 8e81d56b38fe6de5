"""What both sides of a comparison do with a big record: one pass over its bytes, and a small result."""

import zlib

DIGEST_BYTES = 1024


def transform(value: bytes) -> bytes:
    return zlib.crc32(value).to_bytes(4, "big") * (DIGEST_BYTES // 4)
