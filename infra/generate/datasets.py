"""The datasets that can be generated, by name, and how far it is while someone watches."""

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from cauce.errors import ConfigError
from infra.generate import coffee, flights, movies

GENERATORS = {"movies": movies.generate, "flights": flights.generate, "coffee": coffee.generate}


def generate_shown(dataset: str, folder: Path, rows: int, seed: int) -> None:
    """Writes the files; shows a bar for each on a terminal, and nothing elsewhere."""
    if dataset not in GENERATORS:
        raise ConfigError(f"there is no dataset {dataset}; there are {', '.join(GENERATORS)}")
    columns = (TextColumn("{task.description:20}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bars: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(file=sys.stderr), disable=not sys.stderr.isatty()) as shown:

        def advance(file: str, all_rows: int, done: int) -> None:
            if file not in bars:
                bars[file] = shown.add_task(file, total=all_rows)
            shown.update(bars[file], completed=done)

        GENERATORS[dataset](folder, rows, seed, advance)
    print(f"{folder}: " + ", ".join(f"{name} {(folder / name).stat().st_size:,} bytes" for name in sorted(bars)))
