"""The gate between the queues and the agents: closed, it holds every event that no agent has begun.

Invariant: once the gate is closed and nothing is in flight, every event begun so far has been finished by all agents
that take it, and no other event has been touched. That is the event boundary at which a checkpoint ends.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from faust.types import EventT, Message
from mode.utils.queues import ThrowableQueue

from cauce.errors import CauceError


class EventTooLong(CauceError):
    """An agent holds an event for longer than a transaction may be open."""

    def __init__(self, begun: Iterable[Message], timeout_ms: int) -> None:
        where = ", ".join(sorted(f"{message.topic}-{message.partition}@{message.offset}" for message in begun)[:5])
        super().__init__(
            f"no event boundary for {timeout_ms} ms, agents still hold {where}; "
            "send smaller records, or set transaction_timeout_ms higher"
        )


class Gate:
    """Open or closed. Starts closed: nothing flows before the first assignment is restored."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    def close(self) -> None:
        self._opened.clear()

    async def admit(self, item: Any) -> None:
        """Return when the item may be worked on. One that another agent has begun already must be finished."""
        while not self._opened.is_set():
            if isinstance(item, EventT) and item.message.tracked:
                return
            await self._opened.wait()


class GatedQueue(ThrowableQueue[Any]):
    """The queue in front of an agent; what it hands out has passed the gate.

    Faust's flow control is no gate: a suspended stream drops what it takes from its queue.
    """

    def __init__(self, *, gate: Gate, **options: Any) -> None:
        super().__init__(**options)
        self._gate = gate

    async def get(self) -> Any:
        item = await super().get()
        await self._gate.admit(item)
        return item


class InFlight(set[Message]):
    """Messages begun and not yet finished. Faust's streams call `add` and `discard` (they hold a reference to both)."""

    def __init__(self, on_begun: Callable[[Message], None], on_finished: Callable[[Message], None]) -> None:
        super().__init__()
        self._on_begun = on_begun
        self._idle = asyncio.Event()
        self._idle.set()
        self._on_finished = on_finished

    def add(self, message: Message) -> None:
        self._on_begun(message)
        super().add(message)
        self._idle.clear()

    def discard(self, message: object) -> None:
        assert isinstance(message, Message)
        super().discard(message)
        self._on_finished(message)
        if not self:
            self._idle.set()

    async def drained(self) -> None:
        await self._idle.wait()
