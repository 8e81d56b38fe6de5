"""A gateway that kills itself at a point of an upload's transaction: `python -m tests.harness.faulty_gateway`, with the
point in KILL_AT and the number of the transaction in KILL_NTH. Nothing of this is in the product."""

import os
import signal
import sys
from collections.abc import Iterable
from typing import Literal, get_args

from gateway.__main__ import main
from gateway.publish import Publisher, Record

# Begun and empty; rows handed over; rows with the brokers; progress with them, too; committed and not answered yet.
Point = Literal["begun", "sent", "delivered", "noted", "committed"]
POINTS: tuple[Point, ...] = get_args(Point)


class Killer:
    """Counts the transactions of uploads, and the steps of the one that is to be the last."""

    def __init__(self, at: Point, nth: int) -> None:
        self._at, self._left = at, nth
        self._flushes = 0

    def install(self) -> None:
        publish, send, flush = Publisher.publish, Publisher._send, Publisher._flush

        def killing_publish(publisher: Publisher, records: Iterable[Record], last: Iterable[Record]) -> None:
            self._left -= "upload." in publisher.id
            self._flushes = 0
            publish(publisher, records, last)
            self._reach("committed")

        def killing_send(publisher: Publisher, records: Iterable[Record]) -> None:
            self._reach("begun")
            send(publisher, records)
            self._reach("sent")

        def killing_flush(publisher: Publisher) -> None:
            flush(publisher)
            self._flushes += 1
            self._reach("delivered" if self._flushes == 1 else "noted")

        Publisher.publish = killing_publish  # type: ignore[method-assign, assignment]
        Publisher._send = killing_send  # type: ignore[method-assign, assignment]
        Publisher._flush = killing_flush  # type: ignore[method-assign, assignment]

    def _reach(self, point: Point) -> None:
        if self._left == 0 and point == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    Killer(os.environ.pop("KILL_AT"), int(os.environ.pop("KILL_NTH"))).install()  # type: ignore[arg-type]
    sys.exit(main())
