"""Brokers die or fall silent inside a commit: workers go on or start again, and the counts stay exact."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from infra.cluster import Cluster
from tests.harness.fleet import FAILED, LAST_WORDS, Fleet
from tests.harness.load import ConstantLoad, Load
from tests.harness.plan import Fault, Plan, Point, Switch
from tests.harness.truth import EXACT, Truth

pytestmark = [pytest.mark.kafka, pytest.mark.kill]

RECORDS = 400


@pytest.fixture
def plan(plan: Plan) -> Plan:
    """Sessions as in production: long enough for another broker to take the group over."""
    return replace(plan, session_timeout_ms=6_000)


@pytest.mark.parametrize(
    ("victim", "at"),
    [
        pytest.param(0, "produced", marks=pytest.mark.again),
        (1, "offsets"),
        pytest.param(2, "produced", marks=pytest.mark.again),
    ],
)
def test_a_broker_dies_inside_a_commit(
    victim: int, at: Point, kafka: Cluster, plan: Plan, fleet: Fleet, truth: Truth
) -> None:
    """Each broker in turn, so that partition leaders and both coordinators are among them."""
    with ConstantLoad(plan, a_second=100) as load:
        fleet.start("w1")
        worker = fleet.start("w0", Fault(at, "wait"))
        worker.wait_fault()
        kafka.kill(victim)
        try:
            worker.plan.go_on.touch()
            truth.wait_seen(truth.look() + 100, seconds=60, tend=fleet.tend)  # with two brokers of three
        finally:
            kafka.start_broker(victim)
            kafka.wait_in_sync()
    truth.wait_seen(load.sent, tend=fleet.tend)
    fleet.stop()
    assert truth.check(load.sent) == EXACT


@pytest.mark.parametrize("at", [pytest.param("produced", marks=pytest.mark.again), "offsets"])
def test_a_commit_whose_outcome_is_unknown_ends_the_worker(at: Point, kafka: Cluster, plan: Plan, truth: Truth) -> None:
    """Every broker falls silent with the offsets or the commit on its way: the restart finds out by the offsets."""
    plan = replace(plan, transaction_timeout_ms=3_000, session_timeout_ms=20_000)  # the commit gives up first
    load = Load(plan)
    with Fleet(plan) as fleet:
        load.send(RECORDS)
        worker = fleet.start("w0", Fault(at, "wait"))
        worker.wait_fault()
        with silent(kafka):
            worker.plan.go_on.touch()
            assert worker.wait_end(30) == FAILED
        (last_words,) = worker.said(LAST_WORDS)
        assert last_words["kind"] == "CommitUncertain", last_words
        load.send(RECORDS)
        fleet.tend()
        truth.wait_seen(2 * RECORDS, tend=fleet.tend)
        fleet.stop()
    assert truth.check(2 * RECORDS) == EXACT


def test_a_worker_asked_to_stop_ends_in_time_although_no_broker_answers(
    kafka: Cluster, fleet: Fleet, truth: Truth, load: Load
) -> None:
    """What it had begun is not committed, so it may not say 0; the next one does it again."""
    load.send(RECORDS)
    worker = fleet.start("w0", Fault("produced", "wait"))
    worker.wait_fault()
    with silent(kafka):
        worker.plan.go_on.touch()
        assert worker.terminate() == FAILED
    fleet.tend()
    truth.wait_seen(RECORDS, tend=fleet.tend)
    fleet.stop()
    assert truth.check(RECORDS) == EXACT


@pytest.mark.parametrize("off", [(), ("own-offsets",)], ids=["handled", "control"])
def test_a_commit_without_an_answer_is_looked_up_by_its_offsets(
    off: tuple[Switch, ...], fleet: Fleet, truth: Truth, load: Load
) -> None:
    """It did happen. The control takes it for one that did not, and counts its events again."""
    load.send(RECORDS)
    worker = fleet.start("w0", Fault("offsets", "lose-answer"))
    assert worker.wait_end(60) == FAILED
    (last_words,) = worker.said(LAST_WORDS)
    assert last_words["kind"] == "CommitUncertain", last_words
    fleet.start("w0", off=off)
    load.send(RECORDS)  # when these are through, so is whatever came before them
    truth.wait_seen(2 * RECORDS)
    fleet.stop()
    verdict = truth.check(2 * RECORDS)
    assert verdict.twice > 0 if off else verdict == EXACT


@contextmanager
def silent(kafka: Cluster) -> Iterator[None]:
    """No broker answers, and every connection stays open."""
    for broker in kafka.brokers:
        kafka.pause(broker.id)
    try:
        yield
    finally:
        for broker in kafka.brokers:
            kafka.resume(broker.id)
        kafka.wait_ready()
        kafka.wait_in_sync()
