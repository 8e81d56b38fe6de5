"""The time that all gateways share: the brokers' clocks, as ticks tell it, and what has passed on this machine since.

Every gateway writes a tick to each broker again and again; Kafka stamps it with the broker's own time and tells that in
the answer. Sessions, tokens and sweeps go by this time; the wall clock of this machine is a witness only.

Invariant: shared time never gets ahead of what has passed since most brokers first answered, so a clock that jumps
forward, ours or a broker's, expires nothing. What cannot be taken back, the end of a session, needs all brokers' clocks
and our own to agree. A gateway refuses work only where its own clock is to blame: brokers that jump stop no gateway.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Producer

from cauce.errors import BrokerUnavailable
from cauce.settings import Settings
from cauce.topics import TICKS

log = logging.getLogger(__name__)

TICK_SECONDS: Final = 10.0
FIRST_TICK_SECONDS: Final = 0.2
# Machines that ask the same time servers are milliseconds apart; one that is a minute off asks none.
APART_SECONDS: Final = 60.0
# A clock that is kept right is slewed, or set by less: more than this is a jump.
JUMP_SECONDS: Final = 1.0
# After this an answer tells too little of when the broker wrote the tick.
ANSWER_SECONDS: Final = 5.0
# Six ticks without an answer: what the brokers' clocks do now is not known.
SILENT_SECONDS: Final = 60.0
# A quartz that nobody sets right drifts by seconds a day: so much faster than our own count we may run.
DRIFT: Final = 0.001


def elapsed() -> float:
    """Returns the seconds since some moment; nobody sets this clock. On Linux it goes on while the machine sleeps, when
    CLOCK_MONOTONIC stands still."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


@dataclass(frozen=True, slots=True)
class Agreement:
    """Both clocks, less elapsed(), when they were last seen to agree: who has moved since is to blame."""

    ours: float
    told: float


class SharedTime:
    """What the ticks told, and what follows from it. Changed on the event loop, read from anywhere."""

    def __init__(self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = elapsed) -> None:
        self._wall = wall
        self._passed = passed
        self._brokers: Mapping[int, float] = {}  # what has to be added to elapsed()
        self._told = 0.0  # the same for all brokers together
        self._most = 0.0  # and what it may be at most
        self._most_holds = False  # most of the brokers have had a say in it
        self._agreed: Agreement | None = None
        self._heard_at: float | None = None

    def take(self, answers: Mapping[int, float | None]) -> None:
        """Takes in what one round of ticks told: each broker's clock, less elapsed(); None where it did not answer."""
        brokers = {broker: clock for broker, clock in answers.items() if clock is not None}
        if not brokers:
            return
        now, ours = self._passed(), self._ours()
        ordered = sorted(brokers.values())
        # One broker that is wrong is not in the middle. Of two, ours tells which one is right.
        middle = (ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2])
        self._told = min(middle, key=lambda clock: abs(clock - ours))
        if self._most_holds and self._heard_at is not None:
            drifted = self._most + DRIFT * (now - self._heard_at)
            self._most = max(self._most, min(drifted, self._told))
        else:
            # Whoever answers first may be wrong: it bounds nobody.
            self._most = self._told
            self._most_holds = 2 * len(brokers) > len(answers)
        if abs(ours - self._told) <= APART_SECONDS:
            self._agreed = Agreement(ours, self._told)
        self._brokers, self._heard_at = brokers, now

    def _ours(self) -> float:
        return self._wall() - self._passed()

    def now(self) -> float:
        """Returns the shared time, in seconds since 1970."""
        if self._heard_at is None:
            raise BrokerUnavailable("no broker has told the time yet; try again in a moment")
        return self._passed() + min(self._told, self._most)

    @property
    def heard(self) -> bool:
        """Whether a broker has told the time."""
        return self._heard_at is not None

    # ---- whose clock is wrong

    @property
    def off_seconds(self) -> float:
        """Returns how far this machine's clock is ahead of the brokers'; below zero, behind."""
        return 0.0 if self._heard_at is None else self._ours() - self._told

    @property
    def apart_seconds(self) -> float:
        """Returns how far the brokers' clocks are from each other."""
        return max(self._brokers.values()) - min(self._brokers.values()) if self._brokers else 0.0

    @property
    def held_back_seconds(self) -> float:
        """Returns how far the brokers' clocks have jumped ahead while this gateway ran."""
        return max(0.0, self._told - self._most)

    def why_not_ready(self) -> str:
        """Says that no time is known, or that our own clock is wrong; empty when neither is so."""
        if self._heard_at is None:
            return "no broker has told the time yet"
        return self._off() if self._is_ours_to_blame() else ""

    def trouble(self) -> str:
        """Says whose clock is wrong, as far as can be told; empty when none is."""
        if self._heard_at is None:
            return self.why_not_ready()
        return "; ".join(filter(None, (self._off(), self._brokers_apart(), self._brokers_jumped())))

    def why_not_sweep(self) -> str:
        """Says why no session may be ended for its age; empty when nothing speaks against it."""
        if self._heard_at is None:
            return self.why_not_ready()
        if why := self._off() or self._brokers_apart():
            return why
        silent = self._passed() - self._heard_at
        return f"no broker has told the time for {silent:.0f} s" if silent > SILENT_SECONDS else ""

    def _off(self) -> str:
        """Says that our clock and the brokers' differ, and whose has to be set right."""
        off = self.off_seconds
        if abs(off) <= APART_SECONDS:
            return ""
        if self._is_ours_to_blame():
            where = "ahead of" if off > 0 else "behind"
            return f"the clock of this machine is {abs(off):.0f} s {where} the brokers'; set it right (NTP)"
        where = "behind" if off > 0 else "ahead of"
        return (
            f"the brokers' clocks are {abs(off):.0f} s {where} that of this machine, which nothing shows to be wrong; "
            "set right those that are (NTP): until then no session is swept"
        )

    def _is_ours_to_blame(self) -> bool:
        """Whether our clock jumped since it agreed with the brokers'. If it never did, whether no broker agrees."""
        ours, agreed = self._ours(), self._agreed
        if agreed is None:
            return all(abs(clock - ours) > APART_SECONDS for clock in self._brokers.values())
        theirs = abs(self._told - agreed.told)
        return abs(ours - agreed.ours) > min(APART_SECONDS, max(JUMP_SECONDS, theirs))

    def _brokers_apart(self) -> str:
        if self.apart_seconds <= APART_SECONDS:
            return ""
        clocks = ", ".join(
            f"broker {broker} {round(clock - self._told):+d} s" for broker, clock in sorted(self._brokers.items())
        )
        apart = self.apart_seconds
        return f"the brokers' clocks are {apart:.0f} s apart ({clocks}); set them right: until then no session is swept"

    def _brokers_jumped(self) -> str:
        if self.held_back_seconds <= APART_SECONDS:
            return ""
        return (
            f"the brokers' clocks have jumped ahead by {self.held_back_seconds:.0f} s; sessions go by what has passed "
            "since this gateway started: if the brokers are right, restart it within the day"
        )


class Ticks:
    """The doorway to the brokers' clocks: a record for each of them, whose answer tells when it was appended."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.topic_prefix + TICKS.name
        self._who = f"{settings.gateway_host}:{settings.gateway_port}"
        # The leader's word is enough: it is the time that is asked for, and the record may be lost.
        own: dict[str, Any] = {
            "acks": 1,
            "linger.ms": 0,
            "delivery.timeout.ms": int(ANSWER_SECONDS * 1000),
            "request.timeout.ms": int(ANSWER_SECONDS * 1000),
            "log.thread.name": False,
            "logger": log,
        }
        self._producer = Producer({**settings.kafka_client(), **own})

    def ask(self) -> dict[int, float | None]:
        """Returns each broker's clock, less elapsed(), or None if it is silent. Blocks for ANSWER_SECONDS at most."""
        try:
            topic = self._producer.list_topics(self._topic, ANSWER_SECONDS).topics[self._topic]
        except KafkaException as error:
            raise BrokerUnavailable(f"no broker tells the time: {error.args[0].str()}") from None
        # Also those that are away: their partitions have other leaders meanwhile.
        found: dict[int, float | None] = {
            broker: None for part in topic.partitions.values() for broker in part.replicas
        }
        for broker, partition in {part.leader: part.id for part in topic.partitions.values()}.items():
            if broker >= 0:
                self._send(broker, partition, found)
        if self._producer.flush(ANSWER_SECONDS):
            self._producer.purge()  # a tick that comes late tells nothing
            self._producer.flush(0)
        return found

    def _send(self, broker: int, partition: int, found: dict[int, float | None]) -> None:
        sent_at = elapsed()

        def delivered(error: KafkaError | None, message: Any) -> None:
            answered_at = elapsed()
            if error is not None:
                log.debug("no tick", extra={"broker": broker, "reason": error.str()})
                return
            kind, appended_ms = message.timestamp()
            # Not the broker's time, or one that was paused with us: both would be taken for a wrong clock.
            if kind == TIMESTAMP_LOG_APPEND_TIME and answered_at - sent_at <= ANSWER_SECONDS:
                found[broker] = appended_ms / 1000 - answered_at

        ours = f"{time.time():.3f}"  # beside the broker's time in a console: who is off, for a person to see
        self._producer.produce(self._topic, key=self._who, value=ours, partition=partition, on_delivery=delivered)

    def close(self) -> None:
        """Gives the producer back without waiting for Kafka."""
        self._producer.purge()
        del self._producer


async def keep_time(clock: SharedTime, ticks: Ticks) -> None:
    """Asks the brokers again and again, and says when a clock goes wrong or is right again. For ever."""
    said = ""
    while True:
        try:
            clock.take(await asyncio.to_thread(ticks.ask))
        except BrokerUnavailable as error:
            log.warning("the brokers' clocks are not known", extra={"reason": str(error)})
        is_known = clock.heard
        trouble = clock.trouble() if is_known else ""
        if trouble and not said:
            log.error("a clock is wrong", extra={"reason": trouble, "off_seconds": round(clock.off_seconds, 1)})
        elif said and not trouble:
            log.info("the clocks agree again")
        said = trouble
        await asyncio.sleep(TICK_SECONDS if is_known else FIRST_TICK_SECONDS)
