"""Does the consumer still read what there is?

After a broker's absence one was seen to fetch nothing more of a partition, with no error and no end (caught once in a
gateway, librdkafka 2.16; its issue #4492 is alike). Nothing that the consumer says of itself tells: its own idea of
the end stands still, too. So ask the brokers, and compare.
"""

from collections.abc import Collection, Mapping
from typing import Final

from faust.types import TP

SILENT_POLLS: Final = 100  # of 0.1 s each, with nothing from any partition: what is there comes in a fraction of that


class Watch:
    """Told again and again how far each partition was read, how often nothing came, and where the partitions end."""

    def __init__(self) -> None:
        self._since: dict[TP, tuple[int, int]] = {}  # position, and the silent polls when it was first seen there

    def forget(self) -> None:
        self._since.clear()

    def stalled(self, reached: Mapping[TP, int], silent_polls: int, ends: Mapping[TP, int]) -> Collection[TP]:
        """Partitions with more to read that stayed where they were through a long silence of all. A partition that
        is held back on purpose is not to be told of."""
        waiting = {tp: position for tp, position in reached.items() if ends.get(tp, 0) > position}
        before, self._since = self._since, {}
        for tp, position in waiting.items():
            known = before.get(tp)
            self._since[tp] = known if known is not None and known[0] == position else (position, silent_polls)
        return [tp for tp, (_, since) in self._since.items() if silent_polls - since >= SILENT_POLLS]
