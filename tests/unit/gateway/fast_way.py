"""The fast way of a file against the exact one, on the same bytes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from gateway.parse import Parser, Piece
from queries.model import File


@dataclass(frozen=True, slots=True)
class Taken:
    rows: int
    odd: bytes  # set aside

    @property
    def all(self) -> bool:
        return not self.odd


def check(file: File, data: bytes, header: Sequence[str]) -> Taken | None:
    """What the fast way took, None if it declined; it has to be right, whatever it set aside."""
    assert file.clean_block is not None
    taken = file.clean_block(data, header)
    if taken is None:
        return None
    table, rows, odd = taken
    expected, rest = exactly(file, data, header), exactly(file, odd, header)
    assert table.schema == file.schema
    table.validate(full=True)
    assert sorted(map(str, table.to_pylist() + rest.table.to_pylist())) == sorted(map(str, expected.table.to_pylist()))
    assert rows + rest.rows == expected.rows
    assert expected.rejected == rest.rejected
    return Taken(rows, odd)


def exactly(file: File, data: bytes, header: Sequence[str]) -> Piece:
    return Parser(replace(file, clean_block=None), tuple(header), line=2).feed(data)


def check_one_odd_place(file: File, good: bytes, at: int, sign: bytes, header: Sequence[str]) -> None:
    """With a sign put in, and with one in the place of another."""
    check(file, good[:at] + sign + good[at:], header)
    check(file, good[:at] + sign + good[at + 1 :], header)


def check_any_signs(file: File, data: bytes, header: Sequence[str]) -> None:
    """As they come, and with a line end behind them."""
    check(file, data, header)
    check(file, data + b"\n", header)


def written(rows: Iterable[Sequence[str]], line_end: Callable[[], str]) -> bytes:
    return "".join(",".join(row) + line_end() for row in rows).encode()
