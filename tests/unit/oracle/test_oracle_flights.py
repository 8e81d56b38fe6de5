"""The five queries on flights that are counted by hand; and generated flights: the same bytes for a seed."""

import csv
import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from cauce.errors import ConfigError
from infra.generate import flights as generator
from infra.generate.flights import generate
from infra.oracle import fields, flights
from infra.oracle.flights import Distances, Flight
from infra.oracle.rows import Counts

PLAIN = Flight(
    leg="1",
    start="LAX",
    end="SFO",
    stopovers=["A", "B", "C"],
    duration="PT1H",
    minutes=60,
    miles=None,
    base_cents=None,
    total_cents=100,
)


def flight(leg: str, **changed: object) -> Flight:
    return replace(PLAIN, leg=leg, **changed)  # type: ignore[arg-type]  # the fields named by a test


def test_q1_wants_a_fare_and_ties_go_by_route_fare_and_stopovers() -> None:
    listed = [
        flight("b"),
        flight("a", total_cents=None),
        flight("a", total_cents=1000),
        flight("a", total_cents=999, stopovers=["Z", "B", "C"]),
        flight("a", total_cents=999),
        flight("a", total_cents=999),
        flight("a", start="A", end="B"),
    ]
    assert flights.long_flights(listed) == [
        ("a", "A-B", "1.00", "A|B|C"),
        ("a", "LAX-SFO", "9.99", "A|B|C"),
        ("a", "LAX-SFO", "9.99", "A|B|C"),
        ("a", "LAX-SFO", "9.99", "Z|B|C"),
        ("a", "LAX-SFO", "10.00", "A|B|C"),
        ("b", "LAX-SFO", "1.00", "A|B|C"),
    ]
    assert [flights.is_long(flight("a", stopovers=list("ABCD")[:count])) for count in range(5)] == [False] * 3 + [
        True
    ] * 2


def test_q2_compares_with_four_times_the_direct_distance() -> None:
    distances = Distances({"LAX": (33.9425, -118.408056), "SFO": (37.618889, -122.375)})
    assert distances.between("LAX", "SFO") == pytest.approx(337.43, abs=0.01)
    assert (distances.between("SFO", "SFO"), distances.between("SFO", "?"), distances.between("?", "?")) == (
        0,
        None,
        None,
    )

    def is_detour(miles: int | None, start: str = "LAX", end: str = "SFO") -> bool:
        return flights.is_detour(flight("a", miles=miles, start=start, end=end), distances)

    assert [is_detour(miles) for miles in (None, 1349, 1350, 2**63 - 1)] == [False, False, True, True]
    assert [is_detour(miles, "LAX", "LAX") for miles in (-1, 0, 1)] == [False, False, True]
    assert [is_detour(9999, "LAX", "?"), is_detour(9999, "?", "?")] == [False, False]


def test_q2_is_sorted_by_leg_route_and_distance_by_value() -> None:
    listed = [flight("b", miles=1), flight("a", miles=10), flight("a", miles=9), flight("a", miles=99, start="A")]
    assert flights.detours(listed) == [
        ("a", "A-SFO", 99),
        ("a", "LAX-SFO", 9),
        ("a", "LAX-SFO", 10),
        ("b", "LAX-SFO", 1),
    ]


def test_q3_takes_the_two_fastest_of_a_pair_with_or_without_a_fare() -> None:
    listed = [
        flight("c", minutes=61, duration="PT1H1M"),
        flight("b", minutes=60, duration="PT60M", total_cents=None),
        flight("b", minutes=60, duration="PT1H"),
        flight("a", minutes=None, duration="PT"),
        flight("z", start="A", minutes=999, duration="PT999M"),
    ]
    assert flights.fastest(listed) == [
        ("A-SFO", "z", "A|B|C", "PT999M"),
        ("LAX-SFO", "b", "A|B|C", "PT1H"),
        ("LAX-SFO", "b", "A|B|C", "PT60M"),
    ]


def test_q3_and_q4_take_pairs_that_are_written_alike_for_two_routes() -> None:
    listed = [flight(leg, start=start, end=end) for leg in "abc" for start, end in (("A-B", "C"), ("A", "B-C"))]
    assert [(route, leg) for route, leg, _, _ in flights.fastest(listed)] == [("A-B-C", leg) for leg in "aabb"]
    fares = Counter({("A-B", "C", 300): 1, ("A", "B-C", 200): 1, ("D", "E", 0): 2})
    assert flights.dear_routes(fares) == [("A-B-C", 2.0, "2.00"), ("A-B-C", 3.0, "3.00")]


def test_q4_compares_with_the_mean_of_all_exactly() -> None:
    fares = Counter({("A", "B", 300): 2, ("A", "B", 301): 1, ("A", "B", 410): 3, ("B", "C", 190): 1})
    assert flights.dear_routes(fares) == [("A-B", 4.1, "4.10")]  # the mean is 317.3…
    many = 2**60
    fares = Counter({("A", "B", many): 3, ("A", "C", many + 1): 1, ("A", "D", many - 1): 1})
    assert flights.dear_routes(fares) == [("A-C", (many + 1) / 100, "11529215046068469.77")]
    assert flights.dear_routes(Counter()) == []


def test_q5_has_all_the_most_frequent_fares_in_the_order_of_their_value() -> None:
    bases = Counter({("B", 1000): 2, ("B", 950): 2, ("B", 1): 1, ("A", 5): 1})
    assert flights.usual_fares(bases) == [("A", "0.05", 1), ("B", "9.50", 2), ("B", "10.00", 2)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1028.61", 102861), ("308.6", 30860), ("320", 32000), ("0", 0), ("007.05", 705)),
        *(("92233720368547758.07", 2**63 - 1), ("92233720368547758.08", None), ("9" * 5000, None)),
        *((text, None) for text in ("", "12.340", "-1", "-0", "+1", "1e3", "5.", ".5", "1_0", "٥", "1.2.3", "nan")),
    ],
)
def test_a_fare_in_cents(text: str, value: int | None) -> None:
    assert fields.cents(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("PT4H19M", 259), ("P1DT8M", 1448), ("P1DT", 1440), ("PT0M", 0), ("PT" + "0" * 5000 + "7M", 7)),
        *(
            (f"PT{2**63 - 1}M", 2**63 - 1),
            (f"PT{2**63}M", None),
            (f"P{2**60}DT", None),
            ("PT" + "9" * 5000 + "M", None),
        ),
        *(
            (text, None)
            for text in ("", "P", "PT", "P1D", "T1H", "PT1M1H", "PT1H1M1S", "pt1h", "PT1.0H", "PT-1H", "PT٥H")
        ),
    ],
)
def test_a_duration_in_minutes(text: str, value: int | None) -> None:
    assert fields.minutes(text) == value


def test_degrees() -> None:
    texts = ["69.116667", "-105", "-0", "9" * 400, "1e1", "\\N", "", "12,5", ".5"]
    assert [fields.degrees(text) for text in texts] == [69.116667, -105.0, 0.0, *[None] * 6]


AIRPORTS = """\ufeffName;Airport Code;Longitude;Latitude
"x; y";LAX;-118.408056;33.9425\r
;" SFO ";-122.375;37.618889
;SFO;0;0

;BAD;0;91
;BAD;0;0
;;0;0
too;few
"""
HEADER = (
    "totalFare,baseFare,totalTravelDistance,travelDuration,segmentsArrivalAirportCode,destinationAirport,"
    "startingAirport,legId,extra\n"
)
ROWS = """ 2.00 ,1.5,1350.0,PT1H,A||B||C||SFO,SFO,LAX, a ,
3,,99999,PT,A||B||C||BAD,BAD,LAX,b,
1.00,1.50,,,SFO,SFO,LAX,c,

x,x,x,x,,SFO,LAX,d,
1,1,1,1,1,SFO,LAX,,
1,1,1,1,1,SFO,,e,
1,1,1,1,1, ,LAX,e,
1,1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "airports-codepublic.csv").write_bytes(AIRPORTS.encode() + b";\xff;0;0\n")
    (tmp_path / "itineraries.csv").write_text(HEADER + ROWS)
    return tmp_path


def test_the_whole_of_a_small_folder(folder: Path) -> None:
    answers = flights.answer(folder)
    assert answers.files == {
        "flights-q1.csv": b"leg_id,route,total_fare,stopovers\na,LAX-SFO,2.00,A|B|C\nb,LAX-BAD,3.00,A|B|C\n",
        "flights-q2.csv": b"leg_id,route,travel_distance\na,LAX-SFO,1350\n",
        "flights-q3.csv": b"route,leg_id,stopovers,duration\nLAX-SFO,a,A|B|C,PT1H\n",
        "flights-q4.csv": b"route,mean_fare,max_fare\nLAX-BAD,3.0,3.00\n",
        "flights-q5.csv": b"airport,base_fare,flights\nLAX,1.50,2\n",
    }
    assert answers.counts == {
        "airports-codepublic.csv": Counts(rows=8, rejected=2),
        "itineraries.csv": Counts(rows=8, rejected=4),
    }


def test_files_that_cannot_be_read_are_said_in_a_sentence(folder: Path) -> None:
    airports, itineraries = folder / "airports-codepublic.csv", folder / "itineraries.csv"
    airports.write_text('Airport Code;Latitude;Longitude\n"A;1;1\n')
    with pytest.raises(ConfigError, match="never closed"):
        flights.answer(folder)
    airports.write_text("Airport Code;Latitude\n")
    with pytest.raises(ConfigError, match="no column Longitude"):
        flights.answer(folder)
    airports.write_text(AIRPORTS)
    itineraries.unlink()
    with pytest.raises(ConfigError, match=r"itineraries\.csv: No such file"):
        flights.answer(folder)


# --- generated files


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    generate(folder, rows=2000, seed=7)
    return folder


def read(path: Path, separator: str = ",") -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [row for row in csv.reader(file, delimiter=separator) if row]


def test_a_seed_means_the_same_bytes_for_ever(generated: Path) -> None:
    """If this fails, files that others generated before can no longer be made again: change the hash knowingly."""
    digest = hashlib.sha256(b"".join((generated / name).read_bytes() for name in flights.FILES)).hexdigest()
    assert digest == "53c205d4cbb1158d893cd56c46bea029c8132c8b750c961307441d6f4d6244ce"


def test_another_seed_means_other_bytes(generated: Path, tmp_path: Path) -> None:
    generate(tmp_path, rows=2000, seed=8)
    for name in flights.FILES:
        assert (tmp_path / name).read_bytes() != (generated / name).read_bytes()


def test_the_files_have_the_shape_of_the_real_ones(generated: Path) -> None:
    header, *rows = read(generated / "itineraries.csv")
    assert (len(header), len(rows)) == (27, 2000)
    assert 0.98 * len(rows) < sum(len(row) == 27 for row in rows) < len(rows)
    segments = [row[header.index("segmentsArrivalAirportCode")].count("||") for row in rows if len(row) == 27]
    assert 0.05 < sum(count >= 3 for count in segments) / len(rows) < 0.15
    content = (generated / "airports-codepublic.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbfAirport Code;")
    assert content.count(b"\n") == content.count(b"\r\n")
    codes = [row[0] for row in read(generated / "airports-codepublic.csv", ";")]
    assert (codes.count("JFK"), codes.count(generator.NOWHERE), codes.count(generator.UNKNOWN)) == (2, 2, 0)


@pytest.mark.parametrize("seed", range(3))
def test_every_query_has_rows_and_every_file_rejected_ones(tmp_path: Path, seed: int) -> None:
    generate(tmp_path, rows=1000, seed=seed)
    answers = flights.answer(tmp_path)
    lines = {name: content.decode().splitlines()[1:] for name, content in answers.files.items()}
    assert all(len(each) >= 10 for each in lines.values())
    assert all(0 < count.rejected < count.rows / 20 for count in answers.counts.values())
    rare = [line for line in lines["flights-q5.csv"] if line.startswith(f"{generator.RARE},")]
    assert len(rare) > 1, "fares that tie"
    twice = [line for line in lines["flights-q1.csv"] if line.startswith(generator.SAME_LEG)]
    assert len(twice) > len(set(twice)), "the same flight listed twice"


def test_progress_ends_at_the_number_of_rows(tmp_path: Path) -> None:
    seen: dict[str, tuple[int, int]] = {}
    generate(tmp_path, 50, 1, lambda file, rows, done: seen.update({file: (rows, done)}))
    assert seen["itineraries.csv"] == (50, 50)
    assert seen["airports-codepublic.csv"][0] == seen["airports-codepublic.csv"][1] > 300


def test_later_odd_rows_have_no_quotes_and_are_few() -> None:
    early = list(generator.odd_places(0, generator.EARLY_ROWS))
    later = list(generator.odd_places(generator.EARLY_ROWS, 100_000))
    assert {oddity for _, oddity in early} == {*generator.ODD, *generator.QUOTED}
    assert {oddity for _, oddity in later} == {*generator.ODD}
    assert len(later) in (100, 101)
