"""Workers are added, removed and replaced under load: partitions and their state move, the counts stay exact."""

from dataclasses import replace

import pytest

from tests.harness.fleet import FAILED, LAST_WORDS, Fleet, Worker, wait_for
from tests.harness.load import ConstantLoad, Load
from tests.harness.plan import Plan
from tests.harness.truth import EXACT, Truth

pytestmark = [pytest.mark.kafka, pytest.mark.kill]

TOPICS_READ = 3  # in, mid and the repartition topic


def test_workers_are_added_removed_and_replaced_under_load(plan: Plan, fleet: Fleet, truth: Truth) -> None:
    with ConstantLoad(plan, a_second=120) as load:
        fleet.start_ready("w0")
        truth.wait_seen(100)

        fleet.start("w1")  # added: each has half
        wait_for(lambda: shares(fleet, "w0", "w1") == (2, 2), 60, "the partitions were never shared out")
        truth.wait_seen(truth.look() + 200)

        assert fleet.workers.pop("w0").terminate() == 0  # removed: it does not come back
        wait_for(lambda: shares(fleet, "w1") == (4,), 60, "the partitions never came back")
        truth.wait_seen(truth.look() + 200)

        assert fleet.workers.pop("w1").terminate() == 0  # replaced: another identity, empty disk
        fleet.start("w2")
        wait_for(lambda: shares(fleet, "w2") == (4,), 60, "the partitions were never taken over")
        truth.wait_seen(truth.look() + 200)
    truth.wait_seen(load.sent)
    fleet.stop()
    assert truth.check(load.sent) == EXACT


def test_an_idle_worker_survives_a_rebalance(fleet: Fleet, truth: Truth, load: Load) -> None:
    """Nothing is in its transaction when the partitions are taken from it, and come back."""
    fleet.start_ready("w0", "w1")
    wait_for(lambda: shares(fleet, "w0", "w1") == (2, 2), 60, "the partitions were never shared out")
    assert fleet.workers.pop("w1").terminate() == 0
    wait_for(lambda: shares(fleet, "w0") == (4,), 60, "the partitions never came back")
    load.send(200)
    truth.wait_seen(200)
    fleet.stop()
    assert truth.check(200) == EXACT


def test_a_member_that_does_not_know_every_topic_makes_all_join_anew(fleet: Fleet, truth: Truth, load: Load) -> None:
    """Else both would own the same partitions of the table: one by the topic that the other does not know. It does not
    hear of it here, so both end after a while, and stay away for a session."""
    fleet.start_ready("w0")
    aware, unaware = fleet.workers["w0"], fleet.start("w1", off=("unaware",))
    for worker in (aware, unaware):
        assert worker.wait_end(60) == FAILED
        (last_words,) = worker.said(LAST_WORDS)
        assert "did not know all topics" in last_words["reason"]
    load.send(200)
    fleet.tend()
    truth.wait_seen(200, tend=fleet.tend)
    wait_for(lambda: shares(fleet, "w0", "w1") == (2, 2), 60, "the partitions were never shared out")
    fleet.stop()
    assert truth.check(200) == EXACT


def test_a_member_that_hears_of_a_topic_late_costs_no_worker(fleet: Fleet, truth: Truth, load: Load) -> None:
    fleet.start_ready("w0")
    late = fleet.start("w1", off=("learns",))
    late.wait_said("an assignment is not taken")
    load.send(200)
    truth.wait_seen(200)
    wait_for(lambda: shares(fleet, "w0", "w1") == (2, 2), 60, "the partitions were never shared out")
    fleet.stop()
    assert truth.check(200) == EXACT
    assert len(fleet.all) == 2


def test_a_group_by_that_is_reached_after_the_group_was_joined(plan: Plan, truth: Truth, load: Load) -> None:
    """Its topic is one more to subscribe to. Killed, and back before its session is over, the worker is given what its
    former self had, that topic too, before it asks for it."""
    with Fleet(replace(plan, session_timeout_ms=45_000)) as fleet:
        late = fleet.start("w0", off=("early-group-by",))
        late.wait_said("topics changed, joining again")
        load.send(200)
        truth.wait_seen(200)
        late.kill()
        again = fleet.start("w0", off=("early-group-by",))
        again.wait_said("an assignment is not taken")
        load.send(200)
        truth.wait_seen(400)
        fleet.stop()
        assert len(fleet.all) == 2
    assert truth.check(400) == EXACT


def test_state_of_partitions_that_moved_away_is_kept_for_a_while_and_then_removed(plan: Plan, truth: Truth) -> None:
    kept = replace(plan, tidy_seconds=0.2)
    with Fleet(kept) as fleet:
        Load(plan).send(200)
        fleet.start_ready("w0")
        truth.wait_seen(200)
        fleet.start("w1")
        wait_for(lambda: shares(fleet, "w0", "w1") == (2, 2), 60, "the partitions were never shared out")
        assert fleet.workers["w0"].terminate() == 0
        assert stores(plan, "w0") == 4, "half of them are not its own any more, and may come back"
        assert fleet.workers["w1"].terminate() == 0

    with Fleet(replace(kept, keep_unowned_seconds=0.5)) as fleet:
        fleet.start("w0")
        fleet.start("w1")
        wait_for(lambda: shares(fleet, "w0", "w1") == (2, 2), 60, "the partitions were never shared out")
        wait_for(lambda: stores(plan, "w0") == 2, 30, "state of partitions that moved away was never removed")
        assert fleet.workers["w0"].said("state of a partition that moved away removed")
        fleet.stop()
    assert truth.check(200) == EXACT


def stores(plan: Plan, worker: str) -> int:
    return len(list((plan.data / worker / "tables" / "counts").iterdir()))


def shares(fleet: Fleet, *names: str) -> tuple[int, ...]:
    return tuple(share(fleet.workers[name]) for name in names)


def share(worker: Worker) -> int:
    """Partitions of each topic that it works on; 0 while it does not."""
    assert worker.code is None, f"{worker.name}: ended with {worker.code}: {worker.tail()}"
    ready = worker.said("worker ready")
    begun = worker.said("partitions assigned")
    is_ready = bool(ready and begun) and ready[-1]["at"] > begun[-1]["at"]  # an assignment may follow another at once
    return int(ready[-1]["partitions"]) // TOPICS_READ if is_ready else 0
