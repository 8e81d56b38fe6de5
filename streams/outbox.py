"""What the worker sends: at once into the open transaction, or held back while there is none.

Invariant: nothing is produced between the event boundary of a checkpoint and the beginning of the next transaction.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from faust.types import TP
from faust.types.tuples import RecordMetadata

from cauce.errors import CauceError
from streams.transaction import Transaction
from tables.late import ending_with, refuse_late

Sent = asyncio.Future[RecordMetadata]

WAITING_AT_MOST: Final = 10_000  # records, sent by timers of a worker that has no partition


class Outbox:
    """Open while a transaction takes records. Counts what it took since the last `reset`."""

    def __init__(
        self, on_sent: Callable[[], None], on_failure: Callable[[BaseException], None], is_idle: Callable[[], bool]
    ) -> None:
        self.records = 0
        self.size_bytes = 0
        self._on_sent = on_sent
        self._on_failure = on_failure
        self._is_idle = is_idle
        self._opened = asyncio.Event()
        self._waiting: list[Callable[[], object]] = []
        self._delivered: deque[tuple[Sent, Any, Any]] = deque()
        self._told = threading.Event()
        self._transaction: Transaction
        self._loop: asyncio.AbstractEventLoop

    def open(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._loop = asyncio.get_running_loop()
        self._opened.set()
        waiting, self._waiting = self._waiting, []
        for send in waiting:
            send()

    def close(self) -> None:
        self._opened.clear()

    def reset(self) -> None:
        """A commit has taken all of it."""
        self.records = self.size_bytes = 0

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    async def sendable(self) -> None:
        """Wait while a checkpoint is being committed, or while no partition is ours. An event never waits here."""
        while not self._opened.is_set():
            await self._opened.wait()

    def send(self, topic: str, key: bytes | None, value: bytes | None, **options: Any) -> Sent:
        """Produce into the open transaction. The future is done once the replicas have the record.

        One that is not taken ends the worker, whoever catches the error: its event may not commit."""
        future: Sent = self._loop.create_future()

        def delivered(error: Any, message: Any) -> None:  # in a thread of librdkafka's
            self._delivered.append((future, error, message))
            if not self._told.is_set():
                self._told.set()
                self._loop.call_soon_threadsafe(self._resolve)

        with ending_with(CauceError, self._on_failure):
            refuse_late(f"a record for {topic}")
            self._transaction.produce(topic, key, value, delivered, **options)
        self.records += 1
        self.size_bytes += len(key or b"") + len(value or b"")
        self._on_sent()
        return future

    def send_when_possible(self, send: Callable[[], object]) -> None:
        """For callers that cannot wait: at once within an event, else with the next transaction."""
        if self._opened.is_set():
            send()
            return
        with ending_with(CauceError, self._on_failure):
            refuse_late("a record")
            if self._is_idle() and len(self._waiting) >= WAITING_AT_MOST:
                raise CauceError(
                    f"{WAITING_AT_MOST} records wait for a transaction, and no partition is ours; send them in an "
                    "agent, or start no more workers than there are partitions"
                )
        self._waiting.append(send)

    def _resolve(self) -> None:
        self._told.clear()
        while self._delivered:
            future, error, message = self._delivered.popleft()
            if future.done():
                continue
            if error is not None:
                future.set_exception(CauceError(f"record for {message.topic()}: {error.str()}"))
                future.exception()  # seen: the checkpoint fails for all of them
            else:
                tp = TP(message.topic(), message.partition())
                future.set_result(RecordMetadata(*tp, tp, message.offset(), message.timestamp()[1] / 1000))
