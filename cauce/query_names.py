"""How a query is named: in full, `movies-q1`, or within its dataset in short, `q1`."""

from collections.abc import Sequence


def full_name(dataset: str, name: str) -> str:
    """Returns `movies-q1` for `q1` and for `movies-q1`. Whether there is such a query is not looked at."""
    return name if name.startswith(f"{dataset}-") else f"{dataset}-{name}"


def split(given: Sequence[str] | None) -> list[str] | None:
    """Returns the names of an option that may be given several times, or once with commas."""
    return [name.strip() for words in given for name in words.split(",")] if given else None
