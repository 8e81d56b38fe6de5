"""From fields of text to the rows of an answer, in one piece or cut and shuffled as a cluster might do it."""

import random
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from queries.columns import from_rows
from queries.keys import partitions_of
from queries.model import File, Input, Options, Query, Rejected

Answer = list[tuple[str, ...]]
Batches = Mapping[str, pa.Table]  # all rows of a kind of file


def batch(file: File, rows: Iterable[Sequence[str]]) -> pa.Table:
    """The rows that cleaning lets through."""
    cleaned = [file.clean_row(row) for row in rows]
    return from_rows(file.schema, [row for row in cleaned if row is not None and not isinstance(row, Rejected)])


def answer(query: Query, batches: Batches, options: Options | None = None) -> Answer:
    """In one piece: one batch a file, one partition."""
    options = options or Options()
    combined = {each.file.kind: each.combine(each.fold(batches[each.file.kind], options)) for each in query.inputs}
    return _texts(query.answer(query.partial(combined, options), options))


def answer_of_pieces(
    query: Query, batches: Batches, partitions: int, rng: random.Random, options: Options | None = None
) -> Answer:
    options = options or Options()
    partials = [
        query.partial(
            {each.file.kind: _combined(each, piece[each.file.kind], rng, options) for each in query.inputs}, options
        )
        for piece in _partitioned(query, batches, partitions)
    ]
    rng.shuffle(partials)
    return _texts(query.answer(pa.concat_tables(partials), options))


def _partitioned(query: Query, batches: Batches, partitions: int) -> list[dict[str, pa.Table]]:
    pieces: list[dict[str, pa.Table]] = [{} for _ in range(partitions)]
    for each in query.inputs:
        rows = batches[each.file.kind]
        places = partitions_of(rows[each.file.key].to_numpy(), partitions)
        for partition, piece in enumerate(pieces):
            piece[each.file.kind] = rows.filter(pa.array(np.equal(places, partition)))
    return pieces


def _combined(input_: Input, rows: pa.Table, rng: random.Random, options: Options) -> pa.Table:
    """Any cut into batches, then blocks combined a few at a time, in any order."""
    cuts = sorted(rng.randint(0, rows.num_rows) for _ in range(rng.randint(0, 4)))
    ends = zip([0, *cuts], [*cuts, rows.num_rows], strict=True)
    blocks = [input_.fold(rows.slice(start, end - start), options) for start, end in ends]
    while len(blocks) > 1:
        rng.shuffle(blocks)
        some = rng.randint(2, len(blocks))
        blocks = [input_.combine(pa.concat_tables(blocks[:some])), *blocks[some:]]
    return input_.combine(blocks[0])


def _texts(rows: Sequence[Sequence[str]]) -> Answer:
    assert all(isinstance(field, str) for row in rows for field in row)
    return [tuple(row) for row in rows]
