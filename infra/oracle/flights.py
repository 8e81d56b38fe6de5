"""The five flights queries in one pass: flights of the first three are lists in memory, fares are counted.

Invariant: every row of the file counts, a legId that appears twice included.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from geographiclib.geodesic import Geodesic  # type: ignore[import-untyped]  # it ships no types; `Distances` is the door

from infra.oracle import fields
from infra.oracle.rows import Answers, Counts, as_csv, files_read, read_rows

ITINERARIES, AIRPORTS = "itineraries.csv", "airports-codepublic.csv"
FILES = (AIRPORTS, ITINERARIES)
AIRPORT_COLUMNS = ("Airport Code", "Latitude", "Longitude")
FLIGHT_COLUMNS = (
    "legId",
    "startingAirport",
    "destinationAirport",
    "segmentsArrivalAirportCode",
    "travelDuration",
    "totalTravelDistance",
    "baseFare",
    "totalFare",
)
NEEDED = 3  # of these columns, the first: a row without them is rejected
MILE = 1609.344  # metres

Place = tuple[float, float]  # degrees north, degrees east


@dataclass(frozen=True, slots=True)
class Flight:
    """A row that was not rejected; None is a field that does not parse."""

    leg: str
    start: str
    end: str
    stopovers: list[str]
    duration: str
    minutes: int | None
    miles: int | None
    base_cents: int | None
    total_cents: int | None

    @property
    def route(self) -> str:
        return f"{self.start}-{self.end}"


class Distances:
    """Direct distances in miles, each found once; None where one of the two airports is not known."""

    def __init__(self, places: dict[str, Place]) -> None:
        self._places = places
        self._found: dict[tuple[str, str], float | None] = {}

    def between(self, start: str, end: str) -> float | None:
        if (start, end) not in self._found:
            self._found[start, end] = self._measure(start, end)
        return self._found[start, end]

    def _measure(self, start: str, end: str) -> float | None:
        if start not in self._places or end not in self._places:
            return None
        if start == end:
            return 0.0
        line = Geodesic.WGS84.Inverse(*self._places[start], *self._places[end])
        return float(line["s12"] / MILE)


READS = {
    "flights-q1.csv": (ITINERARIES,),
    "flights-q2.csv": (AIRPORTS, ITINERARIES),
    "flights-q3.csv": (ITINERARIES,),
    "flights-q4.csv": (ITINERARIES,),
    "flights-q5.csv": (ITINERARIES,),
}


def answer(folder: Path, wanted: Collection[str] = tuple(READS)) -> Answers:
    """Answers the wanted queries in one pass over those files of a folder that they read."""
    counts = {name: Counts() for name in files_read(READS, wanted)}
    places = read_places(folder / AIRPORTS, counts[AIRPORTS]) if AIRPORTS in counts else {}
    distances = Distances(places)
    long, far = list[Flight](), list[Flight]()
    fares, bases = Counter[tuple[str, str, int]](), Counter[tuple[str, int]]()
    for flight in read_flights(folder / ITINERARIES, counts[ITINERARIES]):
        if is_long(flight):
            long.append(flight)
        if is_detour(flight, distances):
            far.append(flight)
        if flight.total_cents is not None:
            fares[flight.start, flight.end, flight.total_cents] += 1
        if flight.base_cents is not None:
            bases[flight.start, flight.base_cents] += 1
    answers: Mapping[str, Callable[[], bytes]] = {
        "flights-q1.csv": lambda: as_csv("leg_id,route,total_fare,stopovers", long_flights(long)),
        "flights-q2.csv": lambda: as_csv("leg_id,route,travel_distance", detours(far)),
        "flights-q3.csv": lambda: as_csv("route,leg_id,stopovers,duration", fastest(long)),
        "flights-q4.csv": lambda: as_csv("route,mean_fare,max_fare", dear_routes(fares)),
        "flights-q5.csv": lambda: as_csv("airport,base_fare,flights", usual_fares(bases)),
    }
    return Answers({name: answers[name]() for name in READS if name in wanted}, counts)


def is_long(flight: Flight) -> bool:
    return len(flight.stopovers) >= 3


def is_detour(flight: Flight, distances: Distances) -> bool:
    if flight.miles is None:
        return False
    direct = distances.between(flight.start, flight.end)
    return direct is not None and flight.miles > 4 * direct  # Python compares an int with a float exactly


def long_flights(flights: Iterable[Flight]) -> list[tuple[str, str, str, str]]:
    rows = sorted(
        (flight.leg, flight.route, flight.total_cents, "|".join(flight.stopovers))
        for flight in flights
        if flight.total_cents is not None
    )
    return [(leg, route, money(cents), stopovers) for leg, route, cents, stopovers in rows]


def detours(flights: Iterable[Flight]) -> list[tuple[str, str, int]]:
    return sorted((flight.leg, flight.route, flight.miles) for flight in flights if flight.miles is not None)


def fastest(flights: Iterable[Flight]) -> list[tuple[str, str, str, str]]:
    """The two fastest of every pair of airports. Two pairs may be written alike: then both have theirs."""
    by_pair = defaultdict[tuple[str, str], list[tuple[int, str, str, str]]](list)
    for flight in flights:
        if flight.minutes is not None:
            stopovers = "|".join(flight.stopovers)
            by_pair[flight.start, flight.end].append((flight.minutes, flight.leg, stopovers, flight.duration))
    rows = sorted(
        (f"{start}-{end}", *flight) for (start, end), each in by_pair.items() for flight in heapq.nsmallest(2, each)
    )
    return [(route, leg, stopovers, duration) for route, _, leg, stopovers, duration in rows]


def dear_routes(fares: Counter[tuple[str, str, int]]) -> list[tuple[str, float, str]]:
    """Fares are counted by start, end and cents. Means are fractions, rounded once."""
    if not fares:
        return []
    mean = Fraction(sum(cents * count for (_, _, cents), count in fares.items()), fares.total())
    dear = defaultdict[tuple[str, str], Counter[int]](Counter)
    for (start, end, cents), count in fares.items():
        if cents > mean:
            dear[start, end][cents] += count
    rows = []
    for (start, end), counted in dear.items():
        total = sum(cents * count for cents, count in counted.items())
        rows.append((f"{start}-{end}", float(Fraction(total, 100 * counted.total())), max(counted)))
    return [(route, mean_fare, money(cents)) for route, mean_fare, cents in sorted(rows)]


def usual_fares(bases: Counter[tuple[str, int]]) -> list[tuple[str, str, int]]:
    """Fares are counted by airport and cents."""
    most = Counter[str]()
    for (airport, _), count in bases.items():
        most[airport] = max(most[airport], count)
    rows = sorted((airport, cents, count) for (airport, cents), count in bases.items() if count == most[airport])
    return [(airport, money(cents), count) for airport, cents, count in rows]


def money(cents: int) -> str:
    return f"{cents // 100}.{cents // 10 % 10}{cents % 10}"


def read_places(path: Path, counts: Counts) -> dict[str, Place]:
    """Of the airports that are known: the first row counts, and has to name a place on earth."""
    listed: dict[str, Place | None] = {}
    for code, latitude, longitude in read_rows(path, AIRPORT_COLUMNS, counts, needed=0, separator=";"):
        if code and code not in listed:
            listed[code] = place_at(fields.degrees(latitude), fields.degrees(longitude))
    return {code: place for code, place in listed.items() if place is not None}


def place_at(north: float | None, east: float | None) -> Place | None:
    return None if north is None or east is None or abs(north) > 90 else (north, east)


def read_flights(path: Path, counts: Counts) -> Iterator[Flight]:
    for leg, start, end, segments, duration, miles, base, total in read_rows(path, FLIGHT_COLUMNS, counts, NEEDED):
        yield Flight(
            leg=leg,
            start=start,
            end=end,
            stopovers=segments.split("||")[:-1],
            duration=duration,
            minutes=fields.minutes(duration),
            miles=fields.integer(miles),
            base_cents=fields.cents(base),
            total_cents=fields.cents(total),
        )
