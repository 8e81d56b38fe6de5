"""Has Kafka forgotten where we were? It keeps the offsets of a group without members for a week by default.

Then tables are full, and the inputs look as if nobody had ever read them: to begin anew would count everything twice.
It cannot be an app that starts for the first time: a worker commits offsets for each of its partitions before it
changes a table. One of several inputs without offsets is no sign of it: an agent may read a topic more than last time.
"""

from collections.abc import Collection, Mapping

from faust.types import TP

from cauce.errors import ConfigError


def refuse_forgotten(tps: Collection[TP], unread: Collection[TP], changelog_ends: Mapping[TP, int]) -> None:
    """`unread`: those of our partitions without a committed offset."""
    remembered = {tp.partition for tp in tps if tp not in unread}
    for changelog, end in sorted(changelog_ends.items()):
        if end > 0 and changelog.partition not in remembered:
            raise ConfigError(
                f"partition {changelog.partition}: {changelog.topic} has records, but no offset of its inputs is "
                "committed any more, and to read them from the beginning would count them twice. To start anew, delete "
                "the changelog topics and the data folders; to go on, set the group's offsets with "
                "kafka-consumer-groups --reset-offsets; and have the brokers keep them (offsets.retention.minutes)"
            )
