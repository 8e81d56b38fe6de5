"""What Cauce is compared with: DuckDB over the same files, vanilla Faust, and the model alone."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from bench.core import Bench, free_port
from infra.cluster import Cluster
from infra.oracle.sentiment import Sentiment

MODEL_FILMS: Final = 200
CSV: Final = (
    """header=true, all_varchar=true, delim=',', quote='"', escape='"', strict_mode=false, ignore_errors=true"""
)

# Of a literal list DuckDB knows nothing: a pattern stands for "Argentina is among the countries".
MOVIES_Q3: Final = """
    WITH films AS (
        SELECT DISTINCT try_cast(id AS BIGINT) AS id, title
        FROM read_csv('{folder}/movies_metadata.csv', {csv}, null_padding=true, parallel=false)
        WHERE production_countries LIKE '%''Argentina''%' AND try_cast(release_date AS DATE) >= DATE '2000-01-01'
    ), means AS (
        SELECT movieId AS id, sum(rating) / count(*) AS mean
        FROM read_csv('{folder}/ratings.csv', ignore_errors=true,
                      columns={{'userId': 'BIGINT', 'movieId': 'BIGINT', 'rating': 'DOUBLE', 'timestamp': 'BIGINT'}})
        GROUP BY 1
    )
    (SELECT id, title, mean FROM films JOIN means USING (id) ORDER BY mean DESC, id LIMIT 1)
    UNION ALL
    (SELECT id, title, mean FROM films JOIN means USING (id) ORDER BY mean, id LIMIT 1)
"""

FLIGHTS: Final = (
    """CREATE TEMP TABLE airports AS
       SELECT "Airport Code" AS code, try_cast(Latitude AS DOUBLE) AS lat, try_cast(Longitude AS DOUBLE) AS lon
       FROM read_csv('{folder}/airports-codepublic.csv', delim=';', header=true, all_varchar=true,
                     ignore_errors=true)""",
    """CREATE TEMP TABLE flights AS
       SELECT legId, startingAirport AS a, destinationAirport AS b, travelDuration AS duration,
              try_cast(baseFare AS DECIMAL(12, 2)) AS base, try_cast(totalFare AS DECIMAL(12, 2)) AS fare,
              try_cast(totalTravelDistance AS BIGINT) AS distance,
              string_split(segmentsArrivalAirportCode, '||') AS stops
       FROM read_csv('{folder}/itineraries.csv', {csv})""",
    """SELECT legId, a || '-' || b, fare, stops FROM flights WHERE len(stops) >= 4 ORDER BY legId""",
    """SELECT legId, a || '-' || b, distance FROM flights
       JOIN airports f ON f.code = a JOIN airports t ON t.code = b
       WHERE distance > 4 * 7917.5 * asin(sqrt(sin(radians(t.lat - f.lat) / 2) ** 2
             + cos(radians(f.lat)) * cos(radians(t.lat)) * sin(radians(t.lon - f.lon) / 2) ** 2))
       ORDER BY legId""",
    """SELECT * FROM (SELECT a, b, legId, stops, duration,
         row_number() OVER (PARTITION BY a, b ORDER BY try_cast(regexp_extract(duration, '(\\d+)H', 1) AS INT) * 60
           + try_cast(regexp_extract(duration, '(\\d+)M', 1) AS INT), legId) AS place
       FROM flights WHERE len(stops) >= 4) WHERE place <= 2 ORDER BY a, b, place""",
    """SELECT a, b, avg(fare), max(fare) FROM flights WHERE fare > (SELECT avg(fare) FROM flights) GROUP BY a, b
       ORDER BY a, b""",
    """SELECT a, base, n FROM (SELECT a, base, count(*) AS n, rank() OVER (PARTITION BY a ORDER BY count(*) DESC) AS r
       FROM flights GROUP BY a, base) WHERE r = 1 ORDER BY a, base""",
)

COFFEE: Final = (
    """CREATE TEMP TABLE tx AS SELECT transaction_id, try_cast(store_id AS BIGINT) AS store,
         try_cast(try_cast(user_id AS DOUBLE) AS BIGINT) AS user, try_cast(final_amount AS DECIMAL(18, 3)) AS amount,
         try_cast(created_at AS TIMESTAMP) AS made
       FROM read_csv('{folder}/transactions/*.csv', {csv})""",
    """CREATE TEMP TABLE items AS SELECT try_cast(item_id AS BIGINT) AS item, try_cast(quantity AS BIGINT) AS quantity,
         try_cast(subtotal AS DECIMAL(18, 3)) AS subtotal, try_cast(created_at AS TIMESTAMP) AS made
       FROM read_csv('{folder}/transaction_items/*.csv', {csv})""",
    """CREATE TEMP TABLE users AS SELECT try_cast(user_id AS BIGINT) AS user, try_cast(birthdate AS DATE) AS born
       FROM read_csv('{folder}/users/*.csv', {csv})""",
    """SELECT transaction_id, amount FROM tx WHERE year(made) IN (2024, 2025) AND amount >= 75
         AND made::TIME BETWEEN TIME '06:00:00' AND TIME '23:00:00' ORDER BY transaction_id""",
    """SELECT strftime(made, '%Y-%m') AS month, item, sum(quantity), sum(subtotal) FROM items
       WHERE year(made) IN (2024, 2025) GROUP BY 1, 2 ORDER BY 1, 2""",
    """SELECT year(made), month(made) > 6, store, sum(amount) FROM tx WHERE year(made) IN (2024, 2025)
         AND made::TIME BETWEEN TIME '06:00:00' AND TIME '23:00:00' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
    """SELECT store, n, user, born FROM (SELECT store, user, count(*) AS n,
         row_number() OVER (PARTITION BY store ORDER BY count(*) DESC, user) AS place
       FROM tx WHERE year(made) IN (2024, 2025) AND user IS NOT NULL GROUP BY store, user)
       LEFT JOIN users USING (user) WHERE place <= 3 ORDER BY store, place""",
)

# By dataset: what is answered → the statements, timed together.
STATEMENTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "movies": {"movies-q3": (MOVIES_Q3,)},
    "flights": {"all": FLIGHTS},
    "coffee": {"all": COFFEE},
}


@dataclass(frozen=True, slots=True, order=True)
class Spent:
    """On an answer: by the clock, and on all cores together, which a busy machine changes less."""

    seconds: float
    cpu_seconds: float


def duckdb_spent(dataset: str, folder: Path) -> dict[str, Spent]:
    """The quicker of two turns: the first one finds the files on the disk, as ours never does after it."""
    return {what: min(_run(folder, statements) for _ in range(2)) for what, statements in STATEMENTS[dataset].items()}


def _run(folder: Path, statements: tuple[str, ...]) -> Spent:
    began, cpu_began = time.monotonic(), time.process_time()
    with duckdb.connect() as connection:
        for statement in statements:
            connection.execute(statement.format(folder=folder, csv=CSV)).fetchall()
    return Spent(time.monotonic() - began, time.process_time() - cpu_began)


def model_seconds(folder: Path) -> float:
    """Of one film, on one core."""
    films = f"read_csv('{folder}/movies_metadata.csv', {CSV}, null_padding=true, parallel=false)"
    rows = duckdb.execute(f"SELECT overview FROM {films} WHERE length(overview) > 20 LIMIT {MODEL_FILMS}").fetchall()  # noqa: S608
    label: Callable[[str], str] = Sentiment()
    label("warm")
    began = time.process_time()
    for (overview,) in rows:
        label(overview)
    return (time.process_time() - began) / max(1, len(rows))


def faust_rows_a_second(folder: Path, rows: int) -> float:
    """Vanilla Faust at least once, one record a row, a table and a send; start-up left out."""
    folder.mkdir()
    with Cluster(folder / "kafka", brokers=1) as cluster:
        bench = Bench(cluster.bootstrap, folder, port=free_port())
        bench.feed("faust-", rows, size=30)
        return bench.rate("faust-", rows, "vanilla")
