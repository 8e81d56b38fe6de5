"""credits.csv: cast, crew and id of most films, in the column order of the real file."""

from collections.abc import Callable, Sequence

from infra.generate import words
from infra.generate.draw import Draw
from infra.generate.files import Lines, line
from infra.generate.films import FEWEST, ODD_FILMS, Film, draw_path

COLUMNS = ("cast", "crew", "id")
ROWS_AT_ONCE = 200


def credits_lines(films: Sequence[Film], draw: Draw) -> Lines:
    yield 0, line(COLUMNS)
    texts: list[str] = []
    for place, film in enumerate(films):
        cast, crew = repr(draw_cast(film, draw)), repr(draw_crew(draw))
        texts.append((ODD.get(place % FEWEST, as_line) if place < ODD_FILMS else as_line)(cast, crew, str(film.id)))
        if len(texts) == ROWS_AT_ONCE or place + 1 == len(films):
            yield place + 1, "".join(texts)
            texts.clear()


# By the place of a film, modulo the fewest: the lines that stand in for its row.
ODD: dict[int, Callable[[str, str, str], str]] = {
    15: lambda cast, crew, movie_id: "",  # a film without credits
    25: lambda cast, crew, movie_id: line((cast, crew, movie_id)) * 2,
    35: lambda cast, crew, movie_id: line(("", crew, movie_id)),
    45: lambda cast, crew, movie_id: line((cast, crew, "")),
    55: lambda cast, crew, movie_id: line((cast[:-2], crew, movie_id)),  # a literal cut short
    85: lambda cast, crew, movie_id: line((cast, movie_id)),
    95: lambda cast, crew, movie_id: line((cast, crew, f"{movie_id}.0")),
    105: lambda cast, crew, movie_id: line((cast, crew, "1997-08-20")),
    115: lambda cast, crew, movie_id: line(("[]", "[]", movie_id)),
}


def as_line(cast: str, crew: str, movie_id: str) -> str:
    return line((cast, crew, movie_id))


def draw_cast(film: Film, draw: Draw) -> list[dict[str, object]]:
    count = draw.below(25)
    actors = draw.some(words.ARGENTINE_ACTORS, min(count, draw.between(3, 9))) if "Argentina" in film.countries else []
    actors += [draw_person(draw) for _ in range(count - len(actors))]
    return [
        {
            "cast_id": order + 1,
            "character": draw.pick(words.ROLES),
            "credit_id": draw_credit(draw),
            "gender": draw.below(3),
            "id": draw.below(1_000_000),
            "name": actor,
            "order": order,
            "profile_path": draw_path(draw) if draw.chance(60) else None,
        }
        for order, actor in enumerate(actors)
    ]


def draw_crew(draw: Draw) -> list[dict[str, object]]:
    crew: list[dict[str, object]] = []
    for _ in range(draw.below(20)):
        department, job = draw.pick(words.CREW_WORK)
        crew.append(
            {
                "credit_id": draw_credit(draw),
                "department": department,
                "gender": draw.below(3),
                "id": draw.below(1_000_000),
                "job": job,
                "name": draw_person(draw),
                "profile_path": None,
            }
        )
    return crew


def draw_person(draw: Draw) -> str:
    return f"{draw.pick(words.FIRST_NAMES)} {draw.pick(words.LAST_NAMES)}"


def draw_credit(draw: Draw) -> str:
    return f"52fe{draw.below(1 << 40):010x}{draw.below(1 << 40):010x}"
