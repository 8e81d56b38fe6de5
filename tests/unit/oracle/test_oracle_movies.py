"""The five queries on films that are counted by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from infra.oracle import movies
from infra.oracle.movies import Film, Label
from infra.oracle.rows import Counts

ARGENTINA, SPAIN, USA = "Argentina", "Spain", "United States of America"


def film(movie_id: int, *countries: str, year: int | None = 2005, title: str = "", **more: object) -> Film:
    plain = Film(
        id=movie_id,
        title=title or f"film {movie_id}",
        genres=[],
        year=year,
        overview="",
        countries=list(countries),
        languages=["English"],
        budget=None,
        revenue=None,
    )
    return replace(plain, **more)  # type: ignore[arg-type]  # the fields named by a test


def test_q1_wants_both_countries_and_the_decade() -> None:
    films = [
        film(30, SPAIN, ARGENTINA, year=2009, genres=["Drama", "Crime"]),
        film(4, ARGENTINA, "France", SPAIN, year=2000),
        film(5, ARGENTINA, SPAIN, year=2010),
        film(6, ARGENTINA, SPAIN, year=1999),
        film(7, ARGENTINA, SPAIN, year=None),
        film(8, ARGENTINA),
        film(9, SPAIN, "argentina"),
    ]
    assert movies.argentina_with_spain(films) == [(4, "film 4", ""), (30, "film 30", "Drama|Crime")]


def test_q1_keeps_duplicates_and_ties_go_by_title_then_genres() -> None:
    films = [
        film(1, ARGENTINA, SPAIN, title="é"),
        film(1, ARGENTINA, SPAIN, title="z", genres=["B"]),
        film(1, ARGENTINA, SPAIN, title="z", genres=["A"]),
        film(1, ARGENTINA, SPAIN, title="z", genres=["A"]),
    ]
    assert movies.argentina_with_spain(films) == [(1, "z", "A"), (1, "z", "A"), (1, "z", "B"), (1, "é", "")]


def test_q2_sums_films_of_exactly_one_country() -> None:
    films = [
        film(1, "B", budget=10),
        film(2, "B", budget=5, year=None),
        film(3, "A", budget=15),
        film(4, "C", budget=2**63 - 1),
        film(5, "C", budget=2**63 - 1),
        film(6, "D", "D", budget=99),  # listed twice is two countries
        film(7, "E", budget=None),
        film(8, budget=99),
        film(9, "F", budget=0),
        film(10, "G", budget=1),
        film(11, "H", budget=0),
    ]
    expected = [("C", 2**64 - 2), ("A", 15), ("B", 15), ("G", 1), ("F", 0)]
    assert movies.countries_by_budget(films) == expected


def test_q3_finds_the_extremes_among_recent_argentine_films() -> None:
    films = [film(1, ARGENTINA), film(2, ARGENTINA, SPAIN, year=2000), film(3, SPAIN), film(4, ARGENTINA, year=1999)]
    ratings = [(1, 10), (1, 10), (1, 9), (2, 1), (2, 2), (2, 2), (3, 10), (4, 1), (99, 10)]
    assert movies.best_and_worst(films, ratings) == [
        ("highest", 1, "film 1", 29 / 6),
        ("lowest", 2, "film 2", 5 / 6),
    ]


def test_q3_the_lowest_id_then_title_wins_at_both_ends() -> None:
    films = [film(2, ARGENTINA), film(10, ARGENTINA), film(1, ARGENTINA, title="b"), film(1, ARGENTINA, title="a")]
    ratings = [(10, 6), (2, 6), (1, 5), (1, 7)]
    assert movies.best_and_worst(films, ratings) == [("highest", 1, "a", 3.0), ("lowest", 1, "a", 3.0)]


def test_q3_is_empty_when_no_film_is_rated() -> None:
    assert movies.best_and_worst([film(1, ARGENTINA)], [(2, 10)]) == []


def test_q4_counts_cast_entries_of_rated_and_unrated_films() -> None:
    films = [film(1, ARGENTINA), film(2, ARGENTINA, year=1999), film(3, ARGENTINA, year=None), film(4, SPAIN)]
    casts = [(1, ["Ana", "Ana", "Bea", ""]), (1, ["Bea"]), (2, ["Ana"]), (3, ["Ana"]), (4, ["Ana"]), (5, ["Ana"])]
    assert movies.busiest_actors(films, casts) == [("Ana", 2), ("Bea", 2), ("", 1)]


def test_q4_a_film_listed_twice_counts_its_cast_twice() -> None:
    assert movies.busiest_actors([film(1, ARGENTINA)] * 2, [(1, ["Ana"]), (1, ["Ana"])]) == [("Ana", 4)]


def test_q4_has_ten_rows_at_most_and_ties_go_by_code_point() -> None:
    casts = [(1, [*"bacdefghijk", "Z", "é"])]
    found = [actor for actor, _ in movies.busiest_actors([film(1, ARGENTINA)], casts)]
    assert found == ["Z", *"abcdefghi"]


def label_of(overview: str) -> Label:
    return "POSITIVE" if overview == "good" else "NEGATIVE"


def test_q5_divides_doubles_and_takes_the_mean_of_each_label() -> None:
    films = [
        film(1, USA, budget=3, revenue=1.0, overview="good"),
        film(2, "France", USA, year=2000, budget=3, revenue=2.5, overview="good"),
        film(3, USA, budget=2, revenue=1.0, overview="bad"),
        film(4, USA, budget=0, revenue=1.0),
        film(5, USA, budget=1, revenue=0.0),
        film(6, USA, budget=None, revenue=1.0),
        film(7, USA, budget=1, revenue=None),
    ]
    expected = [("NEGATIVE", 1, 0.5), ("POSITIVE", 2, (1 / 3 + 2.5 / 3) / 2)]
    assert movies.rate_by_label(films, "us", label_of) == expected


def test_q5_scope_us_wants_english_america_and_the_year_and_scope_all_does_not() -> None:
    films = [
        film(1, USA, year=1999, budget=1, revenue=1.0),
        film(2, USA, year=None, budget=1, revenue=2.0),
        film(3, "Canada", budget=1, revenue=3.0),
        film(4, USA, languages=["Español"], budget=1, revenue=4.0),
    ]
    assert movies.rate_by_label(films, "us", label_of) == []
    assert movies.rate_by_label(films, "all", label_of) == [("NEGATIVE", 4, 2.5)]


def test_q5_sums_exactly() -> None:
    rates = [1e16, 1.0, 1.0, 1e-16]
    films = [film(1, USA, budget=1, revenue=rate) for rate in rates]
    assert movies.rate_by_label(films, "us", label_of) == [("NEGATIVE", 4, 10000000000000002 / 4)]
    assert movies.mean([1.7e308, 1.7e308]) == float("inf")


HEADER = "overview,revenue,budget,spoken_languages,production_countries,release_date,genres,title,id,extra\n"
ROW = "good,6,3,[{'name': 'English'}],[{'name': 'Argentina'}],2001-02-03,[{'name': 'Drama'}], A ,7.0,\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    def without(field: str) -> str:
        return ROW.replace(field, "", 1)

    bad = [without(field) for field in ("good", "6", "3", "[{'name': 'English'}]", "2001-02-03", " A ", "7.0")]
    bad += ["just one\n", ROW.replace("7.0", "tt7"), ROW.replace("7.0", "9223372036854775808")]
    (tmp_path / "movies_metadata.csv").write_text(HEADER + ROW + "".join(bad) + ROW.replace("2001-02-03", "1"))
    (tmp_path / "ratings.csv").write_bytes(
        b"userId,movieId,rating,timestamp\r\n,7,4.5,1\r\n1,7.0,4,1\r\n1,abc,1,1\r\n1,7,5.5,1\r\n1,7,,1\r\n1,,1,1\r\n1,7,1,\r\n"
    )
    (tmp_path / "credits.csv").write_text(
        "cast,crew,id\n\"[{'name': 'Ana'}, {'name': 'Bea'}]\",,7\n[],,7\nbroken,,7\n,[],7\n[],[],\n[],[],x\n"
    )
    return tmp_path


def test_the_whole_of_a_small_folder(folder: Path) -> None:
    answers = movies.answer(folder, "all", label_of)
    assert answers.files == {
        "movies-q1.csv": b"id,title,genres\n",
        "movies-q2.csv": b"country,budget\nArgentina,6\n",
        "movies-q3.csv": b"extreme,id,title,mean_rating\nhighest,7,A,4.25\nlowest,7,A,4.25\n",
        "movies-q4.csv": b"actor,appearances\nAna,1\nBea,1\n",
        "movies-q5.csv": b"label,films,mean_rate\nPOSITIVE,2,2.0\n",
    }
    assert answers.counts == {
        "movies_metadata.csv": Counts(rows=12, rejected=10),
        "ratings.csv": Counts(rows=7, rejected=3),
        "credits.csv": Counts(rows=6, rejected=2),
    }
