"""Counting batches and rows: how much of each file of each client the workers have seen.

The counts are how a session proves that nothing was lost: rows read = rows counted + rows rejected.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

ROWS_HEADER = "rows"


@dataclass(frozen=True, slots=True)
class Tally:
    batches: int = 0
    rows: int = 0

    def plus(self, rows: int) -> "Tally":
        return Tally(self.batches + 1, self.rows + rows)


class Event(Protocol):
    """The part of a Faust event that a tally needs."""

    key: Any
    headers: Mapping[str, bytes]


Send = Callable[..., Awaitable[Any]]


async def tally(events: AsyncIterator[Event], table: MutableMapping[str, Any], send: Send) -> None:
    """Add each batch to its file's tally, and say so."""
    async for event in events:
        counted = Tally(**table.get(event.key, {})).plus(rows_of(event.headers))
        table[event.key] = asdict(counted)
        await send(key=event.key, value=asdict(counted))


def rows_of(headers: Mapping[str, bytes]) -> int:
    """What the header says; 1 where there is none, so that a record typed into a console counts as a row."""
    return int(headers.get(ROWS_HEADER, b"1"))
