"""Files that appear under their name only when all of them are complete, and the lines in them."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from cauce.errors import ConfigError

Progress = Callable[[str, int, int], None]  # file, rows in all, rows so far
Lines = Iterator[tuple[int, str]]  # rows done so far, the text of some more lines


def write_all(folder: Path, contents: dict[str, tuple[int, Lines]], progress: Progress) -> None:
    """Each file is written under a temporary name; then all are renamed. A crash leaves no half file behind a name."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as clean_up:
            temporary = {name: folder / f".{name}.{os.getpid()}.partial" for name in contents}
            for name, (rows, lines) in contents.items():
                clean_up.callback(temporary[name].unlink, missing_ok=True)
                write(temporary[name], lines, partial(progress, name, rows))
            for name, path in temporary.items():
                path.replace(folder / name)
    except OSError as error:
        raise ConfigError(f"{error.filename or folder}: {error.strerror}; give a folder that can be written") from error


def write(path: Path, lines: Lines, progress: Callable[[int], None]) -> None:
    with path.open("wb") as file:
        for done, text in lines:
            file.write(text.encode())
            progress(done)


def line(fields: Iterable[str], end: str = "\n") -> str:
    return ",".join(map(quoted, fields)) + end


def quoted(field: str) -> str:
    """As RFC 4180 wants it. The csv module has changed its mind between versions about when to quote."""
    if any(sign in field for sign in ',"\r\n'):
        return '"' + field.replace('"', '""') + '"'
    return field
