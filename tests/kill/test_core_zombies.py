"""Workers that stop and come back, or never do: they are fenced, their transactions are ended, nobody waits for them.

Each has a control run with the handling switched off, which comes out wrong: so it is the handling that does it.
"""

import json
import signal

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from tests.harness.fleet import FAILED, LAST_WORDS, Fleet, Worker, wait_for
from tests.harness.load import Load
from tests.harness.plan import Fault, Plan, Point, Switch
from tests.harness.truth import EXACT, Truth

pytestmark = [pytest.mark.kafka, pytest.mark.kill]

RECORDS = 500
LAST_RESORT_MS = 60_000  # transaction.timeout.ms: nobody may have to wait for it
NO_FENCING: tuple[Switch, ...] = ("no-predecessors",)
NO_GENERATION: tuple[Switch, ...] = ("no-predecessors", "no-generation")


@pytest.fixture
def plan(plan: Plan) -> Plan:
    return plan.with_transaction_timeout(LAST_RESORT_MS)


@pytest.mark.parametrize("at", ["sealed", pytest.param("produced", marks=pytest.mark.again), "offsets"])
def test_a_zombie_is_fenced_says_so_and_doubles_nothing(at: Point, fleet: Fleet, truth: Truth, load: Load) -> None:
    """Stopped before its changelog, before and after its offsets; it comes back when another has done the work."""
    zombie, heir = fleet.start("w0", Fault(at, "stop")), fleet.start("w1")
    both_ready(zombie, heir)
    load.send(RECORDS)
    wait_for(lambda: zombie.stopped, 60, f"the zombie never stopped: {zombie.tail()}")
    truth.wait_seen(RECORDS)
    zombie.resume()
    must_be_fenced(zombie)
    load.send(RECORDS)
    fleet.tend()
    truth.wait_seen(2 * RECORDS)
    fleet.workers["w0"].wait_ready()
    fleet.stop()
    assert truth.check(2 * RECORDS) == EXACT


def test_the_generation_alone_fences_a_zombie(fleet: Fleet, truth: Truth, load: Load) -> None:
    zombie = zombie_that_comes_back(fleet, load, NO_FENCING)
    must_be_fenced(zombie)
    truth.wait_seen(RECORDS)
    assert fleet.workers["w1"].terminate() == 0
    assert truth.check(RECORDS) == EXACT


def test_control_without_the_kept_generation_a_zombie_doubles(fleet: Fleet, truth: Truth, load: Load) -> None:
    """The same run with the group metadata read at commit, as one would: the broker lets the zombie through."""
    zombie_that_comes_back(fleet, load, NO_GENERATION)

    def doubled() -> bool:
        truth.look()
        return truth.times.total() > len(truth.times)

    wait_for(doubled, 60, "nothing was counted twice: this control does not show what it should")


def test_nobody_waits_for_the_transaction_of_a_worker_that_never_returns(
    fleet: Fleet, truth: Truth, load: Load
) -> None:
    heir, begun = heir_of_a_dead_worker(fleet, truth, load, ())
    assert not begun.items() & truth.held_back().items(), "fencing comes before the partitions are worked on"
    half = LAST_RESORT_MS / 1000 / 2
    assert truth.wait_seen(RECORDS, seconds=half, tend=lambda: fleet.tend(heir.name)) < half
    assert any(worker.said("fencing a worker that left") for worker in fleet.all if worker.name == heir.name)
    assert fleet.workers[heir.name].terminate() == 0
    assert truth.check(RECORDS) == EXACT


def test_control_without_fencing_everybody_waits_for_it(fleet: Fleet, truth: Truth, load: Load) -> None:
    heir, begun = heir_of_a_dead_worker(fleet, truth, load, NO_FENCING)
    assert truth.held_back() == begun
    seen = truth.look()
    with pytest.raises(AssertionError, match="inputs are in the output"):
        truth.wait_seen(seen + 1, seconds=4)
    assert truth.held_back() == begun
    assert not heir.said("worker ready"), "its restore reaches the end only when the transaction has timed out"


def heir_of_a_dead_worker(
    fleet: Fleet, truth: Truth, load: Load, off: tuple[Switch, ...]
) -> tuple[Worker, dict[int, int]]:
    """A worker that has just been assigned what a dead one had, and where the transaction of the dead one begins."""
    load.send(RECORDS)
    victim = fleet.start("w0", Fault("produced"), off)
    victim.wait_fault()
    assert victim.wait_end(30) == -signal.SIGKILL
    begun = truth.held_back()
    assert begun, "the open transaction must hold the readers back, or there is nothing to see"
    heir = fleet.start("w1", off=off)
    wait_for(lambda: bool(assigned(heir)), 60, f"{heir.name} got no partitions: {heir.tail()}")
    return heir, begun


def assigned(worker: Worker) -> int:
    return max((line["partitions"] for line in worker.said("partitions assigned")), default=0)


def zombie_that_comes_back(fleet: Fleet, load: Load, off: tuple[Switch, ...]) -> Worker:
    """Stopped with its events done and its changelog not written, until another worker has done the same events."""
    zombie, heir = fleet.start("w0", Fault("sealed", "stop"), off), fleet.start("w1", off=off)
    both_ready(zombie, heir)
    load.send(RECORDS)
    wait_for(lambda: zombie.stopped, 60, f"the zombie never stopped: {zombie.tail()}")
    sealed = json.loads(zombie.plan.reached.read_text())
    admin = AdminClient({"bootstrap.servers": fleet.plan.bootstrap})

    def done_by_another() -> bool:
        group = fleet.plan.app_id
        answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
        committed = {f"{tp.topic} {tp.partition}": tp.offset for tp in answer.topic_partitions or []}
        return all(committed.get(name, 0) >= offset for name, offset in sealed.items())

    wait_for(done_by_another, 60, f"nobody did the work of the zombie, {sealed}")
    zombie.resume()
    return zombie


def both_ready(zombie: Worker, heir: Worker) -> None:
    """Or the first of them has done all the work before the other has joined."""
    zombie.wait_ready()
    heir.wait_ready()


def must_be_fenced(zombie: Worker) -> None:
    assert zombie.wait_end(30) == FAILED
    (last_words,) = zombie.said(LAST_WORDS)
    assert last_words["kind"] == "Fenced", last_words
