"""The fast way for itineraries: a block of rows cleaned column by column.

Invariant: what is vouched for here is what the exact way gives, row by row, and no row of it is rejected. Airports
repeat within a block, so each is looked at once; few flights have three stopovers, and only theirs are taken apart,
with the functions of the exact way. A row is set aside where an airport is missing, where the legId may have blanks
around it, or where a number is written in another way than usual.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from queries import plain
from queries.columns import of_pairs
from queries.compiled import Mask, Texts
from queries.flights_cleaning import FEWEST_STOPOVERS, ITINERARIES_SCHEMA, ITINERARY_COLUMNS, route, stopovers
from queries.keys import text_key
from queries.plain import Decimals
from queries.text import duration_minutes

CENT: Final = 10  # thousandths
# The real rows have some thousand durations and routes. Longer texts are not kept: a hostile file could fill the memory
# with them.
TEXTS_KEPT: Final = 2**14
LONGEST_KEPT: Final = 32


def itineraries_block(data: bytes, header: Sequence[str]) -> tuple[pa.Table, int, bytes] | None:
    rows = plain.read(data, header, ITINERARY_COLUMNS)
    if rows is None or not rows.count:
        return None
    leg_ids, starts, destinations, durations, base, total, distance, segments = rows.columns
    start, destination = _airports(starts), _airports(destinations)
    base_fares, total_fares, distances = map(Decimals.of, (base, total, distance))
    is_right = leg_ids.are_bare & _are_present(start) & _are_present(destination)
    is_right &= (_are_fares(base_fares) | base.are_empty) & (_are_fares(total_fares) | total.are_empty)
    is_right &= distances.are_integers | distance.are_empty
    stops, duration, minutes = _stopovers(segments, durations)
    table = pa.Table.from_arrays(
        [
            pa.array(of_pairs(start, destination, _route_key)),
            plain.strings(leg_ids),
            _plain(start),
            _plain(destination),
            stops,
            duration,
            minutes,
            pa.array(base_fares.thousandths // CENT, mask=base.are_empty),
            pa.array(total_fares.thousandths // CENT, mask=total.are_empty),
            pa.array(distances.whole, mask=distance.are_empty),
        ],
        schema=ITINERARIES_SCHEMA,
    )
    if is_right.all():
        return table, rows.count, rows.apart(~is_right)
    return table.filter(pa.array(is_right)), int(np.count_nonzero(is_right)), rows.apart(~is_right)


def _route_key(start: str, destination: str) -> int:
    route_ = route(start, destination)
    return _kept_key(route_) if len(route_) <= LONGEST_KEPT else text_key(route_)


def _airports(texts: Texts) -> Any:
    """Trimmed, each of them once, and which one a row has."""
    encoded: Any = plain.strings(texts).dictionary_encode()
    names = [name.strip() for name in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(names, pa.string()))


def _are_present(airports: Any) -> Mask:
    are_named = np.array([name != "" for name in airports.dictionary.to_pylist()], np.bool_)
    are_present: Mask = are_named[airports.indices.to_numpy()]
    return are_present


def _plain(airports: Any) -> Any:
    return airports.dictionary.take(airports.indices)


def _are_fares(amounts: Decimals) -> Mask:
    """A third decimal, even a zero, is one too many; seldom enough for the exact way to tell."""
    return amounts.are_plain & (amounts.decimals <= 2)


def _stopovers(segments: Texts, durations: Texts) -> tuple[Any, Any, Any]:
    """Null but for the rows with enough of them."""
    are_many = segments.counts("|") >= 2 * FEWEST_STOPOVERS
    stops = [stopovers(text) for text in _trimmed(segments.at(are_many))]
    duration = _trimmed(durations.at(are_many))
    minutes = [None if stop is None else _minutes(text) for stop, text in zip(stops, duration, strict=True)]
    written = [None if each is None else text for each, text in zip(minutes, duration, strict=True)]
    taken: Any = pa.array(np.cumsum(are_many) - 1, mask=~are_many)
    columns = ((stops, pa.string()), (written, pa.string()), (minutes, pa.int64()))
    stops_, written_, minutes_ = (pa.array(values, type_).take(taken) for values, type_ in columns)
    return stops_, written_, minutes_


def _minutes(duration: str) -> int | None:
    return _kept_minutes(duration) if len(duration) <= LONGEST_KEPT else duration_minutes(duration)


_kept_minutes = lru_cache(TEXTS_KEPT)(duration_minutes)
_kept_key = lru_cache(TEXTS_KEPT)(text_key)


def _trimmed(texts: Texts) -> list[str]:
    return [str(text).strip() for text in plain.strings(texts).to_pylist()]
