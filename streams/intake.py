"""The consumer thread: every call to the group consumer is made here, and nowhere else.

Invariant: the group metadata is taken when partitions are assigned and never read again. After a fence the library may
report generation -1 with no member, and the broker accepts that without fencing anybody.
"""

import asyncio
import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from faust.types import TP

from cauce.errors import BrokerUnavailable, CauceError, ConfigError, Fenced
from cauce.kafka import Ends
from cauce.provision import wait_known_everywhere
from streams.predecessors import committed_offsets, end_transactions_of_the_gone
from streams.suspects import Label
from streams.transaction import Member

log = logging.getLogger(__name__)

TAKE_AT_MOST: Final = 64  # records a call: enough to spare calls, few enough not to hold Python's lock for long
POLL_SECONDS: Final = 0.1
BUDGET_BYTES: Final = 16 << 20  # read and not finished, per topic: 64 batches of 256 KiB
BUDGET_RECORDS: Final = 4096
LIST_SECONDS: Final = 5.0
ENDS_EVERY_SECONDS: Final = 1.0
GONE: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE)
COMMITTED_SECONDS: Final = 30.0  # a pending commit of a former owner is ended by its transaction time-out at the latest


class Rebalanced(Protocol):
    """What the event loop does about partitions; the consumer thread waits for `released`, and makes `claim` itself."""

    def claim(self) -> None: ...
    async def released(self) -> None: ...
    def assigned(self, offsets: Mapping[TP, int], labels: Mapping[TP, Label], member: Member) -> None: ...
    def at_end(self, tp: TP, offset: int) -> None: ...
    def received(self, messages: Sequence[Message]) -> None: ...
    def failed(self, error: BaseException) -> None: ...


def consumer_config(client: Mapping[str, str], group: str, instance: str, session_timeout_ms: int) -> dict[str, Any]:
    return {
        **client,
        "group.id": group,
        "group.instance.id": instance,
        "group.protocol": "classic",  # KIP-848 keeps a killed instance's id taken for over a minute
        "partition.assignment.strategy": "range",  # equal partition counts: what is joined goes to one worker
        "session.timeout.ms": session_timeout_ms,
        "heartbeat.interval.ms": max(session_timeout_ms // 6, 200),
        "isolation.level": "read_committed",  # also makes the committed offsets wait for a pending commit
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # an offset that is not there means loss: to go on elsewhere would hide it
        "enable.partition.eof": True,  # tells the end from a trailing commit marker: else lag never gets to 0
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 100,
        "queued.min.messages": 2000,
        "queued.max.messages.kbytes": 32 << 10,
        "fetch.queue.backoff.ms": 10,  # the default waits a second once the queue is full
        "reconnect.backoff.max.ms": 1000,
        "coordinator.query.interval.ms": 10_000,  # a tenth of it while the coordinator is away; the default: a minute
        "topic.metadata.refresh.interval.ms": 10_000,
        "logger": log,
    }


class Budget:
    """Records and bytes read and not finished, by topic: back pressure by what is outstanding."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes: Counter[str] = Counter()
        self._records: Counter[str] = Counter()
        self._waited_for = False
        self._freed = threading.Event()

    def take(self, topic: str, size: int) -> None:
        with self._lock:
            self._bytes[topic] += size
            self._records[topic] += 1

    def give_back(self, topic: str, size: int) -> None:
        with self._lock:
            self._bytes[topic] -= size
            self._records[topic] -= 1
        self._wake()

    def reset(self) -> None:
        with self._lock:
            self._bytes.clear()
            self._records.clear()
        self._wake()

    def wait_while(self, full: Callable[[], bool], seconds: float) -> bool:
        """Whether it is full; if so, wait a while for something to be finished."""
        self._freed.clear()
        self._waited_for = True  # before the look: what is freed from here on ends the wait
        is_full = full()
        if is_full:
            self._freed.wait(seconds)
        self._waited_for = False
        return is_full

    def _wake(self) -> None:
        if self._waited_for:  # telling costs more than looking
            self._freed.set()

    def over(self, topic: str) -> bool:
        return self._bytes[topic] >= BUDGET_BYTES or self._records[topic] >= BUDGET_RECORDS

    def under(self, topic: str) -> bool:
        """Half free: the distance between the two keeps a topic from being paused and resumed at every record."""
        return self._bytes[topic] <= BUDGET_BYTES // 2 and self._records[topic] <= BUDGET_RECORDS // 2


def take(consumer: Consumer, at_most: int, seconds: float) -> list[Message]:
    """Wait for a record, then take what is there. `consume` alone would wait until it has as many as it may take."""
    first = consumer.poll(seconds)
    if first is None:
        return []
    return [first, *(consumer.consume(at_most - 1, 0) if at_most > 1 else [])]


class Intake(threading.Thread):
    """Joins the group, reads, hands over. Ends by `leave`, or by telling the worker what failed."""

    def __init__(
        self,
        client: Mapping[str, str],
        config: Mapping[str, Any],
        topics: Iterable[str],
        transactional_id: str,
        worker: Rebalanced,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(name="intake", daemon=True)
        self.budget = Budget()
        self._client = client
        self._group: str = config["group.id"]
        self._topics: Sequence[str] = ()
        self._wanted = sorted(topics)
        self._transactional_id = transactional_id
        self._worker = worker
        self._loop = loop
        self._leaving = threading.Event()
        self._flowing = threading.Event()
        self._learning = threading.Event()
        self._rebalances = 0
        self._paused: set[str] = set()
        self._ends_at = 0.0
        self.ends: dict[TP, int] = {}  # of the assigned partitions, as last heard; replaced, never changed
        self.silent_polls = 0  # how often there was nothing to read
        self._reached: dict[TP, int] = {}
        self._again: queue.SimpleQueue[TP] = queue.SimpleQueue()
        self._consumer = Consumer(dict(config))

    def flow(self) -> None:
        """Tables are restored: let records come. Called on the event loop, done in this thread."""
        self._flowing.set()

    def subscribe(self, topics: Iterable[str]) -> None:
        """To these from now on: the group shares all of them out anew. Done in this thread."""
        self._wanted = sorted(topics)

    def learn_topics(self) -> None:
        """Ask what topics there are: if we joined without some, the library joins again. Done in this thread."""
        self._learning.set()

    def leave(self) -> None:
        self._leaving.set()

    def ask_again(self, tps: Iterable[TP]) -> None:
        """Fetch these partitions anew, from where they are. Done in this thread."""
        for tp in tps:
            self._again.put(tp)

    def reached(self) -> dict[TP, int]:
        """How far each partition was read, of those that may be read now."""
        held = self._paused.copy()
        return {tp: at for tp, at in self._reached.copy().items() if tp.topic not in held}

    def run(self) -> None:
        try:
            while not self._leaving.is_set():
                if self._topics != self._wanted:
                    self._subscribe(self._wanted)
                self._read()
        except CauceError as error:
            self._tell(self._worker.failed, error)
        except KafkaException as error:
            self._tell(self._worker.failed, BrokerUnavailable(f"consumer: {error.args[0]}"))
        except Exception as error:  # noqa: BLE001 whatever it is: a worker that reads no more must not look alive
            self._tell(self._worker.failed, error)
        finally:
            self._consumer.close()

    def _subscribe(self, topics: Sequence[str]) -> None:
        wait_known_everywhere(self._client, topics)
        self._topics = topics
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _read(self) -> None:
        if self._learning.is_set():
            self._learning.clear()
            self._consumer.list_topics(timeout=LIST_SECONDS)
        assigned = {tp.topic for tp in self._consumer.assignment()}
        if self._flowing.is_set():
            self._pause_and_resume(assigned)
            self._seek_again()
        before = self._rebalances
        if self.budget.wait_while(lambda: bool(assigned) and all(map(self.budget.over, assigned)), POLL_SECONDS):
            messages = take(self._consumer, 1, 0)  # serves a rebalance, too
        else:
            messages = take(self._consumer, TAKE_AT_MOST, POLL_SECONDS)
            self.silent_polls += not messages
        self._look_at_ends()
        is_stale = self._rebalances != before  # taken before partitions came or went, handed to us after
        good = [message for message in messages if self._is_record(message, is_stale)]
        if good:
            self._tell(self._worker.received, good)

    def _seek_again(self) -> None:
        while not self._again.empty():
            tp = self._again.get()
            if tp in self._reached:  # still ours
                self._consumer.seek(TopicPartition(tp.topic, tp.partition, self._reached[tp]))

    def _look_at_ends(self) -> None:
        """What the last fetches said, for lag: costs no request."""
        if time.monotonic() - self._ends_at >= ENDS_EVERY_SECONDS:
            self._ends_at = time.monotonic()
            self.ends = {
                TP(tp.topic, tp.partition): self._consumer.get_watermark_offsets(tp, cached=True)[1]
                for tp in self._consumer.assignment()
            }

    def _pause_and_resume(self, assigned: set[str]) -> None:
        """Hold back a topic whose agents are slow, so that the others go on. A lone topic is simply not read."""
        over = {topic for topic in assigned if self.budget.over(topic)}
        if over == assigned:
            return
        pause = over - self._paused
        resume = {topic for topic in self._paused if self.budget.under(topic)}
        if pause:
            self._consumer.pause(self._partitions_of(pause))
        if resume:
            self._consumer.resume(self._partitions_of(resume))
        self._paused = (self._paused | pause) - resume

    def _partitions_of(self, topics: set[str]) -> list[TopicPartition]:
        return [tp for tp in self._consumer.assignment() if tp.topic in topics]

    def _is_record(self, message: Message, is_stale: bool) -> bool:
        """Note how far it brings us. What is stale is read again: nothing of the new partitions can have come yet."""
        error = message.error()
        tp, offset = TP(message.topic() or "", message.partition() or 0), message.offset() or 0
        if error is None:
            if not is_stale:
                self._reached[tp] = offset + 1
                self.budget.take(tp.topic, len(message.key() or b"") + len(message.value() or b""))
            return not is_stale
        if error.code() == KafkaError._PARTITION_EOF:
            if not is_stale:
                self._reached[tp] = offset
                self._tell(self._worker.at_end, tp, offset)
            return False
        if error.code() in GONE:
            raise BrokerUnavailable(
                f"consumer: what comes next of {tp.topic}-{tp.partition} is not there: {error.str()}; a restart goes "
                "on from the last commit"
            )
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            self._subscribe(self._topics)  # asks for the metadata anew, once every broker knows them
            return False
        if error.code() in (KafkaError._MAX_POLL_EXCEEDED, KafkaError._FENCED, KafkaError.FENCED_INSTANCE_ID):
            raise Fenced(f"consumer: {error.str()}; another worker has the partitions")
        if error.fatal() or error.code() == KafkaError._FATAL:
            raise Fenced(f"consumer: {error.name()} {error.str()}; a restart joins anew")
        if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED):
            raise ConfigError(f"consumer: {error.str()}; grant this worker READ on its topics and its group")
        log.warning("consumer error, it goes on", extra={"error": error.str()})
        return False

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Find where to go on, tell the event loop, and stay paused until the tables are restored."""
        self._rebalances += 1
        member = consumer.consumer_group_metadata()
        self._worker.claim()
        committed: list[TopicPartition] = []
        if partitions:
            end_transactions_of_the_gone(self._client, self._group, self._transactional_id, partitions)
            committed = committed_offsets(consumer, partitions, COMMITTED_SECONDS)
        labels = {TP(tp.topic, tp.partition): Label.of(tp.offset, tp.metadata) for tp in committed}
        positions = self._positions(committed)
        self._flowing.clear()
        consumer.assign(positions)
        consumer.pause(positions)
        self._paused = {tp.topic for tp in positions}
        offsets = {TP(tp.topic, tp.partition): max(tp.offset, 0) for tp in positions}
        self._reached = dict(offsets)
        self._tell(self._worker.assigned, offsets, labels, member)

    def _positions(self, committed: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Where to go on: at the commits, or at the first record that is there. Retention passes a commit without harm
        where only the marker of a transaction was behind it; what else it may have taken has to be told."""
        places = [(tp.topic, tp.partition) for tp in committed]
        first = Ends(self._client).wait_for_beginnings(places, COMMITTED_SECONDS) if places else {}
        for tp in committed:
            at = first[tp.topic, tp.partition]
            if 0 <= tp.offset < at:
                where = {"partition": f"{tp.topic}-{tp.partition}", "committed": tp.offset, "first": at}
                log.warning("retention has passed what was committed, going on at the first record", extra=where)
        return [
            TopicPartition(*place, max(first[place], tp.offset)) for place, tp in zip(places, committed, strict=True)
        ]

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Finish and commit what was begun, then let go. The generation stays ours until this returns."""
        self._rebalances += 1
        self._flowing.clear()
        self._ask(self._worker.released)
        self.budget.reset()
        consumer.unassign()

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._tell(self._worker.failed, Fenced("consumer: partitions lost, the session ended; another worker has them"))
        consumer.unassign()

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(function, *arguments)

    def _ask(self, function: Callable[[], Awaitable[None]]) -> None:
        async def asked() -> None:
            await function()

        asyncio.run_coroutine_threadsafe(asked(), self._loop).result()
