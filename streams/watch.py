"""Does the consumer still read what there is?

After a broker's absence one was seen to fetch nothing more of a partition, with no error and no end (caught once in a
gateway, librdkafka 2.16; its issue #4492 is alike). Nothing that the consumer says of itself tells: its own idea of
the end stands still, too. So ask the brokers, and compare.

What is missing may be the marker of a transaction only, which no application sees: under a load of 16 on two cores a
consumer once did not tell its end. So a partition that stands still is first asked for again, from where it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from faust.types import TP

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
