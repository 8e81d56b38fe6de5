"""The worker's heart: it owns the gate, the transaction and the tables, and says when to commit.

Invariant: all state here changes on the event loop. The consumer, checkpoint and restore threads make their blocking
calls and come back. Any failure ends the process: the next one starts from the last commit.

    joining ──▶ restoring ──▶ running ──▶ released ──▶ restoring …
                                 └──▶ stopped       (failed, from anywhere: the process ends)
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Any, Final, Protocol, TypeVar

from faust.types import TP, Message

from cauce.errors import CauceError, CommitUncertain, Fenced
from cauce.process import STUCK
from streams.alone import run_alone
from streams.checkpoint import Checkpoint, CheckpointState
from streams.even import Uneven
from streams.gate import EventTooLong, Gate
from streams.inbox import Inbox
from streams.intake import Intake, consumer_config
from streams.metrics import Metrics
from streams.options import Options
from streams.outbox import Outbox
from streams.pace import Pace
from streams.recovery import Progress, appended_at
from streams.suspects import Label, Suspects
from streams.transaction import Member, Transaction
from streams.watch import Lookout
from streams.watchdog import Watchdog
from tables.store import NOTHING, Position

log = logging.getLogger(__name__)

T = TypeVar("T")

CLOSE_SECONDS: Final = 2.0
WATCH_SECONDS: Final = 2.0
UNEVEN_SECONDS: Final = 10.0  # a member that lacks a topic hears of it within this
LEARN_SECONDS: Final = 1.0  # between two times that it asks
ABORT_SECONDS: Final = 3.0  # of a dying worker; if it takes longer, the next owner ends the transaction
GRACE_SECONDS: Final = 5.0  # beyond the time a call to the library was given; some of its calls ignore that


class Phase(Enum):
    JOINING = "joining"  # waiting for the group to assign partitions
    RESTORING = "restoring"  # tables are read from their changelogs
    RUNNING = "running"  # events flow
    RELEASED = "released"  # partitions were given back, new ones are to come
    STOPPED = "stopped"  # a clean end
    FAILED = "failed"  # the process is about to end


class Tables(Protocol):
    """The tables of the app, as the engine needs them."""

    async def take_over(self, tps: frozenset[TP], topics: frozenset[str], unread: frozenset[TP]) -> bool: ...
    def cancel_restore(self) -> None: ...
    async def give_up(self) -> None: ...
    def forget_unowned(self) -> None: ...
    def changes(self) -> Sequence[tuple[TP, Mapping[bytes, bytes | None]]]: ...
    def settle(self, positions: Mapping[TP, Position]) -> None: ...
    @property
    def staged_bytes(self) -> int: ...
    @property
    def restore_progress(self) -> Progress | None: ...


class Router(Protocol):
    """Faust around us: told about assignments, handed the messages."""

    async def on_assigned(self, tps: frozenset[TP], generation: int) -> None: ...
    async def on_ready(self, tps: frozenset[TP]) -> None: ...
    async def on_released(self, tps: frozenset[TP]) -> None: ...
    async def on_message(self, message: Message) -> None: ...


class Engine:
    """One per worker process. Importing an app makes one; `start` connects."""

    def __init__(self, options: Options, group: str, tables: Tables, router: Router) -> None:
        self.options = options
        self.group = group
        self.transactional_id = f"{group}.{options.worker_id}"
        self.gate = Gate()
        self.suspects = Suspects(self.transactional_id)
        self.inbox = Inbox(self.suspects, self._finished)
        self.outbox = Outbox(self._look_whether_due, self.failed, self._is_idle)
        self.metrics = Metrics(self)
        self.phase = Phase.JOINING
        self.assignment: frozenset[TP] = frozenset()
        self.positions: dict[TP, int] = {}  # what is committed, per assigned partition
        self.read_to_end: dict[TP, int] = {}  # offset at which a partition's end was last seen
        self.last_commit_at = time.monotonic()
        self.settled = asyncio.Event()  # running, with or without partitions
        self._tables = tables
        self._router = router
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._topics: frozenset[str] = frozenset()
        self._intake: Intake | None = None
        self._lookout = Lookout(options.kafka)
        self._generation = 0
        self._member: Member | None = None
        self._unclaimed: dict[TP, int] = {}  # partitions whose offsets do not carry our name yet
        self._open: Checkpoint | None = None
        self._numbers = 0
        self._lock = asyncio.Lock()  # one checkpoint, release or tidying at a time
        self._pace = Pace(options.checkpoint_ms)
        self._changelog_ends: dict[TP, Position] = {}
        self._taking_over: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop
        self._watchdog: Watchdog | None = None  # until it starts: a wrong setting may end the worker before that
        self._transaction: Transaction

    # ---- start and stop

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watchdog = Watchdog(
            self._loop, self.options.transaction_timeout_ms / 1000 + GRACE_SECONDS, self._loop_is_held
        )
        self._watchdog.start()
        self.suspects.open(self.options.data)
        self._transaction = Transaction(
            self.options.kafka, self.transactional_id, self.options.transaction_timeout_ms, self.suspects.label
        )

    def join(self, topics: set[str]) -> None:
        if self.phase in (Phase.STOPPED, Phase.FAILED):
            return
        if topics <= self._topics:  # a stream that ends leaves its topic to the others until the next start
            return
        self._topics = frozenset(topics)
        if self._intake is not None:  # an agent got to its `group_by` when we had joined: join again, with its topic
            log.info("topics changed, joining again", extra={"topics": sorted(topics)})
            self._intake.subscribe(topics)
            return
        options = self.options
        config = consumer_config(options.kafka, self.group, options.worker_id, options.session_timeout_ms)
        self._intake = Intake(options.kafka, config, topics, self.transactional_id, self, self._loop)
        self._intake.start()

    async def stop(self) -> None:
        """Finish what was begun, commit it, leave. Idempotent."""
        if self.phase in (Phase.STOPPED, Phase.FAILED):
            return
        if self._intake is not None:
            await self.released()
            if self.has_failed:
                return  # the process is about to end with that
            self._intake.leave()
            # all is committed; the thread may still be fencing somebody for us, and need not finish that
            await self._loop.run_in_executor(None, self._intake.join, CLOSE_SECONDS)
            await self._threaded(self._transaction.close)
        self.phase = Phase.STOPPED
        if self._watchdog is not None:
            self._watchdog.end()
        self._thread.shutdown(wait=False)
        log.info("worker stopped, all work is committed")

    def _is_idle(self) -> bool:
        """More workers than partitions: one may have none for days."""
        return self.phase is Phase.RUNNING and not self.assignment

    @property
    def has_failed(self) -> bool:
        return self.phase is Phase.FAILED

    def failed(self, error: BaseException) -> None:
        """End the process. Synchronous on purpose: from this call on, nothing can commit any more."""
        if self.phase in (Phase.FAILED, Phase.STOPPED):
            return
        self.phase = Phase.FAILED
        if isinstance(error, EventTooLong):
            self.suspects.blame(error)
        self.suspects.pardon()
        self.gate.close()
        self.outbox.close()
        self.metrics.failed(error)
        log.error(
            "worker ends, the next one goes on from the last commit",
            extra={"reason": str(error) or repr(error), "kind": type(error).__name__},
            exc_info=error if not isinstance(error, CauceError) else None,
        )
        threading.Thread(target=self._abort_and_end, args=(error,), name="end", daemon=True).start()

    def event_failed(self, error: BaseException, message: Message | None = None) -> None:
        """An agent raised, or a record cannot be decoded. An error of ours (Kafka is away) is no record's fault."""
        if isinstance(error, asyncio.CancelledError) and self.phase is not Phase.RUNNING:
            return  # nothing is in hand: Faust ends the actors of partitions that moved away
        if self.phase not in (Phase.FAILED, Phase.STOPPED) and not isinstance(error, CauceError):
            self.suspects.blame(error, message)
        self.failed(error)

    def _loop_is_held(self) -> None:
        """Called in the watchdog's thread: nobody else is able to end this process."""
        error = EventTooLong(self.inbox.in_flight, self.options.transaction_timeout_ms)
        self.suspects.blame(error)
        log.error("worker ends, the next one goes on from the last commit", extra={"reason": str(error)})
        self.options.on_fatal(error)

    def _abort_and_end(self, error: BaseException) -> None:
        if self._open is not None and self._open.state is not CheckpointState.COMMITTED:
            aborting = threading.Thread(target=self._abort, name="abort", daemon=True)
            aborting.start()
            aborting.join(ABORT_SECONDS + GRACE_SECONDS)
        if isinstance(error, Uneven) and self._intake is not None:
            self._intake.leave()  # no heartbeat any more
            self._intake.join(CLOSE_SECONDS)
            time.sleep(self.options.session_timeout_ms / 1000 + CLOSE_SECONDS)
        self.options.on_fatal(error)

    def _abort(self) -> None:
        try:
            self._transaction.abort(ABORT_SECONDS)
        except CauceError as error:
            log.info("transaction not aborted, its next holder will", extra={"reason": str(error)})

    # ---- partitions come and go (called from the consumer thread, through the loop)

    def claim(self) -> None:
        """Called in the consumer thread, when the group has taken us in and before anything is looked up."""
        self._transaction.initialise()

    def assigned(self, offsets: Mapping[TP, int], labels: Mapping[TP, Label], member: Member) -> None:
        if self.phase in (Phase.STOPPED, Phase.FAILED):
            return
        self._member = member
        self.positions = dict(offsets)
        self._unclaimed = {tp: offset for tp, offset in offsets.items() if labels[tp].owner != self.transactional_id}
        self.suspects.assigned(offsets, labels)
        unread = frozenset(tp for tp, label in labels.items() if not label.is_of_a_commit)
        self._taking_over = asyncio.ensure_future(self.guarded(self._take_over(frozenset(offsets), unread)))

    async def _take_over(self, tps: frozenset[TP], unread: frozenset[TP]) -> None:
        self.phase = Phase.RESTORING
        self.assignment = tps
        self._generation += 1
        self._lookout.forget()
        self.read_to_end.clear()
        log.info("partitions assigned", extra={"partitions": len(tps), "generation": self._generation})
        await self._router.on_assigned(tps, self._generation)
        try:
            if not await self._tables.take_over(tps, self._topics, unread):
                return  # taken from us again while restoring
        except Uneven as uneven:
            self._wait_for_an_even_one(uneven)
            return
        if tps:
            await self._begin()
            if self._unclaimed:
                await self.checkpoint()  # our name on the offsets: should we die, the next owner knows whom to fence
        await self._router.on_ready(tps)
        self.phase = Phase.RUNNING
        self.last_commit_at = time.monotonic()
        self.settled.set()
        if self._intake is not None:
            self._intake.flow()
        self.gate.open()
        log.info("worker ready", extra={"partitions": len(tps)})

    def _wait_for_an_even_one(self, uneven: Uneven) -> None:
        """Whoever does not know a topic hears of it soon, joins again, and all get another assignment."""
        log.warning("an assignment is not taken", extra={"reason": str(uneven)})
        self._learn_topics(uneven, self._generation, time.monotonic() + UNEVEN_SECONDS)

    def _learn_topics(self, uneven: Uneven, generation: int, until: float) -> None:
        """Again and again: whoever is asked may not have heard of the topic yet, either."""
        if self._generation != generation or self.phase is not Phase.RESTORING:
            return
        if time.monotonic() > until:
            self.failed(uneven)
        elif self._intake is not None:
            self._intake.learn_topics()
            self._loop.call_later(LEARN_SECONDS, self._learn_topics, uneven, generation, until)

    async def released(self) -> None:
        """Partitions are to be given back: commit all that was finished, then forget them."""
        await self.guarded(self._release())

    async def _release(self) -> None:
        if self._taking_over is not None:
            self._tables.cancel_restore()
            await asyncio.wait([self._taking_over])
            self._taking_over = None
        async with self._lock:
            if self.phase is Phase.RUNNING and self.assignment:
                await self.reach_event_boundary()
                if self._dirty:
                    await self._commit()
            self.gate.close()
            self.outbox.close()
            self.settled.clear()
            self._lookout.forget()
            self.inbox.clear()
            await self._router.on_released(self.assignment)
            await self._tables.give_up()
            self.assignment = frozenset()
            if self.phase is Phase.RUNNING:
                self.phase = Phase.RELEASED

    # ---- records in

    def received(self, records: Sequence[Any]) -> None:
        self.inbox.received(records, self._generation)

    def at_end(self, tp: TP, offset: int) -> None:
        self.read_to_end[tp] = offset

    async def deliver(self) -> None:
        await self.inbox.deliver(self.hand_over, lambda message: run_alone(self, message))

    async def hand_over(self, message: Message) -> None:
        """To the agents' queues, decoded: Faust knows some errors of that, and this is for all others."""
        try:
            await self._router.on_message(message)
        except Exception as error:
            self.event_failed(error, message)
            raise

    def _finished(self, message: Message) -> None:
        if self._intake is not None:
            self._intake.budget.give_back(message.topic, len(message.key or b"") + len(message.value or b""))
        self._look_whether_due()

    # ---- checkpoints

    async def pulse(self) -> None:
        """Commit again and again, for as long as the worker lives."""
        while True:
            await self._pace.wait()
            if self.phase is Phase.RUNNING:
                await self.guarded(self.checkpoint())

    def hasten(self) -> None:
        """Somebody waits for what was just sent: commit soon, instead of after `checkpoint_ms`."""
        self._pace.hasten()

    async def tidy(self) -> None:
        """Remove the state of partitions that moved away, for as long as the worker lives."""
        while True:
            await asyncio.sleep(self.options.tidy_seconds)
            async with self._lock:  # nothing is assigned or released meanwhile
                if self.phase is Phase.RUNNING:
                    await asyncio.to_thread(self._tables.forget_unowned)

    async def watch(self) -> None:
        """End the worker where its consumer has silently stopped reading, for as long as the worker lives."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self.phase is Phase.RUNNING and self._intake is not None:
                stalled = await self._lookout.look(self._intake)
                if stalled is not None:
                    self.failed(stalled)

    async def checkpoint(self) -> None:
        """Commit what was done since the last one, if anything."""
        async with self._lock:
            if self._dirty and self._open is not None:
                await self._commit_and_go_on()

    async def commit_before(self, message: Message) -> bool:
        """Commit all that comes before a record of ours, even if it is nothing: its label goes along. False where it is
        ours no more."""
        async with self._lock:
            is_ours = self.phase is Phase.RUNNING and message.generation_id == self._generation
            if is_ours and self._open is not None:
                self._unclaimed[message.tp] = message.offset
                await self._commit_and_go_on()
            return is_ours

    async def _commit_and_go_on(self) -> None:
        await self._commit()
        await self._begin()
        if self.phase is Phase.RUNNING:
            self.gate.open()

    @property
    def _dirty(self) -> bool:
        return bool(
            self.outbox.records or self._unclaimed or any(self.inbox.acked.values()) or self._tables.staged_bytes
        )

    async def _begin(self) -> None:
        if self._open is None:  # else one was begun for the last assignment, and nothing came of it
            if self._transaction.needs_renewal:
                await self._threaded(self._transaction.renew)
                if self.has_failed:
                    return
            self._transaction.begin()
        self._numbers += 1
        assert self._member is not None
        self._open = Checkpoint(
            self._numbers, self._transaction, self._member, self, self._threaded, self.options.observe
        )
        self.outbox.open(self._transaction)

    async def _commit(self) -> None:
        if self.phase is Phase.FAILED or self._open is None:
            return
        size_bytes = self._tables.staged_bytes + self.outbox.size_bytes
        await self._open.commit()
        self.positions.update(self._open.committed_offsets)
        self.last_commit_at = time.monotonic()
        self.metrics.committed(self._open, size_bytes)
        self._open = None
        self._unclaimed = {}
        self.outbox.reset()
        self._pace.committed()

    def _look_whether_due(self) -> None:
        if self.outbox.size_bytes + self._tables.staged_bytes >= self.options.checkpoint_bytes:
            self._pace.now()

    # what a Checkpoint asks of its worker

    async def reach_event_boundary(self) -> None:
        self.gate.close()
        begun = self.inbox.in_flight
        try:
            await asyncio.wait_for(begun.drained(), self.options.transaction_timeout_ms / 1000)
        except TimeoutError:
            raise EventTooLong(begun, self.options.transaction_timeout_ms) from None
        if self.phase is Phase.FAILED:
            raise Fenced("this worker has failed; nothing more is committed")
        self.outbox.close()

    def offsets(self) -> Mapping[TP, int]:
        """All that is finished, and what we must put our name on. Never nothing: without offsets there is no fence."""
        offsets = {**self._unclaimed, **self.inbox.take_finished()}
        return offsets or dict([next(iter(self.positions.items()))])

    def produce_changelog(self) -> None:
        self._changelog_ends = {}
        for tp, changes in self._tables.changes():
            for key, value in changes.items():
                self._transaction.produce(tp.topic, key, value, self._changelog_delivered, partition=tp.partition)

    def _changelog_delivered(self, error: Any, message: Any) -> None:  # in a thread; flush waits for all of them
        if error is None:
            tp, after = TP(message.topic(), message.partition()), message.offset() + 1
            if after > self._changelog_ends.get(tp, NOTHING).offset:
                self._changelog_ends[tp] = Position(after, appended_at(message))

    def write_stores(self) -> None:
        self._tables.settle(self._changelog_ends)

    # ---- health

    @property
    def restore_progress(self) -> Progress | None:
        return self._tables.restore_progress

    def lag(self) -> int:
        """Offsets from the commits to the ends, as the consumer last saw them."""
        ends = self._intake.ends if self._intake is not None else {}
        return sum(max(0, ends.get(tp, 0) - self._passed(tp)) for tp in self.positions)

    def _passed(self, tp: TP) -> int:
        """The commit; or the end, where all of it is read and finished: markers of transactions are no records."""
        committed = self.positions[tp]
        return committed if self.inbox.outstanding[tp] else max(committed, self.read_to_end.get(tp, 0))

    def why_not_ready(self) -> str:
        """Empty when ready. A worker that has silently stopped is worse than one that is down."""
        if self.phase is not Phase.RUNNING:
            return str(self.phase.value)
        silent = time.monotonic() - self.last_commit_at
        if silent > self.options.stuck_seconds and self.lag() > 0:
            return f"{STUCK} {silent:.0f} s while {self.lag()} records wait"
        return ""

    # ---- helpers

    async def _threaded(self, call: Callable[[], None]) -> None:
        """Make a blocking call, and do not wait for it for ever: `send_offsets_to_transaction` has a time-out that the
        library does not keep (librdkafka #5456)."""
        limit = self.options.transaction_timeout_ms / 1000 + GRACE_SECONDS
        done = self._loop.run_in_executor(self._thread, call)
        if done not in (await asyncio.wait([done], timeout=limit))[0]:
            raise CommitUncertain(f"{self.transactional_id}: no answer in {limit:.0f} s; a restart asks anew")
        await done

    async def guarded(self, work: Awaitable[T]) -> T | None:
        try:
            return await work
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 whatever it is, this process may not go on
            self.failed(error)
            return None
