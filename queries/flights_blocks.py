"""The fast way for itineraries: a block of rows cleaned column by column.

Invariant: what is vouched for here is what the exact way gives, row by row, and no row of it is rejected. All columns
but the legId repeat within a block, so the functions of the exact way are called once for each distinct text, and not
even so often for one that a block before had. Rows without a legId or an airport are set aside, and so are those whose
legId may have blanks around it.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queries import plain
from queries.columns import Mask
from queries.flights_cleaning import ITINERARIES_SCHEMA, ITINERARY_COLUMNS, routes, stopovers
from queries.keys import text_keys
from queries.text import duration_minutes, fare_cents, integer

BLANK, DELETE = b" \x7f"  # what lies between them is ASCII, and no blank

# The real rows have some thousand durations, distances and lists, and tens of thousands of fares. 65,536 texts of this
# length take 10 MB; longer ones are not kept, for a hostile file could fill the memory with them.
TEXTS_KEPT: Final = 2**16
LONGEST_KEPT: Final = 32

Parse = Callable[[list[str]], list[Any]]


def _each(parse: Callable[[str], Any]) -> Parse:
    """For distinct texts, blanks not yet trimmed; most of them were there in a block before."""
    kept = lru_cache(TEXTS_KEPT)(lambda text: parse(text.strip()))

    def parse_all(texts: list[str]) -> list[Any]:
        are_short = max(map(len, texts), default=0) <= LONGEST_KEPT
        return list(map(kept if are_short else kept.__wrapped__, texts))

    return parse_all


_trimmed, _stopovers = _each(str), _each(stopovers)
_minutes, _cents, _integers = _each(duration_minutes), _each(fare_cents), _each(integer)


def itineraries_block(data: bytes, header: Sequence[str]) -> tuple[pa.Table, int, bytes] | None:
    read = plain.read(data, header)
    if read is None or not read.count:
        return None
    leg_id, start, destination, duration, base, total, distance, segments = (
        read.texts(name).column() for name in ITINERARY_COLUMNS
    )
    start, destination = (_parsed(ends, _trimmed, pa.string()) for ends in (start, destination))
    stops = _parsed(segments, _stopovers, pa.string())
    duration = _parsed(_where(stops, duration), _trimmed, pa.string())
    minutes = _parsed(duration, _minutes, pa.int64())
    table = pa.Table.from_arrays(
        [
            pa.array(text_keys(routes(start, destination))),
            leg_id,
            start,
            destination,
            stops,
            _where(minutes, duration),
            minutes,
            _parsed(base, _cents, pa.int64()),
            _parsed(total, _cents, pa.int64()),
            _parsed(distance, _integers, pa.int64()),
        ],
        schema=ITINERARIES_SCHEMA,
    )
    plain_rows = _have_bare_ends(leg_id) & _are_present(start) & _are_present(destination)
    if plain_rows.all():
        return table, read.count, read.apart(~plain_rows)
    return table.filter(pa.array(plain_rows)), int(plain_rows.sum()), read.apart(~plain_rows)


def _parsed(texts: Any, parse: Parse, type_: pa.DataType) -> Any:
    """A column of what the texts mean; null for None, and where there is no text."""
    encoded = texts.dictionary_encode()
    return pa.array(parse(encoded.dictionary.to_pylist()), type_).take(encoded.indices)


def _where(other: Any, values: Any) -> Any:
    """The values, null where the other column is."""
    nothing: Any = pa.scalar(None, values.type)
    return pc.if_else(other.is_valid(), values, nothing)


def _are_present(texts: Any) -> Mask:
    are_present: Mask = pc.binary_length(texts).to_numpy() > 0
    return are_present


def _have_bare_ends(texts: Any) -> Mask:
    """Which texts start and end with a sign of ASCII that is no blank: nothing is to be trimmed from these."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * np.dtype(np.int32).itemsize)
    signs = np.frombuffer(b" " if data is None else bytes(data) + b" ", np.uint8)  # so that one can be read anywhere
    first, last = signs[ends[:-1]], signs[ends[1:] - 1]
    are_bare: Mask = (np.diff(ends) > 0) & (first > BLANK) & (first < DELETE) & (last > BLANK) & (last < DELETE)
    return are_bare
