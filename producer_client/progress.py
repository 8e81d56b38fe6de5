"""How an upload goes, on standard error: bars on a terminal, a plain line every few seconds elsewhere."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Protocol, Self, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from producer_client.transfer import Watcher

LINE_SECONDS: Final = 5.0
MEGA: Final = 1_000_000


class Show(Watcher, Protocol):
    """A watcher that also counts answers, and is closed at the end."""

    def answered(self, query: str, done: int, of: int) -> None: ...
    def tell(self, what: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...


class Nothing:
    """For --quiet."""

    def begin(self, name: str, length: int) -> None: ...
    def at(self, name: str, offset: int) -> None: ...
    def trouble(self, name: str, what: str) -> None: ...
    def answered(self, query: str, done: int, of: int) -> None: ...
    def tell(self, what: str) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...


class Bars:
    """One bar a file, with rate and time left."""

    def __init__(self, console: Console) -> None:
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}
        self._moved: set[str] = set()
        self._troubled_at: dict[str, float] = {}

    def begin(self, name: str, length: int) -> None:
        if name in self._tasks:
            self._bars.update(self._tasks[name], total=length)
        else:
            self._tasks[name] = self._bars.add_task(name, total=length or None)

    def at(self, name: str, offset: int) -> None:
        if name not in self._moved:  # of a resumed upload: what was there already is not our speed
            self._moved.add(name)
            self._bars.reset(self._tasks[name], completed=offset)
        self._bars.update(self._tasks[name], completed=offset)

    def trouble(self, name: str, what: str) -> None:
        now = time.monotonic()
        if now - self._troubled_at.get(name, -LINE_SECONDS) >= LINE_SECONDS:
            self._troubled_at[name] = now
            self._bars.console.print(f"{name}: {what}; trying again", markup=False, highlight=False)

    def answered(self, query: str, done: int, of: int) -> None:
        self.tell(f"{query} is here ({done} of {of})")

    def tell(self, what: str) -> None:
        self._bars.console.print(what, markup=False, highlight=False)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bars.stop()


class Lines:
    """A line every five seconds, and one for each thing that happened."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock, self._lock = out, clock, threading.Lock()
        self._began_at = self._said_at = clock()
        self._lengths: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._offsets: dict[str, int] = {}
        self._troubled_at: dict[str, float] = {}

    def begin(self, name: str, length: int) -> None:
        with self._lock:
            self._lengths[name] = length
            self._offsets.setdefault(name, 0)

    def at(self, name: str, offset: int) -> None:
        with self._lock:
            self._first.setdefault(name, offset)  # of a resumed upload: what was there already is not our speed
            self._offsets[name] = offset
            now = self._clock()
            if now - self._said_at >= LINE_SECONDS:
                self._said_at = now
                self._say(self._line(now))

    def trouble(self, name: str, what: str) -> None:
        with self._lock:
            now = self._clock()
            if now - self._troubled_at.get(name, -LINE_SECONDS) >= LINE_SECONDS:
                self._troubled_at[name] = now
                self._say(f"{name}: {what}; trying again")

    def answered(self, query: str, done: int, of: int) -> None:
        self.tell(f"{query} is here ({done} of {of})")

    def tell(self, what: str) -> None:
        self._say(what)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...

    def _line(self, now: float) -> str:
        done, total = sum(self._offsets.values()), sum(self._lengths.values())
        rate = max(0.0, (done - sum(self._first.values())) / max(now - self._began_at, 0.001))
        speed = f"{rate / MEGA:.0f} MB/s"
        if not all(self._lengths.values()):  # of what is unpacked or piped, the length is known at its end
            return f"{', '.join(map(self._share, self._lengths))}: {done / MEGA:.0f} MB, {speed}"
        left = f"{(total - done) / rate:.0f} s left" if rate else "no bytes yet"
        files = ", ".join(map(self._share, self._lengths))
        return f"{files}: {done / MEGA:.0f} of {total / MEGA:.0f} MB, {speed}, {left}"

    def _share(self, name: str) -> str:
        length, offset = self._lengths[name], self._offsets[name]
        return f"{name} {100 * offset // length} %" if length else f"{name} {offset / MEGA:.0f} MB"

    def _say(self, line: str) -> None:
        print(line, file=self._out, flush=True)


def show_on(stream: TextIO, *, quiet: bool) -> Show:
    if quiet:
        return Nothing()
    console = Console(file=stream)
    return Bars(console) if console.is_terminal else Lines(stream)
