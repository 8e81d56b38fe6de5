"""The compiled passes stay within a block and its margins, whatever bytes they get, and say what Python would say."""

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries import compiled
from queries.compiled import MARGIN, Signs, Texts, count_lines, find_rows, read_ratings

SIGNS = st.text('019,.;-: "\n\r|x', max_size=120).map(str.encode)
PAGES = 3


@contextmanager
def fenced(data: bytes, *, at_start: bool) -> Iterator[Signs]:
    """The block with its margins at the very edge of a page, beside one that nobody may touch: whoever does, dies."""
    whole = bytes(MARGIN) + data + bytes(MARGIN)
    pages = mmap.mmap(-1, PAGES * mmap.PAGESIZE)
    first = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for page in (0, PAGES - 1):
        assert protect(ctypes.c_void_p(first + page * mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
    start = mmap.PAGESIZE if at_start else (PAGES - 1) * mmap.PAGESIZE - len(whole)
    signs = np.frombuffer(pages, np.uint8)[start : start + len(whole)]
    signs[:] = np.frombuffer(whole, np.uint8)
    yield signs


@given(data=SIGNS, at_start=st.booleans())
@settings(deadline=None, max_examples=300)
def test_nothing_outside_the_margins_is_touched(data: bytes, at_start: bool) -> None:
    with fenced(data + b"\n", at_start=at_start) as signs:
        read_ratings(signs)
        for is_simple in [False] if set(b'"\r') & set(data) else [False, True]:
            found = find_rows(signs, ",", 3, [0, 2], is_simple=is_simple)
            if found is None:
                continue
            for starts, ends in zip(found[2], found[3], strict=True):
                texts = Texts(signs, starts, ends)
                _ = (
                    texts.are_bare,
                    texts.joined(),
                    texts.counts("|"),
                    texts.numbers(),
                    texts.dates(),
                    texts.time_stamps(),
                )


@given(rows=st.lists(st.lists(st.text("019. x", max_size=30), min_size=3, max_size=3), max_size=5))
@settings(deadline=None)
def test_fields_are_found(rows: list[list[str]]) -> None:
    data = "".join(",".join(row) + "\n" for row in rows).encode()
    found = find_rows(compiled.with_margins(data), ",", 3, [2, 0], is_simple=True)
    assert found is not None
    signs = compiled.with_margins(data)
    last, first = (Texts(signs, *both) for both in zip(found[2], found[3], strict=True))
    for column, texts in ((2, last), (0, first)):
        offsets, joined = texts.joined()
        bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        assert [joined[start:end].tobytes().decode() for start, end in bounds] == [row[column] for row in rows]


@given(data=SIGNS)
def test_lines_are_counted_as_python_splits_them(data: bytes) -> None:
    ends_in_a_line = bool(data) and data[-1:] not in (b"\n", b"\r")
    assert count_lines(data) == len(data.splitlines()) - ends_in_a_line


@pytest.mark.parametrize("digits", [15, 16])
def test_a_number_of_more_digits_than_fit_is_none(digits: int) -> None:
    text = b"9" * digits + b".125"
    signs = compiled.with_margins(text)
    whole, fraction, decimals = Texts(
        signs, np.array([MARGIN], np.int32), np.array([MARGIN + len(text)], np.int32)
    ).numbers()
    expected = (10**15 - 1, 125, 3) if digits == 15 else (0, 0, -1)
    assert (int(whole[0]), int(fraction[0]), int(decimals[0])) == expected
