"""Rows end where csv.reader ends them, wherever the bytes were cut."""

import csv
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cauce.errors import BadUpload
from gateway import rows
from gateway.rows import BLOCK_BYTES, MAX_ROW_BYTES, Rows

BOM = b"\xef\xbb\xbf"
SIGNS = st.sampled_from(
    [b'"', b'"', b'""', b",", b",", b";", b"\n", b"\r", b"\r\n", b"a", b" ", b"\0", b"\xc3\xa9", BOM]
)
TEXTS = st.lists(SIGNS, max_size=40).map(b"".join)
CUTS = st.lists(st.integers(0, 80), max_size=12)


@dataclass(frozen=True)
class Cut:
    """Each row with its line end, as far as it went, and how the file ended."""

    rows: Sequence[bytes]
    failed: tuple[int, str] | None = None


def by_csv_reader(data: bytes, longest: int = MAX_ROW_BYTES) -> Cut:
    lines = data.splitlines(keepends=True)
    text = [line.decode("latin-1") for line in lines]
    if data.startswith(BOM):
        text[0] = text[0].removeprefix(BOM.decode("latin-1"))
    reader = csv.reader([*text, "the line after the last"])
    found: list[bytes] = []
    line = 0
    for _ in reader:
        row = b"".join(lines[line : reader.line_num])
        if len(row) > longest:
            return Cut(found, (line + 1, "longer"))
        if reader.line_num > len(lines) and line < len(lines):
            return Cut(found, (line + 1, "never closed"))
        found += [row] if row else []
        line = reader.line_num
    return Cut(found)


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[start:stop] for start, stop in pairwise(edges)]


def by_us(data: bytes, cuts: Sequence[int] = (), *, resume: bool = False) -> Cut:
    """The blocks are split into rows by csv.reader: that they start and end with a row is what is tested."""
    taker = Rows("a.csv", at_start=True)
    found: list[bytes] = []
    try:
        for piece in pieces(data, cuts):
            if resume:
                taker = Rows("a.csv", ",", taker.tail, taker.line, at_start=taker.line == 1)
            found += whole_rows(taker.cut(piece), at_start=not found)
        found += whole_rows(taker.close(), at_start=not found)
    except BadUpload as error:
        return Cut(found, (error.line, "longer" if "longer" in error.reason else "never closed"))
    assert taker.tail == b""
    assert taker.line == 1 + len(re.findall(rb"\r\n|\n|\r", data))
    return Cut(found)


def whole_rows(block: bytes, *, at_start: bool) -> Sequence[bytes]:
    """A mark in the middle of a file is no mark: something is put before it while csv.reader looks."""
    shield = b"" if at_start or not block.startswith(BOM) else b"\n"
    cut = by_csv_reader(shield + block)
    assert cut.failed is None, block
    return cut.rows[len(shield) :]


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\n1,2\n",
        b"a,b\r\n1,2\r\n",
        b"a,b\r1,2\r",
        b"a,b\n\r1,2\r\r\n\n3,4",
        b'a,"b\nc"\n1,"2\r\n,3"\r\n4,"5\r6"\r7',
        b'"a ""quoted"" word",b\n"",""\n"""",1\n',
        b'a,b"c\nd"e,f\n',
        b'"a"b"c\n"d" ,"e\n"\n',
        b'a, "b\nc"\n',
        BOM + b'"a\n",b\n1,2\n',
        "né,ñ\n€,😀\n".encode(),
        b"\0,\0\n\0\n",
        b'a,"b\n',
        b'a,"b""',
        b'a,"b"',
        b"",
        b"\n",
        b"\r",
        BOM,
        BOM[:2],
    ],
)
def test_rows_are_those_of_csv_reader_at_every_cut(data: bytes) -> None:
    expected = by_csv_reader(data)
    for cut in range(len(data) + 1):
        assert by_us(data, [cut]) == expected
        assert by_us(data, [cut], resume=True) == expected
    assert by_us(data, range(len(data))) == expected
    assert by_us(data, range(len(data)), resume=True) == expected


@given(data=TEXTS, cuts=CUTS, resume=st.booleans())
@example(data=b'"\r', cuts=[1], resume=True)
def test_cuts_do_not_matter(data: bytes, cuts: list[int], resume: bool) -> None:
    assert by_us(data, cuts, resume=resume) == by_csv_reader(data)


@given(data=TEXTS, cuts=CUTS, resume=st.booleans())
@example(data=b"aa\naaaaaa\na\na\n", cuts=[], resume=False)  # a tail of 4, and two rows end in the next 7
def test_cuts_do_not_matter_for_rows_that_are_too_long(data: bytes, cuts: list[int], resume: bool) -> None:
    """Pieces are shorter than the longest row here, too."""
    cuts = [*cuts, *range(0, 200, 7)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "MAX_ROW_BYTES", 8)
        assert by_us(data, cuts, resume=resume).failed == by_csv_reader(data, longest=8).failed


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_row_may_have_four_mebibytes_with_its_line_end(line_end: bytes, beyond: int) -> None:
    row = b"x" * (MAX_ROW_BYTES - len(line_end) + beyond) + line_end
    taker = Rows("a.csv", at_start=True)
    *most, last = pieces(b"a" + line_end + row + b"b", range(0, len(row), BLOCK_BYTES - 1))
    assert b"".join(map(taker.cut, most)) == b"a" + line_end
    if beyond:
        with pytest.raises(BadUpload, match=r"a\.csv, line 2: this row is longer than 4 MiB"):
            taker.cut(last)
    else:
        assert taker.cut(last) == row


def test_an_error_names_the_line_in_which_the_row_starts() -> None:
    taker = Rows("films.csv", at_start=True)
    assert taker.cut(b'a,b\r\n"1\n\n2",3\r\n\r\n4,"5\n6') == b'a,b\r\n"1\n\n2",3\r\n\r\n'
    with pytest.raises(BadUpload, match=r"films\.csv, line 6: a quoted field .* never closed") as caught:
        taker.close()
    assert (caught.value.file, caught.value.line) == ("films.csv", 6)


def test_another_separator_starts_a_field_and_a_comma_does_not() -> None:
    taker = Rows("a.csv", ";", at_start=True)
    assert taker.cut(b'a;"b\nc"\n') == b'a;"b\nc"\n'
    assert taker.cut(b'a,"b\nc"\n') == b'a,"b\nc"\n'
    assert taker.cut(b'a;"b\n') == b""


def test_a_tail_with_a_whole_row_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="one unfinished row"):
        Rows("a.csv", ",", b"1,2\n3", 5, at_start=False)


@pytest.mark.parametrize("field", [b'"', b'"a""', b'x"', b'"",'])
def test_a_long_row_in_small_pieces_is_scanned_once(field: bytes) -> None:
    """4,096 pieces: scanning from the start of the row each time would be 8 GB, and take 16 s or more."""
    taker = Rows("a.csv", at_start=True)
    data = (field + b"ab" * 500) * 4000
    started = time.process_time()
    for at in range(0, len(data), 1024):
        taker.cut(data[at : at + 1024])
    assert time.process_time() - started < 5
    assert taker.tail == data
