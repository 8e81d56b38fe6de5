"""The five answers on small examples: conditions, order and ties, and no rows at all."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from queries.datasets import DATASETS
from queries.model import Given, Options, Query
from queries.movies import CREDITS, MOVIES, MOVIES_DATASET, OVERVIEWS, Q1, Q2, Q3, Q4, Q5, RATINGS
from tests.unit.queries.pipeline import answer, batch

ALL = Options(scope="all")
US = "United States of America"


def listed(*names: str) -> str:
    return repr([{"id": number, "name": name} for number, name in enumerate(names)])


def film(  # one argument for each field that a query looks at
    movie_id: int,
    *countries: str,
    title: str = "T",
    genres: Sequence[str] = (),
    date: str = "2005-01-01",
    languages: Sequence[str] = ("English",),
    budget: str = "1",
    revenue: str = "1",
) -> list[str]:
    lists = listed(*countries), listed(*languages)
    return [str(movie_id), title, listed(*genres), date, f"about {movie_id}", *lists, budget, revenue]


def films(*rows: list[str]) -> dict[str, pa.Table]:
    return {"movies": batch(MOVIES, rows)}


def rated(*rows: tuple[int, float]) -> dict[str, pa.Table]:
    return {"ratings": batch(RATINGS, [(str(movie_id), str(stars), "0") for movie_id, stars in rows])}


def cast(*rows: tuple[int, Sequence[str]]) -> dict[str, pa.Table]:
    return {"credits": batch(CREDITS, [(str(movie_id), listed(*names)) for movie_id, names in rows])}


def selected(rows: dict[str, pa.Table], options: Options) -> pa.Table:
    return MOVIES_DATASET.derived[0].select(rows["movies"], options)


def labelled(rates: Sequence[tuple[str, float]]) -> dict[str, pa.Table]:
    table = pa.table({"movie_id": [1] * len(rates), "overview": [""] * len(rates), "rate": [rate for _, rate in rates]})
    return {"overviews": table.append_column("label", pa.array([label for label, _ in rates], pa.string()))}


def test_query_1_takes_films_of_both_countries_from_2000_to_2009_by_id() -> None:
    both = ("Spain", "France", "Argentina")
    rows = films(
        film(10, *both, title="Ten", genres=("Drama", "Crime")),
        film(9, *both, date="2000-01-01"),
        film(11, *both, date="2009-12-31", title="a, b"),
        film(1, *both, date="1999-12-31"),
        film(2, *both, date="2010-01-01"),
        film(3, *both, date="1"),
        film(4, "Spain"),
        film(5, "Argentina", "Argentina"),
        film(6, "argentina", "Spain "),
    )
    assert answer(Q1, rows) == [("9", "T", ""), ("10", "Ten", "Drama|Crime"), ("11", "a, b", "")]


def test_query_1_keeps_duplicates_and_sorts_ties_by_title_then_genres() -> None:
    both = ("Argentina", "Spain")
    rows = films(
        film(-1, *both),
        film(1, *both, title="b"),
        film(1, *both, title="a", genres=("Z",)),
        film(1, *both, title="a", genres=("B",)),
        film(1, *both, title="a", genres=("B",)),
    )
    assert answer(Q1, rows) == [("-1", "T", ""), ("1", "a", "B"), ("1", "a", "B"), ("1", "a", "Z"), ("1", "b", "")]


def test_query_2_sums_budgets_of_any_size_over_films_of_one_country() -> None:
    rows = films(
        film(1, "B", budget=str(10**300)),
        film(2, "B", budget="1", date="never"),
        film(3, "A", budget="7.0"),
        film(4, "A", budget="x"),
        film(5, "A", "B", budget="5"),
        film(6, "C", "C", budget="5"),
        film(7, budget="5"),
        film(8, "", budget="0"),
    )
    assert answer(Q2, rows) == [("B", str(10**300 + 1)), ("A", "7"), ("", "0")]


def test_query_2_has_five_countries_and_the_name_decides_a_tie() -> None:
    rows = films(*(film(number, name, budget="3") for number, name in enumerate("gébfaz")), film(9, "x", budget="4"))
    assert answer(Q2, rows) == [("x", "4"), ("a", "3"), ("b", "3"), ("f", "3"), ("g", "3")]


def test_query_3_finds_the_best_and_the_worst_rated_film() -> None:
    rows = films(
        film(1, "Argentina", title="Best"),
        film(2, "Argentina", "Spain", title="Worst", date="2000-01-01"),
        film(3, "Argentina", title="Old", date="1999-12-31"),
        film(4, "Spain", title="Elsewhere"),
        film(5, "Argentina", title="Unrated"),
    )
    ratings = rated((1, 4), (1, 3.5), (1, 2.5), (2, 0.5), (2, 2.5), (3, 5), (4, 5), (3, 0.5), (6, 0.5))
    assert answer(Q3, rows | ratings) == [
        ("highest", "1", "Best", "3.3333333333333335"),
        ("lowest", "2", "Worst", "1.5"),
    ]


def test_query_3_gives_a_tie_to_the_lowest_id_then_title() -> None:
    rows = films(
        *(film(number, "Argentina", title=title) for number, title in [(7, "c"), (5, "b"), (5, "a"), (5, "b")])
    )
    ratings = rated((7, 4), (5, 4), (5, 4))
    assert answer(Q3, rows | ratings) == [("highest", "5", "a", "4.0"), ("lowest", "5", "a", "4.0")]


def test_query_3_is_empty_when_no_film_is_rated() -> None:
    assert answer(Q3, films(film(1, "Argentina")) | rated((2, 4))) == []


def test_query_3_compares_means_that_are_the_same_double() -> None:
    """60,000,001 ratings and more would be needed for such a pair: here the sums come ready."""
    rows = Q3.inputs[0].fold(films(film(1, "Argentina"), film(2, "Argentina", title="U"))["movies"], Given(Options()))
    many = 2**60
    sums = pa.table({"movie_id": [1, 2], "half_stars": [many, many + 1], "rows": [many // 4, many // 4]})
    partial = Q3.partial({"movies": rows, "ratings": sums}, Options())
    assert list(Q3.answer(partial, Options())) == [("highest", "2", "U", "2.0"), ("lowest", "1", "T", "2.0")]


def test_query_4_counts_one_for_every_cast_entry_of_every_listing() -> None:
    rows = films(
        film(1, "Argentina"),
        film(2, "Argentina"),
        film(2, "Argentina", title="listed again"),
        film(3, "Argentina", date="1999-12-31"),
        film(4, "Spain"),
    )
    casts = cast(
        (1, ["Ana", "Ana", ""]), (2, ["Bo"]), (2, ["Bo", "Cy"]), (3, ["Old"]), (4, ["Other"]), (5, ["No film"])
    )
    assert answer(Q4, rows | casts) == [("Bo", "4"), ("Ana", "2"), ("Cy", "2"), ("", "1")]


def test_query_4_has_ten_actors_and_the_name_decides_a_tie() -> None:
    casts = cast((1, [*"kjihgfedcba", "z", "z"]))
    assert answer(Q4, films(film(1, "Argentina")) | casts) == [("z", "2"), *((name, "1") for name in "abcdefghi")]


def test_query_5_takes_english_films_of_the_united_states_since_2000_that_spent_and_earned() -> None:
    rows = films(
        film(1, "Spain", US, budget="2", revenue="5.0"),
        film(2, US, date="1999-12-31"),
        film(3, US, languages=("Español",)),
        film(4, "Spain"),
        film(5, US, date="?"),
        film(6, US, budget="0"),
        film(7, US, revenue="0.00"),
        film(8, US, budget="?"),
        film(9, US, revenue="-1"),
        film(10, US, revenue="0." + "0" * 400 + "1"),
    )
    assert selected(rows, Options()).to_pylist() == [
        {"movie_id": 1, "overview": "about 1", "rate": 2.5},
        {"movie_id": 10, "overview": "about 10", "rate": 0.0},
    ]
    assert selected(rows, ALL)["movie_id"].to_pylist() == [1, 2, 3, 4, 5, 10]
    assert selected(rows, ALL).schema == OVERVIEWS.schema


def test_query_5_divides_doubles() -> None:
    (rate,) = selected(films(film(1, US, budget=str(2**53 + 1), revenue="0.1")), ALL)["rate"].to_pylist()
    assert rate == float("0.1") / float(2**53 + 1)


def test_query_5_has_a_row_for_each_label_with_films() -> None:
    rates = [("POSITIVE", 0.1)] * 10 + [("NEGATIVE", 1e100), ("NEGATIVE", 1.0), ("NEGATIVE", -1e100)]
    assert answer(Q5, labelled(rates)) == [("NEGATIVE", "3", "0.3333333333333333"), ("POSITIVE", "10", "0.1")]
    assert answer(Q5, labelled(rates[:10])) == [("POSITIVE", "10", "0.1")]


def test_query_5_has_an_answer_even_where_the_sum_is_no_double() -> None:
    assert answer(Q5, labelled([("POSITIVE", 1.7e308)] * 2)) == [("POSITIVE", "2", "inf")]


@pytest.mark.parametrize("query", MOVIES_DATASET.queries, ids=lambda query: query.name)
def test_no_rows_give_an_answer_with_no_rows(query: Query) -> None:
    nothing = films() | rated() | cast() | labelled([])
    assert answer(query, nothing) == []
    assert selected(nothing, Options()).schema == OVERVIEWS.schema


def test_the_dataset_names_its_files_and_queries() -> None:
    assert DATASETS["movies"] is MOVIES_DATASET
    assert [query.name for query in MOVIES_DATASET.queries] == [f"movies-q{number}" for number in range(1, 6)]
    assert [file.filename for file in MOVIES_DATASET.files] == ["movies_metadata.csv", "ratings.csv", "credits.csv"]
    assert all(file.batch_schema.field(file.key).type == pa.int64() for file in MOVIES_DATASET.all_files)
    assert OVERVIEWS.needs == "sentiment"
