"""Rows and rejections are those of csv.reader over the whole text, wherever the bytes were cut and taken up again."""

import csv
import io
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cauce.errors import BadUpload
from gateway.parse import Parser
from gateway.rows import BLOCK_BYTES, MAX_ROW_BYTES
from queries.model import File, Reason, Rejected, Row
from queries.movies_blocks import ratings_block
from queries.movies_cleaning import RATING_COLUMNS, RATINGS_SCHEMA, clean_rating

BOM = b"\xef\xbb\xbf"


def clean_pair(fields: Sequence[str]) -> Row | Rejected | None:
    first, second = (field.strip() for field in fields)
    if not first:
        return Rejected(Reason("no a"))
    return None if first == "x" else (first, second)


PAIRS = File(
    kind="pairs",
    filename="pairs.csv",
    columns=("a", "b"),
    schema=pa.schema([("first", pa.string()), ("second", pa.string())]),
    key="first",
    clean_row=clean_pair,
)
RATINGS = File(
    kind="ratings",
    filename="ratings.csv",
    columns=RATING_COLUMNS,
    schema=RATINGS_SCHEMA,
    key="movie_id",
    clean_row=clean_rating,
    clean_block=ratings_block,
)


@dataclass(frozen=True)
class Outcome:
    kept: Sequence[Row]
    rows: int
    rejected: dict[str, int]


def parsed(file: File, data: bytes, cuts: Sequence[int] = (), *, resume: bool = False) -> Outcome:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    parser = Parser(file)
    pieces = []
    for start, stop in pairwise(edges):
        if resume:
            parser = Parser(file, parser.header, parser.tail, parser.line)
        pieces.append(parser.feed(data[start:stop]))
    pieces.append(parser.finish())
    assert all(piece.table.schema == file.schema for piece in pieces)
    table = pa.concat_tables(piece.table for piece in pieces)
    rejected: Counter[str] = Counter()
    for piece in pieces:
        rejected.update(piece.rejected)
    kept = [tuple(row.values()) for row in table.to_pylist()]
    return Outcome(kept, sum(piece.rows for piece in pieces), dict(rejected))


def by_csv_reader(file: File, data: bytes) -> Outcome:
    """The meaning of a file, the short way. Only for a good header and closed quotes."""
    text = io.StringIO(data.decode("utf-8-sig", "surrogateescape"), newline="")
    header, *rows = [row for row in csv.reader(text, delimiter=file.separator) if row]
    places = [[name.strip() for name in header].index(column) for column in file.columns]
    kept: list[Row] = []
    rejected: Counter[str] = Counter()
    for row in rows:
        if any("\udc80" <= sign <= "\udcff" for field in row for sign in field):
            rejected["not UTF-8"] += 1
        elif len(row) != len(header):
            rejected["wrong number of fields"] += 1
        else:
            cleaned = file.clean_row([row[place] for place in places])
            if isinstance(cleaned, Rejected):
                rejected[cleaned.reason] += 1
            elif cleaned is not None:
                kept.append(cleaned)
    return Outcome(kept, len(rows), dict(rejected))


def outcome(file: File, data: bytes, cuts: Sequence[int] = (), *, resume: bool = False) -> Outcome | tuple[int, str]:
    """Of a file that may be refused, too: in which line, and why."""
    try:
        return parsed(file, data, cuts, resume=resume)
    except BadUpload as error:
        return error.line, error.reason


HEADERS = st.sampled_from(
    [b"a,b\n", BOM + b"a,b\r\n", b'b,"a"\r', BOM + b'"a" , b ,c\n', b"\n\r\nc,b,,,a\n", BOM + b'\n"a\n",b\n']
)
SIGNS = st.sampled_from(
    [
        *(b"a", b"x", b"1", b" ", b",", b",", b",", b"\n", b"\n", b"\r", b"\r\n", b'"', b'"', b'""'),
        *(b"\0", b"\x0b", b"\x1c", b"\xff", b"\xc3", b"\xa9", "é\u2028\u0085😀".encode(), b"\xed\xb3\xbf", BOM),
    ]
)
BODIES = st.lists(SIGNS | st.sampled_from([b"1,2\n", b'"a\n",b\r\n', b",\n", b"x,y\r"]), max_size=40).map(b"".join)
CUTS = st.lists(st.integers(0, 120), max_size=12)


@given(header=HEADERS, body=BODIES, cuts=CUTS, resume=st.booleans())
@example(header=b"a,b\n", body=b"1,\xff\n", cuts=[6], resume=True)
@example(header=BOM + b"\r\n" + BOM + b"a,a,b\n", body=b"1,2,3\n", cuts=[4, 5, 6], resume=True)
@settings(deadline=None)
def test_cuts_and_resumes_do_not_matter(header: bytes, body: bytes, cuts: list[int], resume: bool) -> None:
    data = header + body
    expected = outcome(PAIRS, data)
    assert outcome(PAIRS, data, cuts, resume=resume) == expected
    assert outcome(PAIRS, data, range(len(data)), resume=resume) == expected
    if isinstance(expected, Outcome):
        assert expected == by_csv_reader(PAIRS, data)
    else:
        assert "never closed" in expected[1]


@given(data=st.binary(max_size=60) | BODIES, cuts=CUTS, resume=st.booleans())
@example(data=b"\n" + BOM + b'"a\n', cuts=[1], resume=True)  # a mark that is not at the start of the file is text
@settings(deadline=None)
def test_any_bytes_are_parsed_or_refused_and_nothing_else(data: bytes, cuts: list[int], resume: bool) -> None:
    assert outcome(PAIRS, data, cuts, resume=resume) == outcome(PAIRS, data)


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        (b"1,2\n", [("1", "2")]),
        (b" 1 ,2", [("1", "2")]),
        (b'1,"2,\r\n3"\r\n', [("1", "2,\r\n3")]),
        (b'"1 ""one""",2\n', [('1 "one"', "2")]),
        (b'1,2"3\n', [("1", '2"3')]),
        (b'"1"x"y",2\n', [('1x"y"', "2")]),
        (b'1, "2"\n', [("1", '"2"')]),
        (b"1,2\r3,4\r", [("1", "2"), ("3", "4")]),
        (b"1\x0b2\x1c3,.\xe2\x80\xa8\xc2\x85.\n", [("1\x0b2\x1c3", ".\u2028\x85.")]),
        (b"\0,1\0\n", [("\0", "1\0")]),
        (b"\n\r\n\r1,2\n\n", [("1", "2")]),
    ],
)
def test_a_row_is_read_as_csv_reader_does(row: bytes, kept: list[Row]) -> None:
    assert parsed(PAIRS, b"a,b\n" + row) == Outcome(kept, len(kept), {})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"1\n", "wrong number of fields"),
        (b"1,2,3\n", "wrong number of fields"),
        (b"  \n", "wrong number of fields"),
        (b"1,\xff\n", "not UTF-8"),
        (b"1,\xed\xb3\xbf\n", "not UTF-8"),
        (b"\xc3,2,3\n", "not UTF-8"),
        (b" ,2\n", "no a"),
        (b'"",""\n', "no a"),
    ],
)
def test_a_bad_row_is_counted_and_its_neighbours_stay(row: bytes, reason: str) -> None:
    data = b"a,b\n" + "é,2\nx,3\n".encode() + row + b"4,5\n"
    assert parsed(PAIRS, data) == Outcome([("é", "2"), ("4", "5")], 4, {reason: 1})


def test_a_file_of_one_column_has_blanks_and_empty_texts_but_no_empty_lines() -> None:
    one = replace(PAIRS, columns=("a",), schema=pa.schema([("a", pa.string())]), clean_row=tuple)
    assert parsed(one, b'a\n1\n\n  \n""\n') == Outcome([("1",), ("  ",), ("",)], 3, {})


def test_columns_are_found_by_name_with_another_separator() -> None:
    file = replace(PAIRS, separator=";")
    assert parsed(file, BOM + b'"b"; a ;c,"\n1,5;"2;\n";3\n') == Outcome([("2;", "1,5")], 1, {})


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"a,B,bc\n1,2\n", 1, r"no column 'b'; the nearest is 'bc'; it has to name a,b$"),
        (b"\n\n1;2\n", 3, r"no column 'a'; the nearest is '1;2'"),
        (b"\xe9,b\n1,2\n", 1, r"not UTF-8"),
        (b"\n\xe9,b\n1,2\n", 2, r"not UTF-8"),
        (b"a,b, a\n1,2,3\n", 1, r"2 columns 'a'"),
        (b"a,b,c,c\n", 1, r"2 columns 'c'"),
        (b"", 1, r"no header line; it has to name a,b$"),
        (BOM, 1, r"no header line"),
        (b"\n\r\n", 3, r"no header line"),
        (b'a,"b\n1,2\n', 1, r"never closed"),
        (b'a,b\n1,2\n3,"4\n5,6\n', 3, r"never closed"),
        (b"a," + b"b" * 1000, 1, r"no column 'b'; the nearest is 'a'"),
        (b",".join(b"%d" % n for n in range(100_000)), 1, r"no column 'a'"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(data: bytes, line: int, reason: str) -> None:
    with pytest.raises(BadUpload, match=rf"^pairs\.csv, line {line}: .*{reason}") as caught:
        parsed(PAIRS, data)
    assert caught.value.line == line
    assert len(caught.value.reason) < 300


def test_columns_without_a_name_may_come_twice() -> None:
    assert parsed(PAIRS, b"a,b,,\n1,2,3,4\n") == Outcome([("1", "2")], 1, {})


def test_a_field_may_be_as_long_as_a_row() -> None:
    long = b"y" * (MAX_ROW_BYTES - 5)
    assert parsed(PAIRS, b'a,b\n1,"' + long + b'"\n', range(0, MAX_ROW_BYTES, 300_000)).kept == [("1", long.decode())]
    with pytest.raises(BadUpload, match="line 3: this row is longer"):
        parsed(PAIRS, b'a,b\n\n1,"y' + long + b'"\n')


def test_only_the_block_that_the_fast_way_declines_goes_the_exact_way() -> None:
    taken = []

    def clean_block(data: bytes, header: Sequence[str]) -> tuple[pa.Table, int, bytes] | None:
        taken.append(data)
        return ratings_block(data, header)

    parser = Parser(replace(RATINGS, clean_block=clean_block))
    pieces = [
        parser.feed(data) for data in (b"userId,movieId,rating,timestamp\n1,2,3.", b"0,4\n5,", b"6,7.5 ,8\n9,1,,2\n3")
    ]
    assert taken == [b"1,2,3.0,4\n", b"5,6,7.5 ,8\n9,1,,2\n"]
    assert [(piece.table.to_pylist(), piece.rows, piece.rejected) for piece in pieces] == [
        ([], 0, {}),
        ([{"movie_id": 2, "half_stars": 6}], 1, {}),
        ([], 2, {"no rating": 1}),
    ]
    assert parser.finish().rejected == {"wrong number of fields": 1}


@pytest.mark.parametrize(
    ("file", "header", "row", "times"),
    [
        (RATINGS, b"userId,movieId,rating,timestamp\n", b"1234,567,3.5,1260759144\n", 4),
        (PAIRS, b"a,b\n", b'"some text, or more",' + b"and another " * 100 + b"\n", 2),
    ],
)
def test_memory_does_not_grow_with_the_file(file: File, header: bytes, row: bytes, times: int) -> None:
    """Thirty-two or sixteen pieces of 1 MiB, each cut inside a row: the last take no more than the first."""
    parser = Parser(file)
    parser.feed(header)
    piece = row * (BLOCK_BYTES // len(row)) + row[:7]
    rest = row[7:] + row * (BLOCK_BYTES // len(row))
    peaks, arrow = [], []
    tracemalloc.start()
    try:
        for _ in range(4):
            tracemalloc.reset_peak()
            for _ in range(times):
                parser.feed(piece)
                parser.feed(rest)
            peaks.append(tracemalloc.get_traced_memory()[1])
            arrow.append(pa.total_allocated_bytes())
    finally:
        tracemalloc.stop()
    assert max(peaks) < 40 * BLOCK_BYTES
    assert peaks[-1] < 1.1 * peaks[0]
    assert arrow[-1] <= arrow[0]
