"""How the five answers about flights come of their rows: the folds, combines, partials and answers.

Invariant: everything here is a list, a sum or an extreme by a total order, so no cut and no order of the rows shows;
fares are cents. A route is its two airports: other pairs may be written alike, and are other routes still. The one
thing whose order counts is the airports: of a code that is listed twice, the row that comes first.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from geographiclib.geodesic import Geodesic  # type: ignore[import-untyped]  # it ships no types; `far_miles` is the door
from numpy.typing import NDArray

from queries import exact
from queries.columns import are_set, in_order, keep, numbers, of_pairs, rows_of, schema, sum_by, table_of
from queries.flights_cleaning import route, routes
from queries.model import Given, Options, Row

Tables = Mapping[str, pa.Table]
Rows = Sequence[Sequence[str]]

# In the order of the answer's lines: a Listing is sorted by its columns.
LONG_FLIGHTS: Final = schema(leg_id=pa.string(), route=pa.string(), total_cents=pa.int64(), stopovers=pa.string())
DETOURS: Final = schema(leg_id=pa.string(), route=pa.string(), distance_miles=pa.int64())

PLACES: Final = schema(code=pa.string(), latitude=pa.float64(), longitude=pa.float64())
FASTEST: Final = schema(
    start=pa.string(),
    destination=pa.string(),
    duration_minutes=pa.int64(),
    leg_id=pa.string(),
    stopovers=pa.string(),
    duration=pa.string(),
)
TOTAL_FARES: Final = schema(start=pa.string(), destination=pa.string(), total_cents=pa.int64(), flights=pa.int64())
BASE_FARES: Final = schema(start=pa.string(), base_cents=pa.int64(), flights=pa.int64())

FASTEST_COUNT: Final = 2  # of every route
HALF: Final = 32  # bits: so much of a fare, times all flights, fits 64 bits
METRES_PER_MILE: Final = 1609.344
FAR: Final = 4  # times the direct distance; a power of two, so a double is multiplied exactly
NOWHERE: Final = (None, None)
NEVER: Final = 2**63 - 1  # no distance is more than that
PAIRS_KEPT: Final = 2**16  # the real rows have 240; a geodesic takes a tenth of a millisecond, 10 MB keep so many


# --- 1: flights with three stopovers or more


def long_flights(batch: pa.Table, _: Given) -> pa.Table:
    flights = keep(batch, are_set(batch, "stopovers") & are_set(batch, "total_cents"))
    return table_of(LONG_FLIGHTS, flights["leg_id"], _routes(flights), flights["total_cents"], flights["stopovers"])


def long_flight_line(flight: Row) -> Sequence[str]:
    leg_id, route, total_cents, stopovers = flight
    return leg_id, route, _money(total_cents), stopovers


# --- 2: flights that go four times as far as they need to


def places(batch: pa.Table, _: Given) -> pa.Table:
    return first_places(batch.select(PLACES.names))


def first_places(blocks: pa.Table) -> pa.Table:
    """Of every code, its first row; blocks come in the order of the file."""
    codes: Any = blocks["code"].combine_chunks()
    _, firsts = np.unique(codes.dictionary_encode().indices.to_numpy(), return_index=True)
    return blocks.take(np.sort(firsts))


def detours(batch: pa.Table, given: Given) -> pa.Table:
    far = numbers(batch, "distance_miles", null=0) > _far_miles(batch, given.references["airports"])  # none is below 0
    flights = keep(batch.select(["leg_id", "start", "destination", "distance_miles"]), far)
    return table_of(DETOURS, flights["leg_id"], _routes(flights), flights["distance_miles"])


def detour_line(flight: Row) -> Sequence[str]:
    leg_id, route, distance_miles = flight
    return leg_id, route, str(distance_miles)


def _far_miles(flights: pa.Table, airports: pa.Table) -> NDArray[np.int64]:
    """For each flight, the distance that it has to exceed: one look for each pair of airports."""
    start, destination = (flights[name].combine_chunks().dictionary_encode() for name in ("start", "destination"))
    codes: Any = {*start.dictionary.to_pylist(), *destination.dictionary.to_pylist()}
    here: Any = pc.is_in(airports["code"], value_set=pa.array(codes, pa.string()))
    known = {code: place for code, *place in rows_of(airports.filter(here))}
    return of_pairs(
        start, destination, lambda one, other: far_miles(*known.get(one, NOWHERE), *known.get(other, NOWHERE))
    )


@lru_cache(PAIRS_KEPT)
def far_miles(north: float | None, east: float | None, other_north: float | None, other_east: float | None) -> int:
    """The whole miles in four times the direct distance: an integer exceeds the one if it exceeds the other."""
    if north is None or other_north is None:
        return NEVER
    metres: float = Geodesic.WGS84.Inverse(north, east, other_north, other_east, Geodesic.DISTANCE)["s12"]
    return math.floor(FAR * (metres / METRES_PER_MILE))


# --- 3: the two fastest flights of a route, among those of query 1 with or without a fare


def fastest(batch: pa.Table, _: Given) -> pa.Table:
    return two_fastest(keep(batch.select(FASTEST.names), are_set(batch, "duration")))


def two_fastest(blocks: pa.Table) -> pa.Table:
    """In order, a row has to go if the row two above it has the same route."""
    ordered = in_order(blocks)
    count = max(len(ordered) - FASTEST_COUNT, 0)
    stays = np.ones(len(ordered), dtype=np.bool_)
    same = [
        pc.equal(ordered[name].slice(FASTEST_COUNT), ordered[name].slice(0, count)).to_numpy()
        for name in ("start", "destination")
    ]
    stays[FASTEST_COUNT:] = ~(same[0] & same[1])
    return keep(ordered, stays)


def fastest_lines(partials: pa.Table, _: Options) -> Rows:
    lines = sorted(
        (route(start, destination), minutes, leg_id, stopovers, duration)
        for start, destination, minutes, leg_id, stopovers, duration in rows_of(two_fastest(partials))
    )
    return [(route_, leg_id, stopovers, duration) for route_, _, leg_id, stopovers, duration in lines]


# --- 4: what the dearer flights of a route cost


def total_fares(batch: pa.Table, _: Given) -> pa.Table:
    flights = keep(batch.select(["start", "destination", "total_cents"]), are_set(batch, "total_cents"))
    ones = np.ones(len(flights), dtype=np.int64)  # one by one: in a batch, hardly a fare of a route comes again
    return table_of(TOTAL_FARES, flights["start"], flights["destination"], flights["total_cents"], ones)


def sum_total_fares(blocks: pa.Table) -> pa.Table:
    return sum_by(blocks, "start", "destination", "total_cents")


def dear_routes(partials: pa.Table, _: Options) -> Rows:
    """A fare is above the mean of all if it exceeds the whole cents of that mean."""
    fares = sum_total_fares(partials)
    if not fares.num_rows:
        return []
    flights, sum_cents = int(pc.sum(fares["flights"]).as_py()), sum(_cents_of(each) for each in rows_of(_sums(fares)))
    dear = fares.filter(pc.greater(fares["total_cents"], pa.scalar(sum_cents // flights)))
    lines = sorted(
        (route(start, destination), exact.quotient(_cents_of(sums), 100 * count), highest)
        for start, destination, *sums, count, highest in rows_of(_sums(dear, "start", "destination"))
    )
    return [(route_, repr(mean), _money(highest_cents)) for route_, mean, highest_cents in lines]


def _sums(fares: pa.Table, *keys: str) -> pa.Table:
    """By these keys: the sum of all fares in two halves, so that neither overflows; the flights; the highest fare."""
    cents, flights = fares["total_cents"].to_numpy(), fares["flights"].to_numpy()
    halves = {"high": (cents >> HALF) * flights, "low": (cents & (2**HALF - 1)) * flights}
    columns: dict[str, Any] = {**{key: fares[key] for key in keys}, **halves, "flights": flights, "cents": cents}
    table = pa.table(columns)
    wanted: Any = [("high", "sum"), ("low", "sum"), ("flights", "sum"), ("cents", "max")]
    grouped = table.group_by(list(keys), use_threads=False).aggregate(wanted)
    return grouped.select([*keys, "high_sum", "low_sum", "flights_sum", "cents_max"])


def _cents_of(sums: Sequence[int]) -> int:
    high, low, *_ = sums
    return (high << HALF) + low


# --- 5: the usual fares from an airport


def base_fares(batch: pa.Table, _: Given) -> pa.Table:
    flights = keep(batch.select(["start", "base_cents"]), are_set(batch, "base_cents"))
    return table_of(BASE_FARES, flights["start"], flights["base_cents"], np.ones(len(flights), dtype=np.int64))


def sum_base_fares(blocks: pa.Table) -> pa.Table:
    return sum_by(blocks, "start", "base_cents")


def usual_fares(partials: pa.Table, _: Options) -> Rows:
    fares = sum_base_fares(partials)
    airports: Any = fares["start"].combine_chunks().dictionary_encode()
    flights, of_airport = fares["flights"].to_numpy(), airports.indices.to_numpy()
    most = np.zeros(len(airports.dictionary), np.int64)
    np.maximum.at(most, of_airport, flights)
    usual = keep(fares, flights == most[of_airport])
    return [(start, _money(cents), str(flights)) for start, cents, flights in sorted(rows_of(usual))]


# --- shared


def _routes(flights: pa.Table) -> Any:
    return routes(flights["start"], flights["destination"])


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"
