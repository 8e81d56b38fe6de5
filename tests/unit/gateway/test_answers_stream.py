"""A client may go at any moment, also while a thread reads the next part for it."""

import threading
from collections.abc import Generator

import pytest

from gateway.answers import InTurns


def test_whoever_closes_waits_for_whoever_reads() -> None:
    reading, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def parts() -> Generator[bytes]:
        try:
            reading.set()
            assert go_on.wait(30)
            yield b"a part"
        finally:
            closed.set()

    turns = InTurns(parts())
    reader = threading.Thread(target=lambda: next(turns))
    closer = threading.Thread(target=turns.close)
    reader.start()
    assert reading.wait(30)
    closer.start()
    assert not closed.is_set()
    go_on.set()
    reader.join()
    closer.join()
    assert closed.is_set()
    with pytest.raises(StopIteration):
        next(turns)
