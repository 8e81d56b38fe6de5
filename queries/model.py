"""What a dataset, a file and a query are. No agent and no gateway knows one by name: they read these declarations.

Invariant: an answer depends on the rows only, never on how they were cut. So a fold's blocks can be combined in any
grouping, and partials can be merged in any order, with the same bytes as the result.

    rows ──clean──▶ batch ──fold──▶ block ─┐
    rows ──clean──▶ batch ──fold──▶ block ─┴─combine──▶ block ──partial──▶ partial ─┐
                                         (another partition) …  ──partial──▶ partial ─┴─answer──▶ rows of text

A `Summary` is answered so. A `Listing` has no partial: its blocks are sorted runs, which are merged and written.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, reduce
from operator import or_
from typing import Any, Final, Literal, NewType, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Reason = NewType("Reason", str)  # why a row is rejected, as it is shown to the client: "no rating"
Row = tuple[Any, ...]  # in the order of the schema
Mask = NDArray[np.bool_]
DEFAULT_MODEL: Final = "tiny-sentiment"
# A dataset of five queries has 31 choices of them, times a few scopes and models.
CHOICES_KEPT: Final = 1024


@dataclass(frozen=True, slots=True)
class Options:
    """What a client chose for its session; travels with every batch."""

    scope: Literal["us", "all"] = "us"  # of query 5 of the films
    model: str = DEFAULT_MODEL  # of the sentiment: a folder under models/, or a Hugging Face id
    # The session is about these queries, in the order of the dataset. Empty: about all of them.
    queries: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns what travels as JSON; without a choice of queries it does not name them."""
        fields = asdict(self)
        queries = fields.pop("queries")
        return {**fields, "queries": list(queries)} if queries else fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        return cls(**{**fields, "queries": tuple(fields.get("queries", ()))})


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that takes no part in anything, and is counted. Expected, so it is a value and never raised."""

    reason: Reason


# The exact way, for one row: the wanted fields as text, blanks not yet trimmed, in the order of `File.columns`.
# None: the row counts as read, and no query needs it.
CleanRow = Callable[[Sequence[str]], Row | Rejected | None]

# The fast way, for whole rows as bytes without the header line: a table in the schema, how many rows were read, and the
# rows that have to go the exact way. It vouches for the very same outcome, and that no row of its own is rejected; None
# where it cannot even tell the rows apart.
CleanBlock = Callable[[bytes, Sequence[str]], tuple[pa.Table, int, bytes] | None]


@dataclass(frozen=True, slots=True)
class File:
    """A kind of file: what its header must name, and what a batch of it holds."""

    kind: str  # "ratings"; also the name of its topic
    filename: str  # "ratings.csv", as it lies in a client's folder
    columns: tuple[str, ...]  # that the header must have, in any order, among others
    schema: pa.Schema  # of cleaned rows
    key: str  # the column of a batch that says the partition; int64
    clean_row: CleanRow
    clean_block: CleanBlock | None = None
    separator: str = ","
    needs: Literal["", "sentiment"] = ""  # a column `label` is added by a model before the fold
    pack: Callable[[pa.Table], pa.Table] | None = None  # cleaned rows → fewer that say as much, see `packed`
    is_folder: bool = False  # a client may have several; together they are one input, ended when the client says so
    is_broadcast: bool = False  # small: every partition gets all of its rows, whatever their key
    after: tuple[str, ...] = ()  # kinds of broadcast files that have to be there before this one is taken
    # Which cleaned rows travel, where a session asks for some queries only. None: all of them.
    travels: Callable[[pa.Table], Mask] | None = None

    def travelling(self, rows: pa.Table) -> pa.Table:
        """Returns the cleaned rows that some query of the session reads."""
        return rows.filter(pa.array(self.travels(rows))) if self.travels and rows.num_rows else rows

    def packed(self, rows: pa.Table) -> pa.Table:
        """As they travel in a batch. Rows that stand for several say for how many, in the column `rows`."""
        return self.pack(rows) if self.pack else rows

    @property
    def batch_schema(self) -> pa.Schema:
        return self.packed(self.schema.empty_table()).schema


def rows_in(batch: pa.Table) -> int:
    """How many rows of a file a batch stands for."""
    return int(pc.sum(batch["rows"]).as_py() or 0) if "rows" in batch.column_names else batch.num_rows


@dataclass(frozen=True, slots=True)
class Derived:
    """Rows that a file gives for a second stage; they travel on a topic of their own, in small batches, to the same
    partition. Its end follows when the source has ended."""

    file: File
    source: File
    select: Callable[[pa.Table, Options], pa.Table]
    rows_per_batch: int
    reads: "Reads | None" = None  # the rows of the source that it selects from


@dataclass(frozen=True, slots=True)
class Given:
    """What a fold knows besides the rows of a batch."""

    options: Options
    references: Mapping[str, pa.Table] = field(default_factory=dict)  # the query's broadcast files, whole, by kind


# Which cleaned rows matter to one query; the others change nothing if they are left out.
Reads = Callable[[pa.Table, Options], Mask]


@dataclass(frozen=True, slots=True)
class Input:
    """What a query takes from one file."""

    file: File
    fold: Callable[[pa.Table, Given], pa.Table]  # rows of a batch → a block, usually much smaller
    combine: Callable[[pa.Table], pa.Table]  # several blocks, one below the other → one; associative, any order
    reads: Reads | None = None  # None: any row may matter


@dataclass(frozen=True, slots=True)
class Query:
    name: str  # "movies-q3": of the answer file, too
    header: tuple[str, ...]
    inputs: tuple[Input, ...]

    def input(self, kind: str) -> Input | None:
        """Returns what the query takes from this kind of file; None where it does not read it."""
        return next((each for each in self.inputs if each.file.kind == kind), None)


@dataclass(frozen=True, slots=True)
class Summary(Query):
    """A query whose answer is small, however many rows there were."""

    partial: Callable[[Mapping[str, pa.Table], Options], pa.Table]  # by kind of file, combined; empty ones, too
    answer: Callable[[pa.Table, Options], Sequence[Sequence[str]]]  # all partials, one below the other, in any order


@dataclass(frozen=True, slots=True)
class Listing(Query):
    """A query that lists rows, maybe millions: one input besides broadcast ones, whose `combine` is
    `columns.in_order`. Rows come in the order of all their columns, left to right."""

    write: Callable[[Row], Sequence[str]]  # a row of a block, as it stands in the answer


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    name: str
    files: tuple[File, ...]
    queries: tuple[Query, ...]
    derived: tuple[Derived, ...] = field(default=())

    def file(self, kind: str) -> File:
        return next(file for file in self.all_files if file.kind == kind)

    @property
    def all_files(self) -> tuple[File, ...]:
        return (*self.files, *(derived.file for derived in self.derived))

    def queries_of(self, kind: str) -> tuple[Query, ...]:
        return tuple(query for query in self.queries if query.input(kind))

    def uploaded_for(self, query: Query) -> tuple[str, ...]:
        """Returns the kinds of files that a client sends for this query."""
        source_of = {each.file.kind: each.source.kind for each in self.derived}
        return tuple(source_of.get(each.file.kind, each.file.kind) for each in query.inputs)

    def asked_for(self, options: Options) -> "Dataset":
        """Returns the part of the dataset that a session with these options is about: its queries,
        the files that they read, and of those files the rows that they read."""
        return _part(self, options) if options.queries else self


@lru_cache(CHOICES_KEPT)
def _part(dataset: Dataset, options: Options) -> Dataset:
    queries = [query for query in dataset.queries if query.name in options.queries]
    needed = {each.file.kind for query in queries for each in query.inputs}
    derived = [each for each in dataset.derived if each.file.kind in needed]
    needed |= {each.source.kind for each in derived}

    def part_of(file: File) -> File:
        reads = [each.reads for query in queries for each in query.inputs if each.file is file]
        reads += [each.reads for each in derived if each.source is file]
        after = tuple(kind for kind in file.after if kind in needed)
        return replace(file, after=after, travels=_any_of(reads, options))

    files = {file.kind: part_of(file) for file in dataset.files if file.kind in needed}

    def input_of(each: Input) -> Input:
        return replace(each, file=files.get(each.file.kind, each.file))

    return replace(
        dataset,
        files=tuple(files.values()),
        queries=tuple(replace(query, inputs=tuple(map(input_of, query.inputs))) for query in queries),
        derived=tuple(replace(each, source=files[each.source.kind]) for each in derived),
    )


def _any_of(reads: Sequence[Reads | None], options: Options) -> Callable[[pa.Table], Mask] | None:
    wanted = [each for each in reads if each is not None]
    if len(wanted) < len(reads):
        return None
    return lambda rows: reduce(or_, (each(rows, options) for each in wanted))
