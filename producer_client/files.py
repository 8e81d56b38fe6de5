"""Files that are there whole or not at all, through a crash of the process or of the machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Write a file under another name; it takes its own once the block has ended well and the disk has it."""
    hidden = path.with_name(f".{path.name}.part")  # always the same: a run after a crash leaves no litter
    hidden.unlink(missing_ok=True)
    try:
        with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:  # noqa: PTH123  (a mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)
    except BaseException as error:
        hidden.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(hidden)):
            error.filename = str(path)  # a write that finds no room does not say where
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
