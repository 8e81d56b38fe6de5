"""What is kept of a row, what is null, and which reason counts."""

import pytest

from queries.model import Reason, Rejected
from queries.movies import CREDITS, MOVIES, RATINGS

FILM = {
    "id": " 862 ",
    "title": " Toy Story\t",
    "genres": "[{'id': 16, 'name': 'Animation'}]",
    "release_date": "1995-10-30",
    "overview": "\u2003Toys. ",
    "production_countries": "[{'iso_3166_1': 'US', 'name': 'United States of America'}]",
    "spoken_languages": "[{'iso_639_1': 'en', 'name': 'English'}]",
    "budget": "30000000",
    "revenue": "373554033.50",
}


def film(**fields: str) -> list[str]:
    return list((FILM | fields).values())


def rejected(reason: str) -> Rejected:
    return Rejected(Reason(reason))


def test_the_columns_are_those_of_the_rule_in_its_order() -> None:
    assert MOVIES.columns == tuple(FILM)
    assert RATINGS.columns == ("movieId", "rating", "timestamp")
    assert CREDITS.columns == ("id", "cast")


def test_a_film_is_kept_with_blanks_trimmed_from_its_fields() -> None:
    assert MOVIES.clean_row(film()) == (
        *(862, "Toy Story", ["Animation"], 1995, "Toys."),
        *(["United States of America"], ["English"], "30000000", "373554033.50"),
    )


@pytest.mark.parametrize("column", MOVIES.columns)
@pytest.mark.parametrize("blank", ["", " \t\n", "\u3000"])
def test_a_film_needs_every_field(column: str, blank: str) -> None:
    assert MOVIES.clean_row(film(**{column: blank})) == rejected(f"no {column}")


def test_the_first_reason_in_the_order_of_the_columns_counts() -> None:
    assert MOVIES.clean_row([""] * 9) == rejected("no id")
    assert MOVIES.clean_row(film(id="x", title="")) == rejected("id is not an integer")
    assert MOVIES.clean_row(film(title="", budget="")) == rejected("no title")


@pytest.mark.parametrize("movie_id", ["abc", "1997-08-20", "1.5", str(2**63)])
def test_a_film_whose_id_is_no_integer_is_rejected(movie_id: str) -> None:
    assert MOVIES.clean_row(film(id=movie_id)) == rejected("id is not an integer")


@pytest.mark.parametrize(
    ("column", "text", "place", "value"),
    [
        ("release_date", "1", 3, None),
        ("budget", "/ff9q.jpg", 7, None),
        ("budget", "1.5", 7, None),
        ("revenue", "-1", 8, None),
        ("genres", "[{'name'", 2, []),
        ("production_countries", "False", 5, []),
        ("spoken_languages", "[]", 6, []),
    ],
)
def test_what_does_not_parse_is_null_and_the_film_stays(column: str, text: str, place: int, value: object) -> None:
    row = MOVIES.clean_row(film(**{column: text}))
    assert isinstance(row, tuple)
    assert row[place] == value


def test_a_rating_is_a_film_and_half_stars() -> None:
    assert RATINGS.clean_row([" 31 ", "2.5", "1260759144"]) == (31, 5)


@pytest.mark.parametrize("row", [["abc", "2.5", "1"], ["31", "5.5", "1"], ["31", "x", "1"], [str(2**63), "1", "1"]])
def test_a_rating_with_a_null_is_read_and_in_no_batch(row: list[str]) -> None:
    assert RATINGS.clean_row(row) is None


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_rating_needs_film_stars_and_time_stamp(place: int) -> None:
    row = ["x", "y", "z"]
    row[place] = " "
    assert RATINGS.clean_row(row) == rejected(f"no {RATINGS.columns[place]}")


def test_credits_are_a_film_and_names() -> None:
    assert CREDITS.clean_row(["862.0", "[{'name': ' Tim '}, {'name': ''}]"]) == (862, [" Tim ", ""])
    assert CREDITS.clean_row(["862", "none of it parses"]) == (862, [])
    assert CREDITS.clean_row(["x", "[]"]) is None
    assert CREDITS.clean_row(["", "[]"]) == rejected("no id")
    assert CREDITS.clean_row(["862", ""]) == rejected("no cast")
