"""The flights dataset: airports with a BOM, CRLF and semicolons, and itineraries in the 27 columns of the real file.

A journey is all of an itinerary but its legId, search date, fares and seats. Journeys are built once and flown many
times, so a row costs little more than the joining of ready texts, and durations and lists repeat as they really do.

Oddities go by a row's place, not by chance, so that a file of 800 rows already has every one of them. The real file has
none; behind the first 10,000 rows they are rare and without quotes, for a quote sends all rows around it the slow way.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from math import isqrt
from pathlib import Path

from infra.generate.draw import Draw
from infra.generate.files import Lines, Progress, line, write_all
from infra.generate.ratings import skewed

AIRPORT_HEADER = (
    "Airport Code;Airport Name;City Name;Country Name;Country Code;Latitude;Longitude;World Area Code;"
    "City Name geo_name_id;Country Name geo_name_id;coordinates\r\n"
)
HEADER = (
    "legId,searchDate,flightDate,startingAirport,destinationAirport,fareBasisCode,travelDuration,elapsedDays,"
    "isBasicEconomy,isRefundable,isNonStop,baseFare,totalFare,seatsRemaining,totalTravelDistance,"
    "segmentsDepartureTimeEpochSeconds,segmentsDepartureTimeRaw,segmentsArrivalTimeEpochSeconds,segmentsArrivalTimeRaw,"
    "segmentsArrivalAirportCode,segmentsDepartureAirportCode,segmentsAirlineName,segmentsAirlineCode,"
    "segmentsEquipmentDescription,segmentsDurationInSeconds,segmentsDistance,segmentsCabinCode\n"
)
COLUMNS = HEADER.strip().split(",")

# Code, latitude, longitude, hours behind UTC in summer: the 16 airports of the real file, and some to change at.
HUBS = (
    ("ATL", "33.636667", "-84.428056", 4),
    ("BOS", "42.363056", "-71.006389", 4),
    ("CLT", "35.213889", "-80.943056", 4),
    ("DEN", "39.861667", "-104.673056", 6),
    ("DFW", "32.896944", "-97.038056", 5),
    ("DTW", "42.2125", "-83.353333", 4),
    ("EWR", "40.6925", "-74.168611", 4),
    ("IAD", "38.944444", "-77.455833", 4),
    ("JFK", "40.639722", "-73.778889", 4),
    ("LAX", "33.9425", "-118.408056", 7),
    ("LGA", "40.777222", "-73.8725", 4),
    ("MIA", "25.793333", "-80.290556", 4),
    ("OAK", "37.721389", "-122.220833", 7),
    ("ORD", "41.978611", "-87.904722", 5),
    ("PHL", "39.871944", "-75.241111", 4),
    ("SFO", "37.618889", "-122.375", 7),
)
CHANGES = (
    ("BNA", "36.124444", "-86.678333", 5),
    ("MSP", "44.881944", "-93.221667", 5),
    ("SEA", "47.448889", "-122.309444", 7),
    ("SLC", "40.788333", "-111.977778", 6),
    ("STL", "38.747222", "-90.361389", 5),
    ("UIN", "39.942778", "-91.194444", 5),
)
AIRPORTS = HUBS + CHANGES
OTHER_AIRPORTS = 300  # that no flight goes to; two letters behind a Z
RARE, UNKNOWN, NOWHERE = "SJU", "QQQ", "XYY"  # an airport of odd rows only; one not listed; one without a place

SEGMENTS = (*(1,) * 30, *(2,) * 52, *(3,) * 10, *(4,) * 6, *(5,) * 2)  # of each hundred: 8 have three stopovers or more
AIRLINES = (
    *(("American Airlines", "AA"), ("Delta", "DL"), ("United", "UA"), ("JetBlue Airways", "B6")),
    *(("Spirit Airlines", "NK"), ("Alaska Airlines", "AS"), ("Boutique Air", "4B")),
)
EQUIPMENT = (
    "Boeing 737-800",
    "Airbus A321",
    "Embraer 175 (Enhanced Winglets)",
    "Boeing 717",
    "AIRBUS INDUSTRIE A320",
    "",
)
FIRST_DEPARTURE = 1_654_056_000  # 2022-06-01 04:00 UTC
FLIGHT_DAYS, FIRST_SEARCH, SEARCH_DAYS = 60, datetime(2022, 4, 16, tzinfo=UTC), 46  # all searches come before

FEWEST_JOURNEYS, MOST_JOURNEYS, ROWS_PER_JOURNEY = 500, 20_000, 4
FARES = 5_000
ROWS_AT_ONCE = 20_000  # some 20 MB of text
EARLY_ROWS, EARLY_EVERY, LATER_EVERY, ODD_AT = 10_000, 19, 997, 7

Row = dict[str, str]
Airport = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True)
class Journey:
    """The text of a row from its flight date up to the fares, and behind the seats; each with its commas."""

    before: str
    behind: str


def generate(folder: Path, rows: int, seed: int, progress: Progress = lambda file, rows, done: None) -> None:
    """So many itineraries, and airports to match."""
    airports = list(airport_lines(Draw(seed, "airports")))
    contents: dict[str, tuple[int, Lines]] = {
        "airports-codepublic.csv": (
            len(airports),
            iter([(len(airports), "\ufeff" + AIRPORT_HEADER + "".join(airports))]),
        ),
        "itineraries.csv": (rows, itinerary_lines(rows, Draw(seed, "itineraries"))),
    }
    write_all(folder, contents, progress)


# --- airports


def airport_lines(draw: Draw) -> Iterator[str]:
    for code, latitude, longitude, _ in AIRPORTS:
        name = f'"{code}; the ""big"" one"' if code == "ORD" else f"{code} International"
        yield airport_line(f" {code} " if code == "SEA" else code, latitude, longitude, name)
    yield airport_line(RARE, "18.439167", "-66.001944")
    yield airport_line(NOWHERE, "\\N", "-3.5")
    yield airport_line(NOWHERE, "40.5", "-3.5")  # too late: the first row counts
    yield airport_line("JFK", "0.0", "0.0")  # too late, again
    yield airport_line("", "1.5", "1.5")
    yield "just;four;fields;here\r\n"
    yield airport_line("ZZ1", "91.5", "0.0")
    yield airport_line("ZZ2", "12,5", "0.0") + "\r\n"  # an empty line follows
    for number in range(OTHER_AIRPORTS):
        code = "Z" + chr(65 + number // 26) + chr(65 + number % 26)
        yield airport_line(code, draw_degrees(draw, 89), draw_degrees(draw, 179), f"Aérodrome {number}")


def airport_line(code: str, latitude: str, longitude: str, name: str = "Field") -> str:
    fields = (code, name, code.strip().title(), "Somewhere", "SW", latitude, longitude, "906", "\\N", "6251999")
    return ";".join((*fields, f"{latitude}, {longitude}")) + "\r\n"


def draw_degrees(draw: Draw, limit: int) -> str:
    return f"{draw.between(-limit, limit)}.{draw.below(1_000_000):06d}"


# --- itineraries


def itinerary_lines(rows: int, draw: Draw) -> Lines:
    yield 0, HEADER
    count = min(MOST_JOURNEYS, max(FEWEST_JOURNEYS, rows // ROWS_PER_JOURNEY))
    journeys = [draw_journey(draw) for _ in range(count)]
    fares = [draw_fares(draw) for _ in range(FARES)]
    searches = [(FIRST_SEARCH + timedelta(days=day)).date().isoformat() for day in range(SEARCH_DAYS)]
    for first in range(0, rows, ROWS_AT_ONCE):
        some = min(ROWS_AT_ONCE, rows - first)
        legs = draw.words(4 * some).astype("<u4").tobytes().hex()
        choices = zip(
            (draw.words(some) % len(searches)).tolist(),
            (draw.words(some) % len(journeys)).tolist(),
            skewed(draw.words(some), len(fares)).tolist(),
            (draw.words(some) % 10).tolist(),
            strict=True,
        )
        lines = [
            f"{legs[32 * place : 32 * place + 32]},{searches[search]},{journeys[journey].before}{fares[fare]}{seats},"
            f"{journeys[journey].behind}"
            for place, (search, journey, fare, seats) in enumerate(choices)
        ]
        for place, oddity in odd_places(first, some):
            lines[place - first] = oddity(dict(zip(COLUMNS, lines[place - first].rstrip("\n").split(","), strict=True)))
        yield first + some, "".join(lines)


def draw_journey(draw: Draw) -> Journey:
    stops = draw_stops(draw)
    legs = list(pairwise(stops))
    distances = [miles(start, end) for start, end in legs]
    seconds = [60 * (30 + distance // 8 + draw.below(25)) for distance in distances]
    airlines = [draw.pick(AIRLINES) for _ in legs]
    at = FIRST_DEPARTURE + 86_400 * draw.below(FLIGHT_DAYS) + 300 * draw.below(200)
    departures, arrivals = [], []
    for flown in seconds:
        departures.append(at)
        arrivals.append(at + flown)
        at += flown + 60 * draw.between(35, 240)
    first, last = local(departures[0], stops[0]), local(arrivals[-1], stops[-1])
    basis = f"{draw.pick('QHLVMTKY')}{draw.below(10**7):07d}"
    before = (
        *(first[:10], stops[0][0], stops[-1][0], basis, duration((arrivals[-1] - departures[0]) // 60)),
        *("0" if first[:10] == last[:10] else "1", str(draw.chance(5)), "False", str(len(legs) == 1), ""),
    )
    is_known = not draw.chance(7)
    behind = (
        f"{sum(distances)}{'.0' if draw.chance(4) else ''}" if is_known else "",
        joined(departures),
        joined(local(then, start) for then, (start, _) in zip(departures, legs, strict=True)),
        joined(arrivals),
        joined(local(then, end) for then, (_, end) in zip(arrivals, legs, strict=True)),
        joined(end[0] for _, end in legs),
        joined(start[0] for start, _ in legs),
        joined(name for name, _ in airlines),
        joined(code for _, code in airlines),
        joined(draw.pick(EQUIPMENT) for _ in legs),
        joined(seconds),
        joined(distances if is_known else [None] * len(legs)),
        joined(["coach"] * len(legs)),
    )
    return Journey(",".join(before), ",".join(behind) + "\n")


def draw_stops(draw: Draw) -> list[Airport]:
    """Of three ways, the shortest: few flights go round the country."""
    start, end = draw.some(HUBS, 2)
    between = [airport for airport in AIRPORTS if airport not in (start, end)]
    count = draw.pick(SEGMENTS) - 1
    ways = [[start, *draw.some(between, count), end] for _ in range(3)]
    return min(ways, key=lambda way: sum(miles(*leg) for leg in pairwise(way)))


def miles(start: Airport, end: Airport) -> int:
    """About so many, on a flat map, and in integers: all machines agree on it."""
    north, east = thousandths(start[1]) - thousandths(end[1]), thousandths(start[2]) - thousandths(end[2])
    return isqrt((69 * north) ** 2 + (54 * east) ** 2) // 1000


def thousandths(degrees: str) -> int:
    whole, _, fraction = degrees.partition(".")
    return int(whole + fraction.ljust(3, "0")[:3])


def local(epoch: int, airport: Airport) -> str:
    at = datetime.fromtimestamp(epoch, timezone(timedelta(hours=-airport[3])))
    return at.isoformat(timespec="milliseconds")


def duration(minutes: int) -> str:
    """As the real file writes it: parts that are zero are left out."""
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = f"{hours}H" * (hours > 0) + f"{rest}M" * (rest > 0)
    return (f"P{days}DT" if days else "PT") + parts


def joined(values: Iterable[object]) -> str:
    return "||".join(map(str, values))


def draw_fares(draw: Draw) -> str:
    """Base and total, with their commas; some lose a zero at the end."""
    base = 2_000 + 93 * draw.below(900)
    total = base + base * 75 // 1000 + draw.pick((1_120, 1_860, 2_930))
    texts = (f"{cents // 100}.{cents % 100:02d}" for cents in (base, total))
    return "".join((text[:-1] if text.endswith("0") and draw.chance(30) else text) + "," for text in texts)


# --- odd rows


def as_line(row: Row, **changed: str) -> str:
    return line({**row, **changed}.values())


def as_long(row: Row, **changed: str) -> str:
    """A flight of queries 1 and 3 for sure."""
    return as_line(row, segmentsArrivalAirportCode="STL||UIN||BNA||ORD", **changed)


SAME_LEG, SAME_ENDS = "0" * 32, {"startingAirport": "BOS", "destinationAirport": "LAX"}

# The lines that stand in for a row, in turn.
ODD: tuple[Callable[[Row], str], ...] = (
    lambda row: as_line(row, legId=""),
    lambda row: as_line(row, startingAirport=" "),
    lambda row: as_line(row, destinationAirport=""),
    lambda row: line(list(row.values())[1:]),  # a field is missing
    lambda row: line([*row.values(), "more"]),
    lambda row: as_long(row, travelDuration="PT"),
    lambda row: as_long(row, travelDuration="P1D"),
    lambda row: as_long(row, travelDuration="P1DT"),
    lambda row: as_long(row, travelDuration="PT4H19M30S"),
    lambda row: as_long(row, travelDuration="", totalFare="612.345"),
    lambda row: as_long(row, travelDuration="PT061M", totalFare=""),
    lambda row: as_long(row, travelDuration="PT1H1M", totalFare="0"),  # with the one above, a tie in query 3
    lambda row: as_long(row, legId=SAME_LEG, travelDuration="PT9H", totalFare="500.00", **SAME_ENDS),  # listed often
    lambda row: as_long(row, legId=SAME_LEG, travelDuration="PT9H", totalFare="99.50", **SAME_ENDS),
    lambda row: as_line(row, segmentsArrivalAirportCode="A||||B||", totalTravelDistance="n/a"),
    lambda row: as_line(row, segmentsArrivalAirportCode="", totalTravelDistance="1943.5"),
    lambda row: as_line(row, totalTravelDistance="99999.00"),
    lambda row: as_line(row, totalTravelDistance="99999999999999999999"),
    lambda row: as_line(row, totalTravelDistance="-5", baseFare="-5.00"),
    lambda row: as_line(row, totalFare="1028.610", baseFare="1e3"),
    lambda row: as_line(row, totalFare="+700.00", baseFare="00320.00"),
    lambda row: as_line(row, totalFare="1200", baseFare=""),
    lambda row: as_line(row, startingAirport=UNKNOWN, totalTravelDistance="99999"),
    lambda row: as_line(row, destinationAirport=NOWHERE, totalTravelDistance="99999"),
    lambda row: as_line(row, startingAirport=row["destinationAirport"], totalTravelDistance="1"),
    lambda row: as_line(row, startingAirport=row["destinationAirport"], totalTravelDistance="0"),
    lambda row: as_line(row, startingAirport=RARE, baseFare=f"{int(row['legId'][:4], 16)}.50"),  # all fares tie
    lambda row: as_line(row, startingAirport=RARE, totalTravelDistance="99999"),
    lambda row: as_line({name: f" {field}\t" for name, field in row.items()}),
    lambda row: as_line(row, startingAirport=f"\u00a0{row['startingAirport']}", totalFare=f"{row['totalFare']}\u3000"),
    lambda row: as_line(row, fareBasisCode="ñandú"),
    lambda row: line(row.values(), end="\r\n"),
)
QUOTED: tuple[Callable[[Row], str], ...] = (
    lambda row: as_line(row, segmentsEquipmentDescription='Boeing 737, the "Max"'),
    lambda row: as_line(row, segmentsAirlineName="Two\nlines", legId=f'"{row["legId"]}"'),
    lambda row: ",".join(f'"{field}"' for field in row.values()) + "\n",
    lambda row: as_line(row, startingAirport="B,S", destinationAirport='"L"', totalTravelDistance="99999"),
    lambda row: as_long(row, startingAirport="B,S", destinationAirport='"L"', travelDuration="PT5H"),
    lambda row: as_line(row) + "\n",  # an empty line follows
)


def odd_places(first: int, count: int) -> Iterator[tuple[int, Callable[[Row], str]]]:
    """Those of so many rows that are odd, and how."""
    for place in range(first, first + count):
        if place < EARLY_ROWS and place % EARLY_EVERY == ODD_AT:
            yield place, (ODD + QUOTED)[place // EARLY_EVERY % len(ODD + QUOTED)]
        elif place >= EARLY_ROWS and place % LATER_EVERY == ODD_AT:
            yield place, ODD[place // LATER_EVERY % len(ODD)]
