"""What travels on the topics: batches of rows as Arrow with readable headers, everything else as JSON.

Invariant: a reader needs nothing but the record. Headers say whose it is and what it holds, so that any console tool
can follow a session.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, NewType, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

ClientId = NewType("ClientId", str)
UploadId = NewType("UploadId", str)
Headers = Mapping[str, bytes]

ROWS_PER_BATCH: Final = 100_000
COMPRESSION: Final[Literal["zstd"]] = "zstd"  # 1.8 B a rating, lz4 2.9, none 5.0
COMPRESSED_BYTES: Final = 16 << 10  # what is smaller stays as it is: 8 overviews took 120 µs to compress, 52 without
SMALLEST, LARGEST = -(2**31), 2**31 - 1
WAS_WIDE: Final = {b"was": b"int64"}
SET_ASIDE: Final = "set_aside"  # a header that a worker adds to a record that ends workers: why it must not be read

T = TypeVar("T", "Session", "Upload", "Answer")
Kind = Literal["batch", "end", "abort", "partial", "more", "failed", "counted"]


@dataclass(frozen=True, slots=True)
class About:
    """The headers of a record on an input, derived or partials topic."""

    kind: Kind
    client_id: ClientId
    dataset: str
    subject: str  # the kind of file (batch, end, abort, counted), or the query (partial, more, failed)
    rows: int = 0
    part: int = 0  # partial: which of the `parts` of which `run`, from which `partition`
    parts: int = 1
    run: int = 0
    runs: int = 0  # of this partition; 0 while there are more to come
    partition: int = -1
    options: Mapping[str, Any] = field(default_factory=dict)

    def headers(self) -> list[tuple[str, bytes]]:
        fields = asdict(self)
        fields["options"] = json.dumps(fields["options"], separators=(",", ":"))
        return [(name, str(value).encode()) for name, value in fields.items()]

    @classmethod
    def read(cls, headers: Headers) -> Self:
        text = {name: value.decode() for name, value in headers.items()}
        numbers = {name: int(text[name]) for name in ("rows", "part", "parts", "run", "runs", "partition")}
        return cls(
            kind=text["kind"],  # type: ignore[arg-type]  # written by us
            client_id=ClientId(text["client_id"]),
            dataset=text["dataset"],
            subject=text["subject"],
            options=json.loads(text["options"]),
            **numbers,
        )


def encode(table: pa.Table, compression: Literal["zstd"] | None = COMPRESSION) -> bytes:
    """Rows as an Arrow IPC stream: its schema goes along, so any Arrow library reads it. Columns of int64 whose numbers
    are small travel as int32, which takes a third of the time to compress; `decode` widens them again.

    In this thread: to hand each column to another one costs a batch as much CPU again as a third of its compression."""
    table = narrowed(table)
    sink = pa.BufferOutputStream()
    chosen = compression if table.nbytes >= COMPRESSED_BYTES else None
    options = pa.ipc.IpcWriteOptions(compression=chosen, use_threads=False)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def decode(value: bytes) -> pa.Table:
    with pa.ipc.open_stream(value, options=pa.ipc.IpcReadOptions(use_threads=False)) as reader:
        return widened(reader.read_all())


def narrowed(table: pa.Table) -> pa.Table:
    for place, column in enumerate(table.columns):
        if column.type == pa.int64() and column.null_count < len(column):
            limits = pc.min_max(column)
            if limits["min"].as_py() >= SMALLEST and limits["max"].as_py() <= LARGEST:
                small = pa.field(table.column_names[place], pa.int32(), metadata=WAS_WIDE)
                table = table.set_column(place, small, column.cast(pa.int32()))
    return table


def widened(table: pa.Table) -> pa.Table:
    for place, known in enumerate(table.schema):
        if known.metadata == WAS_WIDE:
            wide = pa.field(known.name, pa.int64())
            table = table.set_column(place, wide, table.column(place).cast(pa.int64()))
    return table


@dataclass(frozen=True, slots=True)
class Session:
    """Topic `sessions`, by client id. Ended sessions are tombstones."""

    client_id: ClientId
    dataset: str
    options: Mapping[str, Any]
    created_at: float
    expires_at: float  # renewed by every upload's progress; past it any gateway ends the session
    address: str = ""  # who opened it, as a keyed fingerprint; empty: this machine


@dataclass(frozen=True, slots=True)
class Upload:
    """Topic `uploads`, by client id and upload id: how far a file has come, in the transaction that carries its rows.

    `offset` bytes are taken, of which the last, `tail`, are a row that was cut in two and is in no batch yet."""

    client_id: ClientId
    upload_id: UploadId
    file: str  # kind
    name: str
    length: int | None  # of the bytes that are uploaded; None: its client does not know it yet
    offset: int = 0
    tail: str = ""  # base64
    line: int = 1  # of the file, where the tail starts
    header: tuple[str, ...] = ()  # of the CSV file, once it was read
    rows: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)  # by reason
    sent: int = 0  # rows in batches; neither rejected nor left out because no query needs them
    failed: str = ""  # what is wrong with the file; nothing more is taken
    files: int = 0  # not of a file: of a folder that is closed, how many it has
    # What its client says of the file on its disk, to tell it from another one: bytes, milliseconds since 1970, and
    # SHA-256 of its first and last 64 KiB, in hex.
    size: int | None = None
    mtime: int | None = None
    fingerprint: str = ""
    separator: str = ""  # of its columns, where it is not the one of its kind of file
    is_deleted: bool = False  # by its client, when some of it was taken
    answered: tuple[str, ...] = ()  # of a file that its client deleted: the queries that had their answers before
    tag: str = ""  # of its address, where it has taken the place of another file
    metadata: str = ""  # the header Upload-Metadata of its creation, told back as it came

    @property
    def complete(self) -> bool:
        return self.offset == self.length and not self.failed

    @property
    def unused(self) -> int:
        """Rows that no query uses: neither sent nor rejected."""
        return self.rows - self.sent - sum(self.rejected.values())


@dataclass(frozen=True, slots=True)
class Answer:
    """Topic `answers`, by client id: the CSV file of a query, in pieces; or why there is none. Or, of a kind of file,
    how many batches and rows the workers have folded."""

    client_id: ClientId
    query: str  # or the kind of file
    state: Literal["done", "failed", "counted"]
    part: int = 0
    parts: int = 1  # 0: not known yet, a later part will say
    csv: str = ""
    size: int = 0  # of the CSV text, in bytes
    reason: str = ""
    batches: int = 0
    rows: int = 0


def to_json(message: Session | Upload | Answer) -> bytes:
    return json.dumps(asdict(message), ensure_ascii=False, separators=(",", ":")).encode()


def from_json(kind: type[T], value: bytes) -> T:
    fields: dict[str, Any] = json.loads(value)
    for name in ("header", "answered"):
        if name in fields:
            fields[name] = tuple(fields[name])
    return kind(**fields)


def join(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """One below the other; an empty table in the schema where there is none."""
    return pa.concat_tables([schema.empty_table(), *tables])
