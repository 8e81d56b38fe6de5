"""What a dataset, a file and a query are. No agent and no gateway knows one by name: they read these declarations.

Invariant: an answer depends on the rows only, never on how they were cut. So a fold's blocks can be combined in any
grouping, and partials can be merged in any order, with the same bytes as the result.

    rows ──clean──▶ batch ──fold──▶ block ─┐
    rows ──clean──▶ batch ──fold──▶ block ─┴─combine──▶ block ──partial──▶ partial ─┐
                                         (another partition) …  ──partial──▶ partial ─┴─answer──▶ rows of text

A `Summary` is answered so. A `Listing` has no partial: its blocks are sorted runs, which are merged and written.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, NewType, Self

import pyarrow as pa
import pyarrow.compute as pc

Reason = NewType("Reason", str)  # why a row is rejected, as it is shown to the client: "no rating"
Row = tuple[Any, ...]  # in the order of the schema
DEFAULT_MODEL: Final = "tiny-sentiment"


@dataclass(frozen=True, slots=True)
class Options:
    """What a client chose for its session; travels with every batch."""

    scope: Literal["us", "all"] = "us"  # of query 5 of the films
    model: str = DEFAULT_MODEL  # of the sentiment: a folder under models/, or a Hugging Face id

    def to_dict(self) -> dict[str, str]:
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        return cls(**fields)


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


@dataclass(frozen=True, slots=True)
class Given:
    """What a fold knows besides the rows of a batch."""

    options: Options
    references: Mapping[str, pa.Table] = field(default_factory=dict)  # the query's broadcast files, whole, by kind


@dataclass(frozen=True, slots=True)
class Input:
    """What a query takes from one file."""

    file: File
    fold: Callable[[pa.Table, Given], pa.Table]  # rows of a batch → a block, usually much smaller
    combine: Callable[[pa.Table], pa.Table]  # several blocks, one below the other → one; associative, any order


@dataclass(frozen=True, slots=True)
class Query:
    name: str  # "movies-q3": of the answer file, too
    header: tuple[str, ...]
    inputs: tuple[Input, ...]


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


@dataclass(frozen=True, slots=True)
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
        return tuple(query for query in self.queries if any(input_.file.kind == kind for input_ in query.inputs))
