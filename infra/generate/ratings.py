"""ratings.csv: users in order, each with a run of films in order, as in the real file, with its CRLF line ends.

Odd rows keep four columns of numbers, some empty, so that other tools can read the file too.
"""

from collections.abc import Sequence

import numpy as np

from infra.generate.draw import Draw, Numbers
from infra.generate.files import Lines
from infra.generate.films import Film

ROWS_AT_ONCE = 100_000  # some 20 MB of Python objects
RUN_ROWS = (20, 180)  # ratings of one user; the real mean is 96
FIRST_TIMESTAMP, TIMESTAMPS = 820_454_400, 700_000_000  # 1996 to 2018
SITTING_SECONDS = 3600  # a user rates in one sitting
UNKNOWN_ID = 500_000  # above every film's id: ratings of films that are not listed
RANK_BITS = 20  # room for a film's place in the order of ids: 45,000 films and a twentieth more
TEXTS = ["", *(f"{half // 2}.{half % 2 * 5}" for half in range(1, 11))]
STARS = np.array([1, 2, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 9, 9, 10, 10, 10, 10])
ODD_EVERY, ODD_AT = 997, 17  # one row in a thousand, the first early enough for a small file
ODD_ROWS = 100_000  # and none behind these: the real file has none at all
ODD = (
    "{user},,{rating},{at}\r\n",
    "{user},{film},,{at}\r\n",
    "{user},{film},{rating},\r\n",
    "{user},{film},5.5,{at}\r\n",
    "{user},{film},0,{at}\r\n",
    "{user},{film},{rating}0,{at}\r\n",  # this one counts: an idle zero
)


def ratings_lines(films: Sequence[Film], rows: int, draw: Draw) -> Lines:
    """Films come in order of popularity: the first are rated most."""
    yield 0, "userId,movieId,rating,timestamp\r\n"
    known = [(film.id, film.mood) for film in films]
    known += [(UNKNOWN_ID + 7 * number, 0) for number in range(len(films) // 20)]
    order = sorted(range(len(known)), key=lambda place: known[place][0])
    rank_of = np.argsort(np.array(order))  # popularity to place in the order of ids
    ids, moods = np.array([known[place] for place in order]).T
    done, user = 0, 1
    while done < rows:
        runs = draw_runs(draw, min(ROWS_AT_ONCE, rows - done))
        count = sum(runs)
        keys = (np.repeat(np.arange(len(runs)), runs) << RANK_BITS) | rank_of[skewed(draw.words(count), len(known))]
        keys.sort()
        place, rank = keys >> RANK_BITS, keys & ((1 << RANK_BITS) - 1)
        halves = np.clip(STARS[draw.words(count) % len(STARS)] + moods[rank], 1, 10)
        began = FIRST_TIMESTAMP + draw.words(len(runs)) % TIMESTAMPS
        at = began[place] + draw.words(count) % SITTING_SECONDS
        yield done + count, "".join(format_rows(done, user + place, ids[rank], halves, at))
        done, user = done + count, user + len(runs)


def draw_runs(draw: Draw, rows: int) -> list[int]:
    """How many rows each of the next users has; together exactly so many."""
    runs: list[int] = []
    while rows:
        runs.append(min(rows, draw.between(*RUN_ROWS)))
        rows -= runs[-1]
    return runs


def skewed(words: Numbers, limit: int) -> Numbers:
    """0 ≤ number < limit, small ones more often: the square of a fraction, in integers."""
    squares = (words >> 1) ** 2 >> 31  # 31 bits, so that the square has a sign to spare
    return squares * limit >> 31


def format_rows(first: int, users: Numbers, films: Numbers, halves: Numbers, at: Numbers) -> list[str]:
    texts = [TEXTS[half] for half in halves.tolist()]
    rows = list(zip(users.tolist(), films.tolist(), texts, at.tolist(), strict=True))
    lines = [f"{user},{film},{rating},{then}\r\n" for user, film, rating, then in rows]
    for place in range((ODD_AT - first) % ODD_EVERY, min(len(lines), ODD_ROWS - first), ODD_EVERY):
        user, film, rating, then = rows[place]
        odd = ODD[(first + place) // ODD_EVERY % len(ODD)]
        lines[place] = odd.format(user=user, film=film, rating=rating, at=then)
    return lines
