"""The flights: two files, five queries. What they mean is in the functions that are named here.

Itineraries are keyed by their route; the airports, which say how far apart its ends are, go to every partition.
"""

from typing import Final

from queries import flights_answers as flights
from queries import flights_cleaning as cleaning
from queries.columns import having, in_order, only_input
from queries.flights_blocks import itineraries_block
from queries.model import Dataset, File, Input, Listing, Summary

AIRPORTS: Final = File(
    kind="airports",
    filename="airports-codepublic.csv",
    columns=cleaning.AIRPORT_COLUMNS,
    schema=cleaning.AIRPORTS_SCHEMA,
    key="airport_key",
    clean_row=cleaning.clean_airport,  # and no fast way: that may change the order of rows, and the first one counts
    separator=";",
    is_broadcast=True,
)
ITINERARIES: Final = File(
    kind="itineraries",
    filename="itineraries.csv",
    columns=cleaning.ITINERARY_COLUMNS,
    schema=cleaning.ITINERARIES_SCHEMA,
    key="route_key",
    clean_row=cleaning.clean_itinerary,
    clean_block=itineraries_block,
    after=("airports",),
)

Q1: Final = Listing(
    name="flights-q1",
    header=("leg_id", "route", "total_fare", "stopovers"),
    inputs=(Input(ITINERARIES, flights.long_flights, in_order, reads=having("stopovers", "total_cents")),),
    write=flights.long_flight_line,
)
Q2: Final = Listing(
    name="flights-q2",
    header=("leg_id", "route", "travel_distance"),
    inputs=(
        Input(AIRPORTS, flights.places, flights.first_places),
        Input(ITINERARIES, flights.detours, in_order, reads=having("distance_miles")),
    ),
    write=flights.detour_line,
)
Q3: Final = Summary(
    name="flights-q3",
    header=("route", "leg_id", "stopovers", "duration"),
    inputs=(Input(ITINERARIES, flights.fastest, flights.two_fastest, reads=having("duration")),),
    partial=only_input,
    answer=flights.fastest_lines,
)
Q4: Final = Summary(
    name="flights-q4",
    header=("route", "mean_fare", "max_fare"),
    inputs=(Input(ITINERARIES, flights.total_fares, flights.sum_total_fares, reads=having("total_cents")),),
    partial=only_input,
    answer=flights.dear_routes,
)
Q5: Final = Summary(
    name="flights-q5",
    header=("airport", "base_fare", "flights"),
    inputs=(Input(ITINERARIES, flights.base_fares, flights.sum_base_fares, reads=having("base_cents")),),
    partial=only_input,
    answer=flights.usual_fares,
)

FLIGHTS_DATASET: Final = Dataset(
    name="flights",
    files=(AIRPORTS, ITINERARIES),
    queries=(Q1, Q2, Q3, Q4, Q5),
)
