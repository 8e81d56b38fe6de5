"""The five movies queries over films that are lists in memory; ratings and credits pass by once.

Invariant: a film row that is listed twice counts twice, as in an SQL inner join.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from infra.oracle import fields
from infra.oracle.rows import Answers, Counts, as_csv, files_read, read_rows

Scope = Literal["us", "all"]
Label = Literal["NEGATIVE", "POSITIVE"]
LabelOf = Callable[[str], Label]

MOVIES, RATINGS, CREDITS = "movies_metadata.csv", "ratings.csv", "credits.csv"
FILM_COLUMNS = (
    "id",
    "title",
    "genres",
    "release_date",
    "overview",
    "production_countries",
    "spoken_languages",
    "budget",
    "revenue",
)
LABELS: tuple[Label, ...] = ("NEGATIVE", "POSITIVE")


@dataclass(frozen=True, slots=True)
class Film:
    """A movie row that was not rejected; None is a field that does not parse."""

    id: int
    title: str
    genres: list[str]
    year: int | None
    overview: str
    countries: list[str]
    languages: list[str]
    budget: int | None
    revenue: Fraction | None


READS = {
    "movies-q1.csv": (MOVIES,),
    "movies-q2.csv": (MOVIES,),
    "movies-q3.csv": (MOVIES, RATINGS),
    "movies-q4.csv": (MOVIES, CREDITS),
    "movies-q5.csv": (MOVIES,),
}


def answer(folder: Path, scope: Scope, label_of: LabelOf, wanted: Collection[str] = tuple(READS)) -> Answers:
    """Answers the wanted queries over those files of a folder that they read."""
    counts = {name: Counts() for name in files_read(READS, wanted)}
    films = list(read_films(folder / MOVIES, counts[MOVIES]))

    def casts() -> Iterator[tuple[int, list[str]]]:
        argentine = {film.id for film in films if is_recent_argentine(film)}
        return read_casts(folder / CREDITS, counts[CREDITS], argentine)

    answers: Mapping[str, Callable[[], bytes]] = {
        "movies-q1.csv": lambda: as_csv("id,title,genres", argentina_with_spain(films)),
        "movies-q2.csv": lambda: as_csv("country,budget", countries_by_budget(films)),
        "movies-q3.csv": lambda: as_csv(
            "extreme,id,title,mean_rating", best_and_worst(films, read_ratings(folder / RATINGS, counts[RATINGS]))
        ),
        "movies-q4.csv": lambda: as_csv("actor,appearances", busiest_actors(films, casts())),
        "movies-q5.csv": lambda: as_csv("label,films,mean_rate", rate_by_label(films, scope, label_of)),
    }
    return Answers({name: answers[name]() for name in READS if name in wanted}, counts)


def argentina_with_spain(films: Iterable[Film]) -> list[tuple[int, str, str]]:
    return sorted(
        (film.id, film.title, "|".join(film.genres))
        for film in films
        if {"Argentina", "Spain"} <= set(film.countries) and film.year is not None and 2000 <= film.year < 2010
    )


def countries_by_budget(films: Iterable[Film]) -> list[tuple[str, int]]:
    spent: Counter[str] = Counter()
    for film in films:
        if len(film.countries) == 1 and film.budget is not None:
            spent[film.countries[0]] += film.budget
    return sorted(spent.items(), key=lambda item: (-item[1], item[0]))[:5]


def best_and_worst(films: Iterable[Film], ratings: Iterable[tuple[int, int]]) -> list[tuple[str, int, str, float]]:
    """Ratings are (movie id, half stars). Means are compared as fractions and rounded once, when written."""
    titles = sorted({(film.id, film.title) for film in films if is_recent_argentine(film)})
    totals = {movie_id: [0, 0] for movie_id, _ in titles}
    for movie_id, half_stars in ratings:
        if movie_id in totals:
            totals[movie_id][0] += half_stars
            totals[movie_id][1] += 1
    means = [
        (Fraction(totals[movie_id][0], 2 * totals[movie_id][1]), movie_id, title)
        for movie_id, title in titles
        if totals[movie_id][1]
    ]
    if not means:
        return []
    highest = min(means, key=lambda film: (-film[0], film[1], film[2]))
    lowest = min(means)
    return [
        (extreme, movie_id, title, float(mean))
        for extreme, (mean, movie_id, title) in (("highest", highest), ("lowest", lowest))
    ]


def busiest_actors(films: Iterable[Film], casts: Iterable[tuple[int, list[str]]]) -> list[tuple[str, int]]:
    """Casts are (movie id, actors)."""
    listed = Counter(film.id for film in films if is_recent_argentine(film))
    appearances: Counter[str] = Counter()
    for movie_id, actors in casts:
        if movie_id in listed:
            for actor in actors:
                appearances[actor] += listed[movie_id]
    return sorted(appearances.items(), key=lambda item: (-item[1], item[0]))[:10]


def rate_by_label(films: Iterable[Film], scope: Scope, label_of: LabelOf) -> list[tuple[Label, int, float]]:
    rates: dict[Label, list[float]] = {label: [] for label in LABELS}
    for film in films:
        if film.budget and film.revenue and (scope == "all" or is_recent_american(film)):
            rates[label_of(film.overview)].append(float(film.revenue) / float(film.budget))
    return [(label, len(rates[label]), mean(rates[label])) for label in LABELS if rates[label]]


def mean(values: list[float]) -> float:
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # the exact sum is beyond the largest double
        return math.inf


def is_recent_argentine(film: Film) -> bool:
    """The condition of queries 3 and 4."""
    return "Argentina" in film.countries and film.year is not None and film.year >= 2000


def is_recent_american(film: Film) -> bool:
    """The condition of query 5, scope `us`."""
    american = "United States of America" in film.countries and "English" in film.languages
    return american and film.year is not None and film.year >= 2000


def read_films(path: Path, counts: Counts) -> Iterator[Film]:
    for movie_id, title, genres, released, overview, countries, languages, budget, revenue in read_rows(
        path, FILM_COLUMNS, counts
    ):
        number = fields.integer(movie_id)
        if number is None:
            counts.rejected += 1
            continue
        yield Film(
            id=number,
            title=title,
            genres=fields.names(genres),
            year=fields.year(released),
            overview=overview,
            countries=fields.names(countries),
            languages=fields.names(languages),
            budget=fields.budget(budget),
            revenue=fields.revenue(revenue),
        )


def read_ratings(path: Path, counts: Counts) -> Iterator[tuple[int, int]]:
    for movie_id, rating, _ in read_rows(path, ("movieId", "rating", "timestamp"), counts):
        number, half_stars = fields.integer(movie_id), fields.half_stars(rating)
        if number is not None and half_stars is not None:
            yield number, half_stars


def read_casts(path: Path, counts: Counts, wanted: set[int]) -> Iterator[tuple[int, list[str]]]:
    """Casts of the wanted films alone: parsing the other literals would take minutes."""
    for movie_id, cast in read_rows(path, ("id", "cast"), counts):
        number = fields.integer(movie_id)
        if number is not None and number in wanted:
            yield number, fields.names(cast)
