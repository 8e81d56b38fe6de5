"""Blocks of plain rows as columns of text, for the fast ways: no quotes, one line a row, all as wide as the header.

Invariant: what is read here is what the exact way reads. A block with a quote, a lone CR or bytes that are not UTF-8 is
declined; lines of another width (an empty one, too) and those that the caller finds odd are handed back as they stood.
"""

from codecs import BOM_UTF8
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

LINE_END: Final = 10


@dataclass(frozen=True, slots=True)
class Plain:
    """Rows of the right width, a column for each wanted name; in the order of the block."""

    columns: Mapping[str, pa.StringArray]
    count: int
    _data: bytes
    _lines: NDArray[np.int64]  # of each row
    _wrong: Collection[int]  # the lines that have another width

    def apart(self, odd: NDArray[np.bool_]) -> bytes:
        """The text of the odd rows and of those that have another width."""
        if not self._wrong and not odd.any():
            return b""
        ends = np.flatnonzero(np.frombuffer(self._data, np.uint8) == LINE_END) + 1
        starts = np.concatenate(([0], ends[:-1]))
        lines = sorted([*self._wrong, *self._lines[odd].tolist()])
        return b"".join(self._data[starts[line] : ends[line]] for line in lines)


def read(data: bytes, header: Sequence[str], wanted: Collection[str], separator: str = ",") -> Plain | None:
    """None where lines may not be rows, or nothing is plain."""
    data = data.replace(b"\r\n", b"\n") if b"\r" in data else data
    if b'"' in data or b"\r" in data or not data.endswith(b"\n") or not _is_utf8(data):
        return None
    if len(header) == 1 or data.startswith(BOM_UTF8):  # an empty line would be a row; Arrow drops the mark anywhere
        return None
    wrong: list[int] = []

    def skip(row: pa_csv.InvalidRow) -> Literal["skip"]:
        assert row.number is not None  # it is only where several threads read
        wrong.append(row.number - 1)
        return "skip"

    try:
        table = pa_csv.read_csv(
            BytesIO(data),
            read_options=pa_csv.ReadOptions(
                column_names=[str(place) for place in range(len(header))], block_size=len(data) + 1, use_threads=False
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=separator, quote_char=False, ignore_empty_lines=False, invalid_row_handler=skip
            ),
            convert_options=pa_csv.ConvertOptions(
                include_columns=[str(header.index(name)) for name in wanted],
                column_types={str(header.index(name)): pa.string() for name in wanted},
                check_utf8=False,
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        return None
    columns: dict[str, Any] = {name: table.column(place).combine_chunks() for place, name in enumerate(wanted)}
    lines = np.delete(np.arange(table.num_rows + len(wrong)), wrong)
    return Plain(columns, table.num_rows, data, lines, wrong)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
