"""Faults inside a worker process, at an exact point of its work. Nothing of this is in the product."""

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from cauce.errors import CommitUncertain
from infra.layout import write_atomically
from streams import intake
from streams.checkpoint import Checkpoint, CheckpointState
from streams.predecessors import end_transactions_of_the_gone
from streams.transaction import Member, Transaction
from tests.harness.plan import Fault, Plan, Point

log = logging.getLogger(__name__)


class Injector:
    """Counts what is reached, and does what the plan says."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._fault = plan.fault or Fault(at="stored", nth=-1)
        self._events = 0  # since the last checkpoint was sealed
        self._checkpoints = 0
        self._times = 0  # that `event` or `key` was reached
        self._told = False
        self._due = False
        self._sealed: dict[str, int] = {}
        self._known: dict[str, int] = {}
        self.acted = False
        self.loses_the_answer = False
        self.deafens = False

    def observe(self, checkpoint: Checkpoint, state: CheckpointState) -> None:
        if state is CheckpointState.SEALED:
            self._checkpoints += self._events > 0
            self._due = self._events > 0 and self._checkpoints == self._fault.nth
            self._events = 0
            self._sealed = {f"{tp.topic} {tp.partition}": offset for tp, offset in checkpoint.committed_offsets.items()}
        if state is CheckpointState.COMMITTED:
            self._known |= self._sealed
            write_atomically(self._plan.known, json.dumps(self._known))
            if self._checkpoints == 1 and not self._told:
                self._told = True
                log.info("first work committed")
        self._at(state.value)

    def offsets_are_sent(self) -> None:
        self._at("offsets")

    def event(self, point: Point) -> None:
        self._events += point == "event"
        if point == self._fault.at:
            self._times += 1
            if self._times == self._fault.nth:
                self._act()

    def _at(self, point: str) -> None:
        if self._due and point == self._fault.at:
            self._due = False
            self._act()

    def _act(self) -> None:
        self.acted = True
        write_atomically(self._plan.reached, json.dumps(self._sealed))
        match self._fault.action:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
                signal.pause()
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "wait":
                while not self._plan.go_on.exists():
                    time.sleep(0.01)
            case "lose-answer":
                self.loses_the_answer = True
            case "deafen":
                self.deafens = True
            case "raise":
                raise ValueError("as the plan says")


def install(plan: Plan, injector: Injector) -> None:
    """The point between offsets and commit has no state of its own: wrap the call. Then switch off what is to be."""
    commit = Transaction.commit

    def commit_after_the_fault(self: Transaction) -> None:
        injector.offsets_are_sent()
        commit(self)
        if injector.loses_the_answer:
            raise CommitUncertain("the answer was lost, as the plan says")

    Transaction.commit = commit_after_the_fault  # type: ignore[method-assign]
    _stop_fetching_when_told(injector)
    if "no-predecessors" in plan.off:
        vars(intake)[end_transactions_of_the_gone.__name__] = lambda *arguments: None
    if "no-generation" in plan.off:
        _commit_without_generation(plan, injector)
    if "own-offsets" in plan.off:
        _go_on_from_what_was_known(plan)
    if "unaware" in plan.off or "learns" in plan.off:
        _join_without_one_topic(plan)


def _join_without_one_topic(plan: Plan) -> None:
    """As librdkafka does when the broker that it asks has not heard of the topic. It hears of it when it asks again, or
    never."""
    subscribe, read = intake.Intake._subscribe, intake.Intake._read

    def subscribe_to_fewer(self: intake.Intake, topics: Sequence[str]) -> None:
        subscribe(self, [topic for topic in topics if topic != plan.topic("mid")])
        self._topics = topics

    def read_and_learn(self: intake.Intake) -> None:
        if self._learning.is_set() and "learns" in plan.off:
            subscribe(self, self._topics)
        read(self)

    intake.Intake._subscribe = subscribe_to_fewer  # type: ignore[method-assign]
    intake.Intake._read = read_and_learn  # type: ignore[method-assign]


def _stop_fetching_when_told(injector: Injector) -> None:
    """As librdkafka was seen to do after a broker's absence: nothing more comes, and nobody is told."""
    read = intake.Intake._read

    def read_or_not(self: intake.Intake) -> None:
        if injector.deafens:
            injector.deafens = False
            self._consumer.pause(self._consumer.assignment())
        read(self)

    intake.Intake._read = read_or_not  # type: ignore[method-assign]


def _commit_without_generation(plan: Plan, injector: Injector) -> None:
    """What not to do: ask for the group metadata again when committing. After a fence the library may say generation -1
    and no member, which is what it says of a consumer that never joined."""
    nobody = Consumer({"bootstrap.servers": plan.bootstrap, "group.id": plan.app_id}).consumer_group_metadata()
    send_offsets = Transaction.send_offsets

    def send_as_nobody(self: Transaction, offsets: Any, member: Member) -> None:
        send_offsets(self, offsets, nobody if injector.acted else member)

    def go_on(*arguments: Any) -> None:
        threading.Event().wait()  # for good: to end here, or to join again, would hide what the broker does

    intake.Intake._on_lost = go_on  # type: ignore[method-assign, assignment]
    Transaction.send_offsets = send_as_nobody  # type: ignore[method-assign]


def _go_on_from_what_was_known(plan: Plan) -> None:
    """What not to do: take a commit without an answer for one that did not happen, and go on from the one before it."""
    known: dict[str, int] = json.loads(plan.known.read_text())
    on_assign = intake.Intake._on_assign

    class Forgetful:
        def __init__(self, consumer: Consumer) -> None:
            self._consumer = consumer

        def __getattr__(self, name: str) -> Any:
            return getattr(self._consumer, name)

        def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
            found = self._consumer.committed(partitions, timeout)
            for tp in found:
                tp.offset = known.get(f"{tp.topic} {tp.partition}", tp.offset)
            return found

    def assign_from_known(self: intake.Intake, consumer: Any, partitions: list[TopicPartition]) -> None:
        on_assign(self, Forgetful(consumer), partitions)  # type: ignore[arg-type]

    intake.Intake._on_assign = assign_from_known  # type: ignore[method-assign]
