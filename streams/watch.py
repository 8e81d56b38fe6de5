"""Does the consumer still read what there is?

After a broker's absence one was seen to fetch nothing more of a partition, with no error and no end (caught once in a
gateway, librdkafka 2.16; its issue #4492 is alike). Nothing that the consumer says of itself tells: its own idea of
the end stands still, too. So ask the brokers, and compare.

What is missing may be the marker of a transaction only, which no application sees: under a load of 16 on two cores a
consumer once did not tell its end. So a partition that stands still is first asked for again, from where it is.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from confluent_kafka import IsolationLevel
from faust.types import TP

from cauce.errors import BrokerUnavailable
from cauce.kafka import Ends

log = logging.getLogger(__name__)

SILENT_POLLS: Final = 100  # of 0.1 s each, with nothing from any partition: what is there comes in a fraction of that


@dataclass(frozen=True, slots=True)
class Still:
    """A partition that has more to read and stays where it is."""

    position: int
    since: int  # silent polls when that was noticed, or when it was asked for again
    asked_again: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    ask_again: list[TP] = field(default_factory=list)
    stalled: list[TP] = field(default_factory=list)  # asking again did not help


class Watch:
    """Told again and again how far each partition was read, how often nothing came, and where the partitions end."""

    def __init__(self) -> None:
        self._still: dict[TP, Still] = {}

    def forget(self) -> None:
        self._still.clear()

    def look(self, reached: Mapping[TP, int], silent_polls: int, ends: Mapping[TP, int]) -> Verdict:
        """A partition is still while it stays where it is through a long silence of all. One that is held back on
        purpose is not to be told of."""
        before, self._still, verdict = self._still, {}, Verdict()
        for tp, position in reached.items():
            if ends.get(tp, 0) <= position:
                continue
            still = before.get(tp)
            if still is None or still.position != position:
                still = Still(position, silent_polls)
            elif silent_polls - still.since >= SILENT_POLLS:
                (verdict.stalled if still.asked_again else verdict.ask_again).append(tp)
                still = Still(position, silent_polls, asked_again=True)
            self._still[tp] = still
        return verdict


class Stalled(BrokerUnavailable):
    """The consumer has stopped reading, and does not know it."""

    def __init__(self, stalled: Collection[TP], reached: Mapping[TP, int], ends: Mapping[TP, int]) -> None:
        where = ", ".join(f"{tp.topic}-{tp.partition} at {reached[tp]} of {ends[tp]}" for tp in sorted(stalled)[:5])
        super().__init__(f"consumer: nothing more comes of {where}; a restart reads on with a new one")


class Reader(Protocol):
    """The consumer thread, as it is looked at."""

    silent_polls: int

    def reached(self) -> Mapping[TP, int]: ...
    def ask_again(self, tps: Iterable[TP]) -> None: ...


class Lookout:
    """Asks the brokers, compares, and has the reader ask again where that may help."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = client
        self._watch = Watch()
        self._ends: Ends | None = None  # connects when it is first needed
        self._assignments = 0

    def forget(self) -> None:
        """Partitions come or go."""
        self._assignments += 1
        self._watch.forget()

    async def look(self, reader: Reader) -> Stalled | None:
        """What is wrong, if anything; nothing, where partitions came or went while the brokers were asked."""
        reached, assignments = reader.reached(), self._assignments
        if not reached or not reader.silent_polls:
            return None
        self._ends = self._ends or Ends(self._client)
        try:
            found = await asyncio.to_thread(self._ends.of, list(reached), IsolationLevel.READ_COMMITTED)
        except BrokerUnavailable as error:
            log.warning("Kafka does not say where partitions end", extra={"reason": str(error)})
            return None
        if assignments != self._assignments:
            return None
        true_ends = {TP(*place): offset for place, offset in found.items()}
        verdict = self._watch.look(reached, reader.silent_polls, true_ends)
        if verdict.ask_again:
            log.info("asking again for what does not come", extra={"partitions": list(map(str, verdict.ask_again))})
            reader.ask_again(verdict.ask_again)
        return Stalled(verdict.stalled, reached, true_ends) if verdict.stalled else None
