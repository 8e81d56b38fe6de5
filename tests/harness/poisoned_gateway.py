"""A gateway that crashes in native code when it is to parse bytes with MARK in them: `python -m
tests.harness.poisoned_gateway`. Nothing of this is in the product."""

import ctypes
import sys

from gateway.__main__ import main
from gateway.parse import Parser, Piece

MARK = b"the row that ends gateways"

feed = Parser.feed


def feed_or_die(parser: Parser, block: bytes) -> Piece:
    if MARK in block:
        ctypes.string_at(0)
    return feed(parser, block)


if __name__ == "__main__":
    Parser.feed = feed_or_die  # type: ignore[method-assign, assignment]
    sys.exit(main())
