"""How the five answers about films come of their rows: the folds, combines, partials and answers.

Invariant: everything here is a sum, a set or an extreme by a total order, so no cut and no order of the rows shows.
Sums are exact (integers, or `queries.exact`), and every table has the schema declared for it, rows or none.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queries import exact
from queries.columns import (
    are_set,
    from_rows,
    joining,
    keep,
    list_lengths,
    lists_have,
    numbers,
    rows_of,
    schema,
    sum_by,
    table_of,
)
from queries.model import Given, Mask, Options, Row

Tables = Mapping[str, pa.Table]
Rows = Sequence[Sequence[str]]
Rated = tuple[int, str, int, int]  # movie_id, title, half_stars, ratings

FILMS: Final = schema(movie_id=pa.int64(), title=pa.string(), genres=pa.string())
BUDGETS: Final = schema(country=pa.string(), budget=pa.string())
TITLES: Final = schema(movie_id=pa.int64(), title=pa.string())
EXTREMES: Final = schema(movie_id=pa.int64(), title=pa.string(), half_stars=pa.int64(), ratings=pa.int64())
LISTINGS: Final = schema(movie_id=pa.int64(), times=pa.int64())
APPEARANCES: Final = schema(actor=pa.string(), appearances=pa.int64())
OVERVIEWS: Final = schema(movie_id=pa.int64(), overview=pa.string(), rate=pa.float64())
RATES: Final = schema(label=pa.string(), films=pa.int64(), rate_units=pa.string())


# --- 1: films of Argentina and Spain, 2000 to 2009


def are_of_both(batch: pa.Table, _: Options) -> Mask:
    years = _years(batch)
    both = lists_have(batch, "countries", "Argentina") & lists_have(batch, "countries", "Spain")
    return both & (years >= 2000) & (years < 2010)


def films_of_both(batch: pa.Table, given: Given) -> pa.Table:
    films = keep(batch, are_of_both(batch, given.options))
    return table_of(FILMS, films["movie_id"], films["title"], pc.binary_join(films["genres"], "|"))


def film_line(film: Row) -> Sequence[str]:
    movie_id, title, genres = film
    return str(movie_id), title, genres


# --- 2: the countries that spent most on their own


def are_of_one_country(batch: pa.Table, _: Options) -> Mask:
    """Returns which films one country made alone, with a budget that is known."""
    mask: Mask = (list_lengths(batch, "countries") == 1) & are_set(batch, "budget")
    return mask


def budgets(batch: pa.Table, given: Given) -> pa.Table:
    films = keep(batch, are_of_one_country(batch, given.options))
    return sum_budgets(table_of(BUDGETS, pc.list_flatten(films["countries"]), films["budget"]))


def sum_budgets(blocks: pa.Table) -> pa.Table:
    sums = Counter[str]()
    for country, budget in rows_of(blocks):
        sums[country] += int(budget)
    return from_rows(BUDGETS, [(country, str(budget)) for country, budget in sums.items()])


def top_countries(partials: pa.Table, _: Options) -> Rows:
    sums = [(country, int(budget)) for country, budget in rows_of(sum_budgets(partials))]
    return _top(5, sums)


# --- 3: the best and the worst rated film of Argentina since 2000


def titles(batch: pa.Table, given: Given) -> pa.Table:
    return distinct_titles(keep(batch, are_of_argentina(batch, given.options)).select(TITLES.names))


def distinct_titles(blocks: pa.Table) -> pa.Table:
    return sum_by(blocks, *TITLES.names)


def rated_extremes(tables: Tables, _: Options) -> pa.Table:
    """The two extremes of a partition are all that can become extremes of the whole."""
    films = tables["movies"]
    wanted = joining(tables["ratings"], films, "movie_id")
    sums = {movie_id: (half_stars, count) for movie_id, half_stars, count in rows_of(wanted)}
    rated = [(movie_id, title, *sums[movie_id]) for movie_id, title in rows_of(films) if movie_id in sums]
    return from_rows(EXTREMES, _extremes(rated))


def best_and_worst(partials: pa.Table, _: Options) -> Rows:
    found = zip(("highest", "lowest"), _extremes(rows_of(partials)), strict=False)
    return [
        (extreme, str(movie_id), title, repr(exact.quotient(half_stars, 2 * ratings)))
        for extreme, (movie_id, title, half_stars, ratings) in found
    ]


def _extremes(rated: Sequence[Rated]) -> list[Rated]:
    """The highest, then the lowest mean, compared exactly; lowest id, then title, wins a tie. None, of none."""
    if not rated:
        return []

    def mean(film: Rated) -> Fraction:
        return Fraction(film[2], film[3])

    return [min(rated, key=lambda film: (-mean(film), film)), min(rated, key=lambda film: (mean(film), film))]


# --- 4: the actors of the films of query 3, rated or not


def listings(batch: pa.Table, given: Given) -> pa.Table:
    """How often a film is listed: so often does its cast count."""
    films = keep(batch, are_of_argentina(batch, given.options))
    return sum_listings(table_of(LISTINGS, films["movie_id"], np.ones(films.num_rows, dtype=np.int64)))


def sum_listings(blocks: pa.Table) -> pa.Table:
    return sum_by(blocks, "movie_id")


def have_a_cast(batch: pa.Table, _: Options) -> Mask:
    return list_lengths(batch, "cast") > 0


def casts(batch: pa.Table, given: Given) -> pa.Table:
    """Any film may turn out to count: the films can come after their casts."""
    return keep(batch, have_a_cast(batch, given.options))


def appearances(tables: Tables, _: Options) -> pa.Table:
    films, credits_ = tables["movies"], tables["credits"]
    times = dict(rows_of(films))
    counts = Counter[str]()
    for movie_id, cast in rows_of(joining(credits_, films, "movie_id")):
        for actor in cast:
            counts[actor] += times[movie_id]
    return from_rows(APPEARANCES, list(counts.items()))


def top_actors(partials: pa.Table, _: Options) -> Rows:
    return _top(10, rows_of(sum_by(partials, "actor")))


# --- 5: what films earn by the mood of their overview


def may_be_labelled(batch: pa.Table, options: Options) -> Mask:
    """Returns which films are in scope, with a budget and a revenue that are known."""
    return _in_scope(batch, options) & are_set(batch, "budget") & are_set(batch, "revenue")


def overviews(batch: pa.Table, options: Options) -> pa.Table:
    """The films that spent and earned something. Zero is zero as written: 1e-400 has a double of 0 and is not zero."""
    films = keep(batch, may_be_labelled(batch, options))
    rows = rows_of(films.select(["movie_id", "overview", "revenue", "budget"]))
    return from_rows(
        OVERVIEWS,
        [
            (movie_id, overview, float(revenue) / float(budget))
            for movie_id, overview, revenue, budget in rows
            if revenue.strip("0.") and budget != "0"
        ],
    )


def rates(batch: pa.Table, _: Given) -> pa.Table:
    rows = rows_of(batch.select(["label", "rate"]))
    return sum_rates(from_rows(RATES, [(label, 1, exact.to_text(exact.units(rate))) for label, rate in rows]))


def sum_rates(blocks: pa.Table) -> pa.Table:
    films, units = Counter[str](), Counter[str]()
    for label, count, text in rows_of(blocks):
        films[label] += count
        units[label] += exact.from_text(text)
    return from_rows(RATES, [(label, films[label], exact.to_text(units[label])) for label in films])


def mean_rates(partials: pa.Table, _: Options) -> Rows:
    return [
        (label, str(films), repr(exact.rounded(exact.from_text(units)) / films))
        for label, films, units in sorted(rows_of(sum_rates(partials)))
    ]


def _in_scope(batch: pa.Table, options: Options) -> Mask:
    if options.scope == "all":
        return np.ones(batch.num_rows, dtype=np.bool_)
    english = lists_have(batch, "languages", "English")
    return english & lists_have(batch, "countries", "United States of America") & (_years(batch) >= 2000)


# --- shared


def _years(batch: pa.Table) -> NDArray[np.int16]:
    """0 where the date is null: no condition takes it."""
    return numbers(batch, "year", null=0)


def are_of_argentina(batch: pa.Table, _: Options) -> Mask:
    """Returns which films meet the condition of queries 3 and 4."""
    return lists_have(batch, "countries", "Argentina") & (_years(batch) >= 2000)


def _top(count: int, sums: Iterable[tuple[str, int]]) -> Rows:
    """The largest, then by name."""
    return [(name, str(sum_)) for name, sum_ in sorted(sums, key=lambda row: (-row[1], row[0]))[:count]]
