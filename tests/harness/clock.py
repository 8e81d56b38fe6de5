"""Wrong clocks for processes of ours, by libfaketime: wall-clock time only, CLOCK_MONOTONIC and CLOCK_BOOTTIME stay."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

HOUR = 3600.0


def _libraries() -> Iterator[Path]:
    """The one for threads, where Debian's and others' packages put it."""
    for folder in (Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/local/lib")):
        yield from folder.glob("**/faketime/libfaketimeMT.so.1")


LIBRARY = next(_libraries(), None)
needs_faketime = pytest.mark.skipif(
    LIBRARY is None, reason="libfaketime is not here: wrong clocks are not tried; apt-get install libfaketime"
)


@cache
def compiled(name: str) -> Path:
    """A library of ours to be loaded before all others, compiled once a process."""
    library = Path(tempfile.mkdtemp(prefix="wrong-clock-")) / f"{name}.so"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-shared", "-fPIC", "-O1"]
    subprocess.run([*compiler, "-o", str(library), str(Path(__file__).with_name(f"{name}.c"))], check=True)
    return library


class WrongClock:
    """A clock that is off by some seconds, and jumps when it is told to. Give `variables` to a process."""

    def __init__(self, file: Path, off_seconds: float) -> None:
        self._file = file
        self.jump_to(off_seconds)

    def jump_to(self, off_seconds: float) -> None:
        """Counted from the true time, not from where it is now. Processes see it at once."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{off_seconds:+.0f}\n")
        new.replace(self._file)

    @property
    def variables(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": f"{compiled('wrong_clock')} {LIBRARY}",
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            # one name for each of the versions that are about
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


class BrokerClock:
    """The same for a broker, without libfaketime, under which a JVM does not get past its start."""

    def __init__(self, file: Path) -> None:
        self._file = file
        file.write_bytes(bytes(8))

    def jump_to(self, off_seconds: int) -> None:
        with self._file.open("r+b") as file:  # it is mapped: replaced, nobody would see it
            file.write(off_seconds.to_bytes(8, sys.byteorder, signed=True))

    @property
    def variables(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(compiled("broker_clock")), "BROKER_CLOCK": str(self._file)}
