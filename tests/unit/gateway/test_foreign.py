"""A file of another kind is called by its name, however its bytes arrive."""

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cauce.errors import BadUpload
from gateway.parse import Parser
from gateway.uploads import with_separator
from queries.datasets import DATASETS
from queries.model import File

RATINGS = DATASETS["movies"].file("ratings")
AIRPORTS = DATASETS["flights"].file("airports")
CSV = "userId,movieId,rating,timestamp\n" + "".join(f"{n},{n},4.0,{n}\n" for n in range(200))


def zipped() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as file:
        file.writestr("ratings.csv", CSV)
    return sink.getvalue()


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"userId": [1, 2], "rating": [4.0, 5.0]}), sink)
    return sink.getvalue()


def arrow(new_file: bool) -> bytes:
    table, sink = pa.table({"userId": [1, 2]}), io.BytesIO()
    with (pa.ipc.new_file if new_file else pa.ipc.new_stream)(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


FILES = {
    "gzip": (
        gzip.compress(CSV.encode()),
        "this is a gzip file, not CSV: unpack it first, or send it with `cauce upload`",
    ),
    "bzip2": (bz2.compress(CSV.encode()), "a bzip2 file"),
    "xz": (lzma.compress(CSV.encode()), "an xz file"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00" + bytes(range(200)), "a zstd file"),
    "zip": (zipped(), "a zip file, or an Excel workbook"),
    "zip with a line end behind its magic bytes": (b"PK\x03\x04\n\0" + zipped()[6:], "a zip file"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Excel workbook"),
    "parquet": (parquet(), "a Parquet file"),
    "arrow": (arrow(True), "an Arrow file"),
    "arrow stream": (arrow(False), "an Arrow stream"),
    "utf-16 with its mark": (CSV.encode("utf-16"), "this is UTF-16 text, not CSV: save it as UTF-8"),
    "utf-16 without a mark": (CSV.encode("utf-16-le"), "NUL bytes"),
    "utf-16, big end first": (CSV.encode("utf-16-be"), "NUL bytes"),
    "semicolons": (CSV.replace(",", ";").encode(), "separated by semicolons, not by commas"),
    "tabs": (CSV.replace(",", "\t").encode(), "with the separator a tab"),
    "vertical bars": (CSV.replace(",", "|").encode(), "separated by vertical bars"),
    "semicolons behind a mark": (b"\xef\xbb\xbf" + CSV.replace(",", ";").encode(), "separated by semicolons"),
    "sep=": (b"sep=;\r\n" + CSV.replace(",", ";").encode(), "'sep=;', which only Excel reads: remove that line"),
}


def refusal(file: File, data: bytes, cuts: Sequence[int]) -> str:
    with pytest.raises(BadUpload) as caught:
        read(file, data, cuts)
    return str(caught.value)


def read(file: File, data: bytes, cuts: Sequence[int]) -> None:
    parser = Parser(file)
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        parser = Parser(file, parser.header, parser.tail, parser.line)  # as another gateway goes on
        parser.feed(data[start:end])
    parser.finish()


@pytest.mark.parametrize(("data", "says"), FILES.values(), ids=FILES)
def test_a_file_of_another_kind_is_called_by_its_name(data: bytes, says: str) -> None:
    said = refusal(RATINGS, data, [])
    assert says in said
    assert said.startswith("ratings.csv, line 1")
    assert refusal(RATINGS, data, range(1, min(len(data), 300))) == said


def test_what_seems_to_have_an_endless_first_row_is_called_by_its_name() -> None:
    assert "a gzip file" in refusal(RATINGS, b'\x1f\x8b,"' + b"x" * 100, [])
    assert "a gzip file" in refusal(RATINGS, b'\x1f\x8b,"' + b"x" * (5 << 20), [])
    assert "never closed" in refusal(RATINGS, b'x,"' + b"x" * 100, [])


def test_a_separator_is_not_offered_where_it_does_not_fit() -> None:
    assert "no column 'movieId'" in refusal(RATINGS, b"userId;movieId;timestamp\n", [])
    said = refusal(AIRPORTS, ",".join(AIRPORTS.columns).encode() + b"\n", [])
    assert "separated by commas, not by semicolons" in said


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_file_is_read_by_the_separator_that_its_client_names(separator: str) -> None:
    rows = [
        ["userId", "movieId", "rating", "timestamp"],
        *([str(n), str(n), "4.0", f'"x{separator}"'] for n in range(50)),
    ]
    data = "".join(separator.join(row) + "\n" for row in rows).encode()
    own = "" if separator == RATINGS.separator else separator
    parser = Parser(with_separator(RATINGS, own))
    pieces = [parser.feed(data), parser.finish()]
    assert sum(piece.rows for piece in pieces) == 50
    table = pa.concat_tables(piece.table for piece in pieces)
    plain = Parser(replace(RATINGS, clean_block=None))
    wanted = plain.feed(data.replace(separator.encode(), b",")).table
    assert table.equals(wanted)
    assert table.num_rows == 50
