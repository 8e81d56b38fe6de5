"""What the worker has read and not finished: on its way from the consumer thread to the agents' queues.

Invariant: everything here belongs to the current assignment; `clear` forgets it, and the records are read again.
"""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from faust.types import TP, ConsumerMessage, Message

from streams.gate import InFlight
from streams.suspects import Suspects

HandOver = Callable[[Message], Awaitable[None]]


class Inbox:
    """Records come in by `received`, go out by `deliver`, and are finished when Faust's streams acknowledge them."""

    def __init__(self, suspects: Suspects, on_finished: Callable[[Message], None]) -> None:
        self.in_flight = InFlight(suspects.begun, self._finished)
        # Faust's compiled stream iterator writes acknowledged offsets into these two
        self.acked: defaultdict[TP, list[int]] = defaultdict(list)
        self.acked_index: defaultdict[TP, set[int]] = defaultdict(set)
        self.outstanding: Counter[TP] = Counter()
        self._suspects = suspects
        self._on_finished = on_finished
        self._messages: deque[ConsumerMessage] = deque()
        self._filled = asyncio.Event()
        self._fewer = asyncio.Event()  # outstanding

    def received(self, records: Sequence[Any], generation: int) -> None:
        for record in records:
            tp = TP(record.topic(), record.partition())
            kind, timestamp = record.timestamp()
            self.outstanding[tp] += 1
            self._messages.append(
                ConsumerMessage(
                    tp.topic, tp.partition, record.offset(), timestamp / 1000, kind, record.headers() or [],
                    record.key(), record.value(), None, tp=tp, generation_id=generation,
                )
            )  # fmt: skip
        self._filled.set()

    async def deliver(self, hand_over: HandOver, hand_over_alone: HandOver) -> None:
        """Hand messages to the agents' queues, for as long as the worker lives. They get suspects one at a time, when
        nothing else is there."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._messages:
                message = self._messages.popleft()
                if self._suspects and message in self._suspects:
                    await self.drained(leaving=1)
                    await hand_over_alone(message)
                else:
                    slot = self._suspects.noted(message)  # it is decoded before an agent begins it
                    await hand_over(message)
                    self._suspects.passed(slot)

    async def drained(self, leaving: int = 0) -> None:
        """Until all that was handed over is finished, or was taken from us; `leaving` are neither here nor there."""
        while self.outstanding.total() > len(self._messages) + leaving:
            self._fewer.clear()
            await self._fewer.wait()

    def skip(self, message: Message) -> None:
        """Nobody is to see it; it counts as finished."""
        self.acked[message.tp].append(message.offset)
        self._finished(message)

    def take_finished(self) -> dict[TP, int]:
        """Where each partition goes on: after the highest finished offset. True only at an event boundary."""
        finished = {tp: max(offsets) + 1 for tp, offsets in self.acked.items() if offsets}
        self._forget_acked()
        return finished

    def clear(self) -> None:
        self._messages.clear()
        self.outstanding.clear()
        self._fewer.set()
        self._forget_acked()

    def _forget_acked(self) -> None:
        self.acked.clear()
        self.acked_index.clear()

    def _finished(self, message: Message) -> None:
        self.outstanding[message.tp] -= 1
        self._suspects.finished(message)
        self._fewer.set()
        self._on_finished(message)
