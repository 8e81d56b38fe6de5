"""What commands share: the cluster that they are about."""

from pathlib import Path
from typing import Annotated

import typer

Home = Annotated[
    Path | None, typer.Option(help="Folder of the cluster; CAUCE_HOME, or .cauce here.", show_default=False)
]


def datasets(incomplete: str) -> list[str]:
    """For the shell's completion: known without loading a query."""
    return [name for name in ("movies", "flights", "coffee") if name.startswith(incomplete)]


DatasetName = Annotated[
    str,
    typer.Argument(metavar="DATASET", help="movies, flights or coffee", show_default=False, autocompletion=datasets),
]


def home_of(given: Path | None) -> Path:
    from cauce.settings import Settings  # noqa: PLC0415 `cauce --help` loads no settings

    return Settings.load(home=given).home


def home_option(given: Path | None) -> str:
    """To repeat in a command that is shown."""
    return f" --home {given}" if given else ""
