"""The movies dataset: three files that agree on their films."""

from pathlib import Path

from infra.generate.casts import credits_lines
from infra.generate.draw import Draw
from infra.generate.files import Progress, write_all
from infra.generate.films import draw_films, film_count, movies_lines
from infra.generate.ratings import ratings_lines


def generate(folder: Path, rows: int, seed: int, progress: Progress = lambda file, rows, done: None) -> None:
    """So many ratings, and films to match."""
    films = draw_films(film_count(rows), Draw(seed, "films"))
    contents = {
        "movies_metadata.csv": (len(films), movies_lines(films, Draw(seed, "movies"))),
        "credits.csv": (len(films), credits_lines(films, Draw(seed, "credits"))),
        "ratings.csv": (rows, ratings_lines(films, rows, Draw(seed, "ratings"))),
    }
    write_all(folder, contents, progress)
