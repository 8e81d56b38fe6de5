"""The datasets that a session can be about, by name."""

from collections.abc import Mapping
from typing import Final

from queries.model import Dataset
from queries.movies import MOVIES_DATASET

DATASETS: Final[Mapping[str, Dataset]] = {dataset.name: dataset for dataset in (MOVIES_DATASET,)}
