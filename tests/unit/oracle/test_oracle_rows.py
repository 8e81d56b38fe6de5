"""Rows of a file: what is one, what is rejected, what is an error of the whole file."""

from pathlib import Path

import pytest

from cauce.errors import ConfigError
from infra.oracle.rows import Counts, as_csv, read_rows


def read(folder: Path, content: bytes) -> tuple[list[tuple[str, ...]], Counts]:
    path = folder / "file.csv"
    path.write_bytes(content)
    counts = Counts()
    return list(read_rows(path, ("b", "a"), counts)), counts


def test_fields_come_by_name_and_without_blanks(tmp_path: Path) -> None:
    rows, counts = read(tmp_path, "a,x,b\n\u00a0 1\t,,2\n".encode())
    assert rows == [("2", "1")]
    assert counts == Counts(rows=1, rejected=0)


def test_bom_crlf_empty_lines_and_a_last_line_without_end(tmp_path: Path) -> None:
    rows, counts = read(tmp_path, b"\xef\xbb\xbfa,b\r\n1,2\r\n\r\n\n3,4")
    assert rows == [("2", "1"), ("4", "3")]
    assert counts == Counts(rows=2)


def test_quotes_hold_commas_quotes_and_newlines(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, b'a,b\n"x,\r\n""y""","2"\nodd " quote,3\n')
    assert rows == [("2", 'x,\r\n"y"'), ("3", 'odd " quote')]


def test_a_field_may_be_longer_than_the_csv_module_likes(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, b"a,b\n" + b"x" * 200_000 + b",1\n")
    assert len(rows[0][1]) == 200_000


@pytest.mark.parametrize(
    "line", [b"1", b"1,2,3", b"1,", b" ,2", b'"",2', b"1,\xff", b"\xed\xa0\x80,2", b"  ", b'"1,2"']
)
def test_a_rejected_row_is_counted_and_takes_no_other_with_it(tmp_path: Path, line: bytes) -> None:
    rows, counts = read(tmp_path, b"a,b\n1,2\n" + line + b"\n3,4\n")
    assert rows == [("2", "1"), ("4", "3")]
    assert counts == Counts(rows=3, rejected=1)


def test_bytes_that_are_not_utf8_count_in_any_column(tmp_path: Path) -> None:
    rows, counts = read(tmp_path, b"a,b,c\n1,2,\xc3\n3,4,\xc3\xa9\n")
    assert rows == [("4", "3")]
    assert counts == Counts(rows=2, rejected=1)


@pytest.mark.parametrize("content", [b'a,b\n1,"2\n', b'a,b\n1,"2', b'a,b\n1,2\n"', b'a,"b'])
def test_a_quoted_field_that_is_never_closed_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ConfigError, match="never closed"):
        read(tmp_path, content)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,c\n1,2\n", b"\xff,b\n"])
def test_a_header_without_the_columns_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ConfigError, match="no column"):
        read(tmp_path, content)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must hold this file"):
        list(read_rows(tmp_path / "none.csv", ("a",), Counts()))


def test_answers_are_quoted_only_where_needed() -> None:
    rows: list[tuple[str | int | float, ...]] = [(1, "plain ' ; text", 4.0), (2, 'a,"b"', 10 / 3), (3, "x\ry\n", 1e22)]
    assert as_csv("id,text,mean", rows) == (
        b'id,text,mean\n1,plain \' ; text,4.0\n2,"a,""b""",3.3333333333333335\n3,"x\ry\n",1e+22\n'
    )
    assert as_csv("id", []) == b"id\n"
