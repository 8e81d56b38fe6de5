"""The datasets that a session can be about, by name."""

from collections.abc import Mapping
from typing import Final

from queries.coffee import COFFEE_DATASET
from queries.flights import FLIGHTS_DATASET
from queries.model import Dataset
from queries.movies import MOVIES_DATASET

DATASETS: Final[Mapping[str, Dataset]] = {
    dataset.name: dataset for dataset in (MOVIES_DATASET, FLIGHTS_DATASET, COFFEE_DATASET)
}
