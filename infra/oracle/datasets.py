"""The oracle of each dataset, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.oracle import coffee, flights, movies
from infra.oracle.movies import LabelOf, Scope
from infra.oracle.rows import Answers


@dataclass(frozen=True, slots=True)
class Oracle:
    files: Mapping[str, str]  # kind of file → its name as a single file; a folder named like the kind will do, too
    answers: tuple[str, ...]
    answer: Callable[[Path, Scope, LabelOf], Answers]

    def missing(self, folder: Path) -> list[str]:
        """Kinds that the folder has no file of."""
        return [
            name
            for kind, name in self.files.items()
            if not (folder / name).is_file() and not any((folder / kind).glob("*.csv"))
        ]


def _names(dataset: str, queries: int) -> tuple[str, ...]:
    return tuple(f"{dataset}-q{number}.csv" for number in range(1, queries + 1))


ORACLES: Final[Mapping[str, Oracle]] = {
    "movies": Oracle(
        {"movies": movies.MOVIES, "ratings": movies.RATINGS, "credits": movies.CREDITS},
        _names("movies", 5),
        movies.answer,
    ),
    "flights": Oracle(
        {"airports": flights.AIRPORTS, "itineraries": flights.ITINERARIES},
        _names("flights", 5),
        lambda folder, scope, label_of: flights.answer(folder),
    ),
    "coffee": Oracle(
        {kind: f"{kind}.csv" for kind in coffee.KINDS},
        _names("coffee", 4),
        lambda folder, scope, label_of: coffee.answer(folder),
    ),
}
