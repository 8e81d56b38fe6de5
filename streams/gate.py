"""The gate between the queues and the agents: closed, it holds every event that no agent has begun.

Invariant: once the gate is closed and nothing is in flight, every event begun so far has been finished by all agents
that take it, and no other event has been touched. That is the event boundary at which a checkpoint ends.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakSet

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
        self.is_open = False
        self._queues: WeakSet[GatedQueue] = WeakSet()

    def watched_by(self, queue: "GatedQueue") -> None:
        self._queues.add(queue)

    def open(self) -> None:
        self.is_open = True
        for queue in self._queues:
            queue.on_gate_opened()

    def close(self) -> None:
        self.is_open = False


class GatedQueue(ThrowableQueue[Any]):
    """The queue in front of an agent. While the gate is closed it looks empty, but for events that another agent has
    begun already: those must be finished, and overtake what nobody has begun (an agent may read topics that the other
    does not). Events of one topic never overtake each other: all agents get them in the same order.

    Faust's flow control is no gate: a suspended stream drops what it takes from its queue.
    """

    _queue: deque[Any]
    _getters: deque[asyncio.Future[None]]
    _wakeup_next: Callable[[deque[asyncio.Future[None]]], None]

    def __init__(self, *, gate: Gate, **options: Any) -> None:
        super().__init__(**options)
        self._gate = gate
        self._looked_at = 0  # so many at the front are not begun, and nobody can begin them while the gate is closed
        gate.watched_by(self)

    def on_gate_opened(self) -> None:
        self._looked_at = 0
        if self._queue:
            for _ in range(len(self._getters)):
                self._wakeup_next(self._getters)

    def empty(self) -> bool:
        return not self._errors and self._next() is None

    def clear(self) -> None:
        super().clear()
        self._looked_at = 0

    def _next(self) -> int | None:
        """Where the item is that may be worked on next."""
        if self._gate.is_open:
            return 0 if self._queue else None
        for at in range(self._looked_at, len(self._queue)):
            self._looked_at = at
            if _is_begun(self._queue[at]):
                return at
        self._looked_at = len(self._queue)
        return None

    def _get(self) -> Any:
        at = self._next()
        assert at is not None, "asked for an item of an empty queue"
        item = self._queue[at]
        del self._queue[at]
        return item


def _is_begun(item: Any) -> bool:
    return isinstance(item, EventT) and item.message.tracked


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
