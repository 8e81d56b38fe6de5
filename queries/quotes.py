"""Where quoted fields open and close, as `csv.reader` reads them in its default dialect.

A quote opens a field at the very start of it only, so `a,b"c` is plain text; "" within is one quote; what follows the
closing quote is plain text again."""

import re
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
QUOTE: Final = ord('"')


class Quotes:
    """Of files with this separator."""

    def __init__(self, separator: bytes) -> None:
        self.starts = separator + b"\r\n"  # a field starts behind one of these
        self._opens = np.isin(np.arange(256), list(self.starts + b'"'))
        self._quoted = re.compile(rb'[%b]"[^"]*+(?:""[^"]*+)*+("?)' % re.escape(self.starts))

    def edges(self, text: bytes) -> Places:
        """The quotes that open and that close, in turn. "" may count as one of each, or be left out. The first byte of
        the text is no quote: what comes before a field.

        In a proper file each quote is one of them, and those that open stand at the start of a field or behind one that
        closes. Otherwise some are plain text, and only going from field to field tells which."""
        signs = np.frombuffer(text, np.uint8)
        quotes = np.flatnonzero(signs == QUOTE)
        if self._opens[signs[quotes[::2] - 1]].all():
            return quotes
        fields = self._quoted.finditer(text)
        spans = [(field.start() + 1, field.end() - 1 if field[1] else len(text)) for field in fields]
        edges = np.array(spans, np.int64).reshape(-1)
        return edges[edges < len(text)]


quotes_of = lru_cache(Quotes)


def outside(edges: Places, places: Places) -> Places:
    """The places that are in no quoted field: an even number of edges is before them."""
    are_outside = np.searchsorted(edges, places) % 2 == 0
    return np.extract(are_outside, places)
