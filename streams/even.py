"""Is what a worker was given whole? A partition of a table is its owner's alone only while one worker has that number
of every topic.

A member of the group that does not know a topic, because the broker that it asked has just started, joins without it
(librdkafka sends the topics that it found, not those it was told). Then that topic is shared out among the others, the
rest among all, and two workers write the same partition of a table. Each has the half of it; the one that keeps the
partition never reads what the other has put into the changelog before its own last write.

So such an assignment is not taken. Mostly the ignorant member hears of the topic soon and joins again. A restart would
not mend it: the coordinator gives a static member that comes back in time what it had before. So after a while all who
see it end, and stay away until their sessions are over; then the group shares out anew.
"""

from collections.abc import Collection, Mapping

from faust.types import TP

from cauce.errors import Fenced


class Uneven(Fenced):
    """The group has shared out topics in different ways: nobody may touch a table."""


def refuse_uneven(tps: Collection[TP], counts: Mapping[str, int]) -> None:
    """`counts`: how many partitions each topic has that we read. Those with as many must be given alike."""
    given: dict[str, set[int]] = {topic: set() for topic in counts}
    for tp in tps:
        if tp.topic not in counts:  # of the former self of a static member, which may have asked for more by then
            raise Uneven(f"consumer: {tp.topic} was assigned, which we do not read; waiting for another assignment")
        given[tp.topic].add(tp.partition)
    first_of: dict[int, str] = {}
    for topic in sorted(counts):
        first = first_of.setdefault(counts[topic], topic)
        if given[topic] != given[first]:
            raise Uneven(
                f"consumer: partitions {sorted(given[topic])} of {topic} were assigned, but {sorted(given[first])} of "
                f"{first}: a member of the group did not know all topics; waiting for another one"
            )
