"""Watches Kafka for what no process tells of itself: brokers, copies that lag behind, transactions that hang.

A partition is *stalled* while records wait behind its last stable offset and that offset does not move: a transaction
is open there, and who reads only what is committed waits for it. A healthy one is open for a second at most.

Invariant: what is told was seen at one look; a stall's age counts from the look at which its offset was first seen.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka.admin import AdminClient

from cauce.errors import BrokerUnavailable
from cauce.kafka import Ends, Place
from cauce.settings import Settings
from cauce.topics import TOPICS

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0  # three requests to every broker
STALL_SECONDS: Final = 5.0  # longer than any checkpoint or commit of an upload on a busy machine


@dataclass(frozen=True, slots=True)
class Stall:
    topic: str
    partition: int
    last_stable_offset: int
    high_watermark: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Broker:
    id: int
    address: str
    leads: int  # partitions of ours
    copies: int  # that it has in sync


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look gave."""

    brokers: tuple[Broker, ...] = ()
    partitions: int = 0
    short_of_copies: int = 0  # partitions with fewer in sync than there should be
    stalls: tuple[Stall, ...] = ()
    trouble: str = ""


class Stalls:
    """Told again and again where partitions are stable and where they end."""

    def __init__(self) -> None:
        self._since: dict[Place, tuple[int, float]] = {}

    def look(self, stable: Mapping[Place, int], ends: Mapping[Place, int], now: float) -> tuple[Stall, ...]:
        """`stable` has to be asked for first: what is written in between must not look like a stall."""
        waiting = {place: offset for place, offset in stable.items() if offset < ends.get(place, 0)}
        before, self._since = self._since, {}
        for place, offset in waiting.items():
            known = before.get(place)
            self._since[place] = known if known and known[0] == offset else (offset, now)
        return tuple(
            Stall(*place, offset, ends[place], round(now - self._since[place][1], 1))
            for place, offset in sorted(waiting.items())
            if now - self._since[place][1] >= STALL_SECONDS
        )


class Lookout:
    def __init__(self, settings: Settings) -> None:
        client = settings.kafka_client()
        self._topics = {settings.topic_prefix + topic.name for topic in TOPICS}
        self._places = [(name, number) for name in sorted(self._topics) for number in range(settings.partitions)]
        self._ends = Ends(client)
        self._admin = AdminClient({**client, "log.thread.name": False}, logger=log)
        self._stalls = Stalls()
        self.seen = Seen(trouble="Kafka has not been looked at yet")

    async def watch(self) -> None:
        """For ever."""
        while True:
            try:
                self.seen = await asyncio.to_thread(self._look)
            except (BrokerUnavailable, KafkaException) as error:
                self.seen = Seen(trouble=f"Kafka does not answer: {error}")
            await asyncio.sleep(LOOK_SECONDS)

    def longest_stall(self) -> float:
        return max((stall.seconds for stall in self.seen.stalls), default=0.0)

    def as_json(self) -> dict[str, Any]:
        return asdict(self.seen)

    def _look(self) -> Seen:
        known = self._admin.list_topics(timeout=LOOK_SECONDS)
        ours = [part for name in self._topics & known.topics.keys() for part in known.topics[name].partitions.values()]
        stable = self._ends.of(self._places, IsolationLevel.READ_COMMITTED)
        ends = self._ends.of(self._places, IsolationLevel.READ_UNCOMMITTED)
        return Seen(
            brokers=tuple(
                Broker(
                    id=broker.id,
                    address=f"{broker.host}:{broker.port}",
                    leads=sum(part.leader == broker.id for part in ours),
                    copies=sum(broker.id in part.isrs for part in ours),
                )
                for broker in sorted(known.brokers.values(), key=lambda each: each.id)
            ),
            partitions=len(ours),
            short_of_copies=sum(len(part.isrs) < len(part.replicas) for part in ours),
            stalls=self._stalls.look(stable, ends, time.monotonic()),
        )
