"""movies_metadata.csv: what a film is, and its row in 24 columns with the oddities of the real file.

Oddities go by a film's place, not by chance, so that a file of 200 films already has every one of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from infra.generate import words
from infra.generate.draw import Draw
from infra.generate.files import Lines, line

HEADER = (
    "adult,belongs_to_collection,budget,genres,homepage,id,imdb_id,original_language,original_title,overview,popularity,"
    "poster_path,production_companies,production_countries,release_date,revenue,runtime,spoken_languages,status,tagline,"
    "title,video,vote_average,vote_count\n"
)
FEWEST, MOST = 200, 45_000  # as many as every oddity needs; as many as the real file has
ODD_FILMS = 2000  # the rest of a large file is as plain as the real ones
ROWS_PER_FILM = 500  # the real files have 572 ratings a film
ROWS_AT_ONCE = 500

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Film:
    """What the three files have to agree on. The mood moves a film's ratings, in half stars."""

    id: int
    title: str
    countries: tuple[str, ...]
    year: int
    mood: int
    is_glad: bool


def film_count(rows: int) -> int:
    return max(FEWEST, min(MOST, rows // ROWS_PER_FILM))


def draw_films(count: int, draw: Draw) -> list[Film]:
    """In order of popularity. The first four are such that every query has rows, whatever the seed."""
    films = [
        Film(
            id=2 + 10 * slot + draw.below(10),
            title=draw_title(draw),
            countries=draw.pick(words.COUNTRY_SETS),
            year=draw.between(2000, 2017) if draw.chance(65) else draw.between(1930, 1999),
            mood=draw.between(-3, 2),
            is_glad=draw.chance(50),
        )
        for slot in draw.shuffled(count)
    ]
    films[0] = replace(films[0], countries=(words.USA,), year=2004, is_glad=True)
    films[1] = replace(films[1], countries=("Argentina", "Spain"), year=2000, mood=1)
    films[2] = replace(films[2], countries=(words.USA,), year=2000, is_glad=False)
    films[3] = replace(films[3], countries=("Spain", "Argentina"), year=2009, mood=-2)
    return films


def movies_lines(films: Sequence[Film], draw: Draw) -> Lines:
    yield 0, HEADER
    texts: list[str] = []
    for place, film in enumerate(films):
        row = draw_row(place, film, draw)
        texts.append((ODD.get(place % FEWEST, as_line) if place < ODD_FILMS else as_line)(row))
        if len(texts) == ROWS_AT_ONCE or place + 1 == len(films):
            yield place + 1, "".join(texts)
            texts.clear()


def draw_row(place: int, film: Film, draw: Draw) -> Row:
    budget, revenue = draw_money(place, draw)
    spoken = dict.fromkeys(words.SPOKEN[country] for country in film.countries)
    spoken |= dict.fromkeys(draw.some(list(words.LANGUAGES), draw.below(2)))
    return {
        "adult": "False",
        "belongs_to_collection": draw_collection(film, draw) if draw.chance(10) else "",
        "budget": str(budget),
        "genres": repr([{"id": words.GENRES[name], "name": name} for name in draw_genres(draw)]),
        "homepage": f"http://films.example/{film.id}" if draw.chance(17) else "",
        "id": str(film.id),
        "imdb_id": f"tt{draw.below(5_000_000):07d}",
        "original_language": words.LANGUAGES[next(iter(spoken))] if spoken else "xx",
        "original_title": film.title,
        "overview": draw_overview(film, draw),
        "popularity": f"{draw.below(30)}.{draw.below(1_000_000):06d}",
        "poster_path": draw_path(draw),
        "production_companies": repr(
            [{"name": name, "id": 3 + len(name)} for name in draw.some(words.COMPANIES, draw.below(4))]
        ),
        "production_countries": repr([{"iso_3166_1": words.COUNTRIES[name], "name": name} for name in film.countries]),
        "release_date": f"{film.year}-{draw.between(1, 12):02d}-{draw.between(1, 28):02d}",
        "revenue": str(revenue),
        "runtime": f"{draw.between(60, 180)}.0",
        "spoken_languages": repr([{"iso_639_1": words.LANGUAGES[name], "name": name} for name in spoken]),
        "status": "Released",
        "tagline": draw.pick(words.TAGLINES),
        "title": film.title,
        "video": "False",
        "vote_average": f"{draw.below(10)}.{draw.below(10)}",
        "vote_count": str(draw.below(6000)),
    }


def as_line(row: Row, **changed: str) -> str:
    return line({**row, **changed}.values())


def split_line(row: Row) -> str:
    """As in the real file: a line break where none belongs leaves two rows, the second with an odd quote."""
    fields = list(row.values())
    cut = list(row).index("overview") + 1
    return line(fields[:cut]) + f' - Written by Ørnås",{line(fields[cut:])}'


# By the place of a film, modulo the fewest: the lines that stand in for its row.
ODD: dict[int, Callable[[Row], str]] = {
    10: lambda row: as_line(row, release_date="1"),
    20: lambda row: as_line(row, budget="/ff9qCepilowshEtG2GYWwzt2bs4.jpg"),
    30: lambda row: line(list(row.values())[1:]),  # a field is missing
    40: lambda row: line([*list(row.values())[1:], ""]),  # shifted: every field is in the wrong column
    50: split_line,
    60: lambda row: as_line(row, overview=""),
    65: lambda row: as_line(row, title=" "),
    70: lambda row: as_line(row, production_countries="[{'iso_3166_1': 'AR', 'name': 'Argen"),
    75: lambda row: as_line(row, genres="[{'id': 18, 'name': 'Dra\nma'}]"),
    80: lambda row: as_line(row, spoken_languages="False", production_companies="False"),
    90: lambda row: as_line(row) * 2,  # listed twice
    100: lambda row: as_line(row) + as_line(row, title=row["title"] + " again"),
    110: lambda row: as_line(row, release_date=f"{row['release_date'][:4]}-02-30"),
    120: lambda row: as_line(row, revenue=row["revenue"] + ".5", budget=row["budget"] + ".0"),
    130: lambda row: as_line(row, id=f" {row['id']}.0 ", title=f"  {row['title']}\t"),
    140: lambda row: as_line(row) + "\n",  # an empty line follows
    150: lambda row: as_line(row, id=row["imdb_id"]),
    160: lambda row: as_line(row, budget="-5", revenue="1e6"),
    170: lambda row: as_line(row, overview=row["overview"].replace(". ", ".\n\n")),
    180: lambda row: as_line(row, genres=repr(["Drama", {"id": 1}, {"name": None}, {"name": "Foreign"}])),
    190: lambda row: as_line(row, revenue=""),
}


def draw_money(place: int, draw: Draw) -> tuple[int, int]:
    """Budget and revenue; most films of the real file have neither."""
    budget = draw.between(1, 2000) * 100_000 if place < 4 or draw.chance(55) else 0
    revenue = draw.between(1, 900_000_000) if place < 4 or (budget and draw.chance(75)) else 0
    return budget, revenue


def draw_title(draw: Draw) -> str:
    return f"{draw.pick(words.TITLE_STARTS)} {draw.pick(words.TITLE_ENDS)}{draw.pick(words.TITLE_TAILS)}"


def draw_genres(draw: Draw) -> list[str]:
    return draw.some(list(words.GENRES), draw.below(5))


def draw_overview(film: Film, draw: Draw) -> str:
    """A plot with a feeling in it, so that a model finds films of both labels."""
    plot = draw.pick(words.PLOTS).format(hero=draw.pick(words.HEROES), place=draw.pick(words.PLACES))
    feelings = draw.some(words.GLAD if film.is_glad else words.SAD, draw.between(1, 3))
    asides = draw.some(words.ASIDES, draw.below(2))
    return " ".join([f"{plot[0].upper()}{plot[1:]}.", *feelings, *asides])


def draw_collection(film: Film, draw: Draw) -> str:
    return repr(
        {"id": 10 * film.id, "name": f"{film.title} Collection", "poster_path": draw_path(draw), "backdrop_path": None}
    )


def draw_path(draw: Draw) -> str:
    return f"/{draw.below(1 << 48):012x}{draw.below(1 << 48):012x}.jpg"
