"""What is kept of a row of the flights' two files, and why a row is rejected.

Invariant: the outcome depends on this row only. The first reason counts, in the order of the columns below; a field
that does not parse is null, and the row stays for the queries that do not need it. What no query can need is left out:
the stopovers of a flight with fewer than three, and the duration of a flight without stopovers to show.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from queries.columns import schema
from queries.keys import text_key
from queries.model import Reason, Rejected, Row
from queries.text import coordinate, duration_minutes, fare_cents, integer

AIRPORT_COLUMNS: Final = ("Airport Code", "Latitude", "Longitude")
NEEDED_COLUMNS: Final = ("legId", "startingAirport", "destinationAirport")
ITINERARY_COLUMNS: Final = (
    *NEEDED_COLUMNS,
    *("travelDuration", "baseFare", "totalFare", "totalTravelDistance", "segmentsArrivalAirportCode"),
)

AIRPORTS_SCHEMA: Final = schema(
    airport_key=pa.int64(),
    code=pa.string(),
    latitude=pa.float64(),  # or null, and then the longitude is, too: a place that is not known
    longitude=pa.float64(),
)
ITINERARIES_SCHEMA: Final = schema(
    route_key=pa.int64(),
    leg_id=pa.string(),
    start=pa.string(),
    destination=pa.string(),
    stopovers=pa.string(),  # joined with `|`; null where there are fewer than three
    duration=pa.string(),  # as it is written, if it parses; null where the stopovers are
    duration_minutes=pa.int64(),  # null where the duration is
    base_cents=pa.int64(),  # or null, and so are those below
    total_cents=pa.int64(),
    distance_miles=pa.int64(),
)

FEWEST_STOPOVERS: Final = 3  # of a flight of queries 1 and 3
POLE: Final = 90.0


def clean_airport(fields: Sequence[str]) -> Row | None:
    """A code without a place is kept: it may come again, and its first row counts."""
    code, north, east = (field.strip() for field in fields)
    if not code:
        return None
    latitude, longitude = coordinate(north), coordinate(east)  # a longitude may go round and round
    is_known = latitude is not None and longitude is not None and abs(latitude) <= POLE
    return text_key(code), code, *((latitude, longitude) if is_known else (None, None))


def clean_itinerary(fields: Sequence[str]) -> Row | Rejected:
    leg_id, start, destination, duration, base, total, distance, segments = (field.strip() for field in fields)
    for column, text in zip(NEEDED_COLUMNS, (leg_id, start, destination), strict=True):
        if not text:
            return Rejected(Reason(f"no {column}"))
    stops = stopovers(segments)
    minutes = None if stops is None else duration_minutes(duration)
    return (
        text_key(route(start, destination)),
        leg_id,
        start,
        destination,
        stops,
        None if minutes is None else duration,
        minutes,
        fare_cents(base),
        fare_cents(total),
        integer(distance),
    )


def route(start: str, destination: str) -> str:
    return f"{start}-{destination}"


def routes(starts: Any, destinations: Any) -> Any:
    """The same for columns."""
    return pc.binary_join_element_wise(starts, destinations, "-")


def stopovers(segments: str) -> str | None:
    """Where the segments arrive, all but the last of them; None where these are too few to matter."""
    *stops, _ = segments.split("||")
    return "|".join(stops) if len(stops) >= FEWEST_STOPOVERS else None
