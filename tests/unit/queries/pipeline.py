"""From fields of text to the rows of an answer, in one piece or cut and shuffled as a cluster might do it."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from queries.columns import from_rows, in_order, rows_of
from queries.keys import partitions_of
from queries.model import File, Given, Input, Listing, Options, Query, Rejected, Summary

Answer = list[tuple[str, ...]]
Batches = Mapping[str, pa.Table]  # all rows of a kind of file
Fold = Callable[[Input, pa.Table, Given], pa.Table]


def batch(file: File, rows: Iterable[Sequence[str]]) -> pa.Table:
    """The rows that cleaning lets through."""
    cleaned = [file.clean_row(row) for row in rows]
    return from_rows(file.schema, [row for row in cleaned if row is not None and not isinstance(row, Rejected)])


def answer(query: Query, batches: Batches, options: Options | None = None) -> Answer:
    """In one piece: one batch a file, one partition."""
    return _answer(query, [batches], _in_one_piece, options)


def answer_of_pieces(
    query: Query, batches: Batches, partitions: int, rng: random.Random, options: Options | None = None
) -> Answer:
    pieces = _partitioned(query, batches, partitions)
    rng.shuffle(pieces)
    return _answer(query, pieces, lambda input_, rows, given: _combined(input_, rows, rng, given), options)


def _answer(query: Query, pieces: Sequence[Batches], fold: Fold, options: Options | None) -> Answer:
    options = options or Options()
    states = [folded(query, piece, fold, options) for piece in pieces]
    match query:
        case Summary():
            return _texts(query.answer(pa.concat_tables([query.partial(state, options) for state in states]), options))
        case Listing():
            (listed,) = (each.file.kind for each in query.inputs if not each.file.is_broadcast)
            rows = in_order(pa.concat_tables([state[listed] for state in states]))
            return _texts([query.write(row) for row in rows_of(rows)])
    raise AssertionError(query)


def folded(query: Query, piece: Batches, fold: Fold, options: Options) -> dict[str, pa.Table]:
    """The state of one partition: broadcast files first, for the others may need them."""
    states: dict[str, pa.Table] = {}
    for each in sorted(query.inputs, key=lambda input_: not input_.file.is_broadcast):
        references = {kind: state for kind, state in states.items() if _input(query, kind).file.is_broadcast}
        states[each.file.kind] = fold(each, piece[each.file.kind], Given(options, references))
    return states


def _input(query: Query, kind: str) -> Input:
    return next(each for each in query.inputs if each.file.kind == kind)


def _partitioned(query: Query, batches: Batches, partitions: int) -> list[dict[str, pa.Table]]:
    pieces: list[dict[str, pa.Table]] = [{} for _ in range(partitions)]
    for each in query.inputs:
        rows = batches[each.file.kind]
        # What is packed travels by a key of its own; any partition will do for a row then.
        keys = rows[each.file.key].to_numpy() if each.file.key in rows.column_names else np.arange(len(rows))
        places = partitions_of(keys, partitions)
        for partition, piece in enumerate(pieces):
            own = rows.filter(pa.array(np.equal(places, partition)))
            piece[each.file.kind] = rows if each.file.is_broadcast else own
    return pieces


def _in_one_piece(input_: Input, rows: pa.Table, given: Given) -> pa.Table:
    return input_.combine(_not_combined(input_, rows, given))


def _not_combined(input_: Input, rows: pa.Table, given: Given) -> pa.Table:
    return input_.fold(input_.file.packed(rows), given)


def _combined(input_: Input, rows: pa.Table, rng: random.Random, given: Given) -> pa.Table:
    """Any cut into batches, then blocks combined a few at a time, in any order."""
    cuts = sorted(rng.randint(0, rows.num_rows) for _ in range(rng.randint(0, 4)))
    ends = zip([0, *cuts], [*cuts, rows.num_rows], strict=True)
    blocks = [input_.fold(input_.file.packed(rows.slice(start, end - start)), given) for start, end in ends]
    while len(blocks) > 1:
        rng.shuffle(blocks)
        some = rng.randint(2, len(blocks))
        blocks = [input_.combine(pa.concat_tables(blocks[:some])), *blocks[some:]]
    return input_.combine(blocks[0])


def _texts(rows: Sequence[Sequence[str]]) -> Answer:
    assert all(isinstance(field, str) for row in rows for field in row)
    return [tuple(row) for row in rows]


def check_cuts(query: Query, plain: Callable[..., Answer], rows: Batches, partitions: int, rng: random.Random) -> None:
    """The answer is that of a plain loop over the rows, in one piece and in any."""
    expected = plain(*(rows_of(rows[each.file.kind]) for each in query.inputs))
    assert answer(query, rows) == expected
    assert answer_of_pieces(query, rows, partitions, rng) == expected


def check_schemas(query: Query, rows: Batches) -> None:
    """Blocks and partials have one schema, rows or none, combined or not."""
    schemas = []
    for each in (rows, {kind: table.slice(0, 0) for kind, table in rows.items()}):
        blocks = folded(
            query, each, lambda input_, batch, given: input_.fold(input_.file.packed(batch), given), Options()
        )
        combined = {part.file.kind: part.combine(blocks[part.file.kind]) for part in query.inputs}
        assert {kind: block.schema for kind, block in blocks.items()} == {
            kind: block.schema for kind, block in combined.items()
        }
        partials = [query.partial(combined, Options()).schema] if isinstance(query, Summary) else []
        schemas.append([*(combined[part.file.kind].schema for part in query.inputs), *partials])
    assert schemas[0] == schemas[1]
