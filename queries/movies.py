"""The films: three files, five queries. What they mean is in the functions that are named here.

Every file is keyed by the film, so that ratings and credits meet their film inside one partition.
"""

from collections.abc import Sequence
from typing import Final

from queries import movies_answers as films
from queries import movies_cleaning as cleaning
from queries import ratings
from queries.columns import as_it_is, as_they_are, in_order, only_input
from queries.model import Dataset, Derived, File, Input, Listing, Summary
from queries.movies_blocks import ratings_block


def _never_uploaded(_: Sequence[str]) -> None:
    """A derived file has no rows of its own to clean."""


MOVIES: Final = File(
    kind="movies",
    filename="movies_metadata.csv",
    columns=cleaning.MOVIE_COLUMNS,
    schema=cleaning.MOVIES_SCHEMA,
    key="movie_id",
    clean_row=cleaning.clean_movie,
)
RATINGS: Final = File(
    kind="ratings",
    filename="ratings.csv",
    columns=cleaning.RATING_COLUMNS,
    schema=cleaning.RATINGS_SCHEMA,
    key="movie_id",
    clean_row=cleaning.clean_rating,
    clean_block=ratings_block,
    pack=ratings.pack,
)
CREDITS: Final = File(
    kind="credits",
    filename="credits.csv",
    columns=cleaning.CREDITS_COLUMNS,
    schema=cleaning.CREDITS_SCHEMA,
    key="movie_id",
    clean_row=cleaning.clean_credits,
)
OVERVIEWS: Final = File(
    kind="overviews",
    filename="",  # no client has it: it is derived
    columns=(),
    schema=films.OVERVIEWS,
    key="movie_id",
    clean_row=_never_uploaded,
    needs="sentiment",
)

Q1: Final = Listing(
    name="movies-q1",
    header=("id", "title", "genres"),
    inputs=(Input(MOVIES, films.films_of_both, in_order, reads=films.are_of_both),),
    write=films.film_line,
)
Q2: Final = Summary(
    name="movies-q2",
    header=("country", "budget"),
    inputs=(Input(MOVIES, films.budgets, films.sum_budgets, reads=films.are_of_one_country),),
    partial=only_input,
    answer=films.top_countries,
)
Q3: Final = Summary(
    name="movies-q3",
    header=("extreme", "id", "title", "mean_rating"),
    inputs=(
        Input(MOVIES, films.titles, films.distinct_titles, reads=films.are_of_argentina),
        Input(RATINGS, as_it_is, ratings.combine),
    ),
    partial=films.rated_extremes,
    answer=films.best_and_worst,
)
Q4: Final = Summary(
    name="movies-q4",
    header=("actor", "appearances"),
    inputs=(
        Input(MOVIES, films.listings, films.sum_listings, reads=films.are_of_argentina),
        Input(CREDITS, films.casts, as_they_are, reads=films.have_a_cast),
    ),
    partial=films.appearances,
    answer=films.top_actors,
)
Q5: Final = Summary(
    name="movies-q5",
    header=("label", "films", "mean_rate"),
    inputs=(Input(OVERVIEWS, films.rates, films.sum_rates),),
    partial=only_input,
    answer=films.mean_rates,
)

MOVIES_DATASET: Final = Dataset(
    name="movies",
    files=(MOVIES, RATINGS, CREDITS),  # in this order they are sent: query 3 needs the first two
    queries=(Q1, Q2, Q3, Q4, Q5),
    # 8 rows a batch: a model takes half a second for them, and no commit waits longer than that for one batch
    derived=(Derived(OVERVIEWS, source=MOVIES, select=films.overviews, rows_per_batch=8, reads=films.may_be_labelled),),
)
