"""The parser of every real kind of file under fire: any bytes, in any pieces, are rows or one BadUpload, and the same
whatever the cuts. (tests/unit/gateway/test_parse.py holds the parser equal to csv.reader, on a file of two columns.)

The corpus beside this file is run first: small files that were trouble once, or look as if they might be.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cauce.errors import BadUpload
from gateway.parse import Parser
from queries.datasets import DATASETS
from queries.model import File

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.csv"))
FILES = {file.kind: file for dataset in DATASETS.values() for file in dataset.files}

Outcome = tuple[list[str], int, dict[str, int]] | str


def outcome(file: File, data: bytes, cuts: Sequence[int]) -> Outcome:
    """The rows, how many were read, which were refused; or why the file was. Anything else is raised."""
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    parser, rows, kept, rejected = Parser(file), 0, list[str](), Counter[str]()
    try:
        for start, stop in pairwise(edges):
            parser = Parser(file, parser.header, parser.tail, parser.line)  # as another gateway goes on
            piece = parser.feed(data[start:stop])
            kept += map(repr, piece.table.to_pylist())
            rows += piece.rows
            rejected.update(piece.rejected)
        piece = parser.finish()
    except BadUpload as error:
        return f"{error.line}: {error.reason}"
    kept += map(repr, piece.table.to_pylist())
    rejected.update(piece.rejected)
    return sorted(kept), rows + piece.rows, dict(rejected)


def with_header(file: File, body: bytes) -> bytes:
    return file.separator.join(file.columns).encode() + b"\n" + body


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_was_trouble_once(path: Path, kind: str) -> None:
    file, data = FILES[kind], path.read_bytes()
    for each in (data, with_header(file, data)):
        whole = outcome(file, each, [])
        for cuts in (range(0, len(each), 1 + len(each) // 40), range(0, len(each), 7 + len(each) // 9)):
            assert outcome(file, each, cuts) == whole


FIELDS = st.sampled_from(
    [
        *(
            "",
            " ",
            "1",
            "-1",
            "1.0",
            "0.5",
            "12.340",
            "9" * 30,
            "1e5",
            "nan",
            "tt0114709",
            "862",
            "NULL",
            "None",
            "é",
            "\0",
        ),
        *(
            "[]",
            "[{'id': 1, 'name': 'a'}]",
            "[{'name': ",
            "{'name': 'a'}",
            "[" * 50,
            "2000-01-01",
            "2000-02-30",
            "PT4H19M",
        ),
        *(
            "P1DT8M",
            "2024-01-01 06:00:00",
            "BOS",
            "BOS||LAX",
            "||",
            '"',
            '""',
            '"a\nb"',
            '"a""b"',
            'a"b',
            "\r",
            "\ufeff",
        ),
    ]
)


@st.composite
def near_files(draw: st.DrawFn) -> tuple[str, bytes]:
    """Mostly as wide as they should be, with fields that mean something in some place."""
    kind = draw(st.sampled_from(sorted(FILES)))
    file = FILES[kind]
    width = len(file.columns)
    widths = st.sampled_from([width] * 6 + [1, width - 1, width + 1])
    rows = [draw(st.lists(FIELDS, min_size=wide, max_size=wide)) for wide in draw(st.lists(widths, max_size=6))]
    ends = st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n", ""])
    text = "".join(file.separator.join(row) + draw(ends) for row in rows)
    body = text.encode() + draw(st.sampled_from([b"", b"\xff", b'"', b"\xc3"]))
    return kind, draw(st.sampled_from([with_header(file, body), with_header(file, body), body]))


@given(made=near_files(), cuts=st.lists(st.integers(0, 300), max_size=8))
@settings(deadline=None)
def test_no_near_file_is_a_surprise(made: tuple[str, bytes], cuts: list[int]) -> None:
    kind, data = made
    assert outcome(FILES[kind], data, cuts) == outcome(FILES[kind], data, [])


@given(
    kind=st.sampled_from(sorted(FILES)), data=st.binary(max_size=200), cuts=st.lists(st.integers(0, 300), max_size=8)
)
@settings(deadline=None)
def test_no_bytes_are_a_surprise(kind: str, data: bytes, cuts: list[int]) -> None:
    for each in (data, with_header(FILES[kind], data)):
        assert outcome(FILES[kind], each, cuts) == outcome(FILES[kind], each, [])
