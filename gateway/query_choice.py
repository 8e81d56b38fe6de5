"""Which queries of its dataset a session asks for, as its client names them.

Invariant: the same choice, named in any order, by long or by short names, is the same session.
"""

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from cauce.query_names import full_name
from gateway.problems import Problem
from gateway.tus import shown
from queries.datasets import DATASETS
from queries.model import Dataset, File

# difflib takes its time with a long text, and no query has a name like that.
COMPARED_LENGTH: Final = 80


def chosen(dataset: Dataset, names: Sequence[str] | None) -> tuple[str, ...]:
    """Returns the full names in the order of the dataset; empty where all of them are asked for."""
    if names is None:
        return ()
    if not names:
        known = ", ".join(query.name for query in dataset.queries)
        detail = f"queries is an empty list; name some of {known}, or leave it out to ask for all"
        raise Problem(422, "bad-value", detail)
    counts = Counter(_full_name(dataset, name) for name in names)
    for name, times in counts.items():
        if times > 1:
            raise Problem(422, "bad-value", f"queries: {name} is named {times} times; name it once")
    found = tuple(query.name for query in dataset.queries if query.name in counts)
    return () if len(found) == len(dataset.queries) else found


def _full_name(dataset: Dataset, name: str) -> str:
    full_names = [query.name for query in dataset.queries]
    if full_name(dataset.name, name) in full_names:
        return full_name(dataset.name, name)
    owners = [other.name for other in DATASETS.values() if name in {query.name for query in other.queries}]
    what = f"is a query of {owners[0]}, not of {dataset.name}" if owners else f"is no query of {dataset.name}"
    nearest = get_close_matches(name[:COMPARED_LENGTH], full_names, 1, 0)[0]
    known = ", ".join(full_names)
    raise Problem(422, "bad-value", f"queries: {shown(name)} {what}; the nearest is {nearest}; there are {known}")


def files_not_read(asked: Dataset) -> list[File]:
    """Returns the files of the whole dataset that none of the session's queries reads."""
    kinds = {file.kind for file in asked.files}
    return [file for file in DATASETS[asked.name].files if file.kind not in kinds]


def refuse_if_not_read(asked: Dataset, file: File, name: str) -> None:
    """Refuses a file of the dataset that none of the session's queries reads."""
    if file.kind not in {each.kind for each in files_not_read(asked)}:
        return
    whole = DATASETS[asked.name]
    readers = [query.name for query in whole.queries if file.kind in whole.uploaded_for(query)]
    queries = ", ".join(query.name for query in asked.queries)
    detail = (
        f"{name}: none of the queries of this session ({queries}) reads {file.kind}; leave it out, "
        f"or open a session that asks for {' or '.join(readers)}"
    )
    raise Problem(409, "not-read", detail, file=name)
