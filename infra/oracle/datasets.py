"""The oracle of each dataset, by name."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.oracle import coffee, flights, movies
from infra.oracle.movies import LabelOf, Scope
from infra.oracle.rows import Answers, files_read


@dataclass(frozen=True, slots=True)
class Oracle:
    files: Mapping[str, str]  # kind of file → its name as a single file; a folder named like the kind will do, too
    reads: Mapping[str, tuple[str, ...]]  # answer file → the names of the files that it is made of
    answer_wanted: Callable[[Path, Scope, LabelOf, Collection[str]], Answers]

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(self.reads)

    def answer(self, folder: Path, scope: Scope, label_of: LabelOf, wanted: Collection[str] = ()) -> Answers:
        """Answers the queries whose files are wanted; all of them, where none is named."""
        return self.answer_wanted(folder, scope, label_of, wanted or self.answers)

    def missing(self, folder: Path, wanted: Collection[str] = ()) -> list[str]:
        """Returns the files that the wanted answers need and that the folder has not."""
        needed = files_read(self.reads, wanted or self.answers)
        return [
            name
            for kind, name in self.files.items()
            if name in needed and not (folder / name).is_file() and not any((folder / kind).glob("*.csv"))
        ]


ORACLES: Final[Mapping[str, Oracle]] = {
    "movies": Oracle(
        {"movies": movies.MOVIES, "ratings": movies.RATINGS, "credits": movies.CREDITS},
        movies.READS,
        movies.answer,
    ),
    "flights": Oracle(
        {"airports": flights.AIRPORTS, "itineraries": flights.ITINERARIES},
        flights.READS,
        lambda folder, scope, label_of, wanted: flights.answer(folder, wanted),
    ),
    "coffee": Oracle(
        {kind: f"{kind}.csv" for kind in coffee.KINDS},
        coffee.READS,
        lambda folder, scope, label_of, wanted: coffee.answer(folder, wanted),
    ),
}
