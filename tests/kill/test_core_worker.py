"""A worker is killed, raises, or is asked to stop: every input is counted once, whatever it was doing."""

import random
import signal
import time
from pathlib import Path

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from cauce.kafka import Ends
from cauce.process import EXIT_CONFIG
from infra.cluster import Cluster
from tests.harness.fleet import FAILED, LAST_WORDS, Fleet, wait_for
from tests.harness.load import ConstantLoad, Load, create_topics
from tests.harness.plan import COMMIT_PATH, Fault, Plan, Point
from tests.harness.truth import EXACT, Truth

pytestmark = [pytest.mark.kafka, pytest.mark.kill]

RECORDS = 400


@pytest.mark.parametrize("at", COMMIT_PATH)
def test_a_kill_inside_the_commit_changes_nothing(at: Point, plan: Plan, fleet: Fleet, truth: Truth) -> None:
    with ConstantLoad(plan, a_second=150) as load:
        victim = fleet.start("w0", Fault(at, nth=3))  # two are stored by then
        victim.wait_fault()
        assert victim.wait_end(30) == -signal.SIGKILL
        # a commit counts before its markers are in every partition: give those a moment
        wait_for(lambda: truth.stores_ahead() == 0, 30, "a store has what Kafka has not")
        restored = fleet.start("w0").wait_said("tables restored")["records"]
    truth.wait_seen(load.sent, tend=fleet.tend)
    fleet.stop()
    assert truth.check(load.sent) == EXACT
    # only what was committed and not yet stored is read again: the tail, not the whole changelog
    assert (restored > 0) == (at == "committed")
    # after `produced` all of the checkpoint was with the brokers, and none of it counts; before it none was
    assert (truth.aborted_changes() > 0) == (at in ("produced", "offsets"))


@pytest.mark.parametrize("at", ["event", "key"])
def test_an_agent_that_raises_ends_the_worker_and_loses_nothing(
    at: Point, fleet: Fleet, truth: Truth, load: Load
) -> None:
    """In the agent itself, and in the function that group_by calls: its event must not be acknowledged."""
    load.send(RECORDS)
    victim = fleet.start("w0", Fault(at, "raise", nth=150))
    victim.wait_fault()
    assert victim.wait_end(30) == FAILED
    (last_words,) = victim.said(LAST_WORDS)
    assert last_words["reason"] == "as the plan says"
    fleet.start("w0")
    truth.wait_seen(RECORDS, tend=fleet.tend)
    fleet.stop()
    assert truth.check(RECORDS) == EXACT


def test_a_consumer_that_silently_stops_reading_is_noticed(plan: Plan, fleet: Fleet, truth: Truth) -> None:
    with ConstantLoad(plan, a_second=100) as load:
        deaf = fleet.start("w0", Fault("stored", "deafen", nth=3))
        deaf.wait_fault()
        assert deaf.wait_end(60) == FAILED
        (last_words,) = deaf.said(LAST_WORDS)
        assert last_words["kind"] == "Stalled"
        assert "nothing more comes of" in last_words["reason"]
        fleet.start("w0").wait_ready()
    truth.wait_seen(load.sent, tend=fleet.tend)
    fleet.stop()
    assert truth.check(load.sent) == EXACT


def test_a_topic_that_was_made_a_moment_ago_is_waited_for(kafka: Cluster, prefix: str, tmp_path: Path) -> None:
    """New topics reach the brokers one by one; a worker that asks one too early must not give up on them."""
    plan = Plan(worker="", prefix=prefix, bootstrap=kafka.bootstrap, data=tmp_path / "data")
    create_topics(plan, ("mid", "out"))
    with Fleet(plan) as fleet:
        worker = fleet.start("w0")
        worker.wait_said("topic not known yet, waiting for it")
        create_topics(plan, ("in",))
        with Truth(plan) as truth:
            load = Load(plan)
            load.send(RECORDS)
            truth.wait_seen(RECORDS, tend=fleet.tend)
            fleet.stop()
            assert truth.check(RECORDS) == EXACT


def test_sigterm_under_load_commits_everything_and_ends_with_0(plan: Plan, fleet: Fleet, truth: Truth) -> None:
    with ConstantLoad(plan, a_second=100) as load:
        fleet.start_ready("w0")
        truth.wait_seen(100)
        asked_at = time.monotonic()
        worker = fleet.workers["w0"]
        assert worker.terminate() == 0
        assert time.monotonic() - asked_at < 10
        assert worker.said("worker stopped, all work is committed")
        assert truth.aborted_changes() == 0
    fleet.start("w0")
    truth.wait_seen(load.sent, tend=fleet.tend)
    fleet.stop()
    assert truth.check(load.sent) == EXACT


@pytest.mark.parametrize(
    "moment", ["[^--Consumer]: Starting...", "[^---Conductor]: Waiting for tables to be registered..."]
)
def test_sigterm_in_the_middle_of_a_start_ends_with_0(moment: str, fleet: Fleet) -> None:
    worker = fleet.start("w0")
    worker.wait_said(moment)
    assert worker.terminate() == 0, worker.tail(20)


def test_two_workers_killed_at_random_under_load(plan: Plan, fleet: Fleet, truth: Truth) -> None:
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    kills = 4
    with ConstantLoad(plan, a_second=100) as load:
        fleet.start_ready("w0", "w1")
        for _ in range(kills):
            victim = fleet.workers[chance.choice(["w0", "w1"])]
            wanted = truth.look() + chance.randrange(20, 120)
            truth.wait_seen(wanted, tend=fleet.tend)
            victim = fleet.workers[victim.name]
            victim.kill()
            assert victim.code == -signal.SIGKILL
            fleet.tend()
            if chance.random() < 0.5:
                fleet.wait_ready(victim.name)
        truth.wait_seen(load.sent, tend=fleet.tend)
    truth.wait_seen(load.sent, tend=fleet.tend)
    fleet.stop()
    assert fleet.restarts >= kills
    assert truth.check(load.sent) == EXACT


def test_a_worker_goes_on_where_retention_has_passed_its_commit(
    plan: Plan, fleet: Fleet, truth: Truth, load: Load
) -> None:
    """Behind the last record of a transaction is its marker: once both are gone, the commit is below what is left."""
    load.send(RECORDS)
    fleet.start_ready("w0")
    truth.wait_seen(RECORDS)
    fleet.stop()
    places = [(plan.topic("mid"), number) for number in range(plan.partitions)]
    ends = Ends({"bootstrap.servers": plan.bootstrap}).of(places, IsolationLevel.READ_UNCOMMITTED)
    admin = AdminClient({"bootstrap.servers": plan.bootstrap})
    for deleted in admin.delete_records([TopicPartition(*place, end) for place, end in ends.items()]).values():
        deleted.result(60)
    load.send(RECORDS)
    worker = fleet.start("w0")
    truth.wait_seen(2 * RECORDS)
    fleet.stop()
    assert truth.check(2 * RECORDS) == EXACT
    assert worker.said("retention has passed what was committed, going on at the first record")


def test_a_worker_whose_offsets_kafka_has_forgotten_counts_nothing_again(
    plan: Plan, fleet: Fleet, truth: Truth, load: Load
) -> None:
    """As after a week without a worker: tables are full, and the inputs look as if nobody had ever read them."""
    load.send(RECORDS)
    fleet.start_ready("w0")
    truth.wait_seen(RECORDS)
    fleet.stop()
    admin = AdminClient({"bootstrap.servers": plan.bootstrap})
    # a static member stays in the group until its session is over, and a group with members is not deleted
    wait_for(lambda: deleted(admin, plan.app_id), 60, "the group stays")
    worker = fleet.start("w0")
    assert worker.wait_end(60) == EXIT_CONFIG
    (last_words,) = worker.said(LAST_WORDS)
    assert "would count them twice" in last_words["reason"]
    assert truth.check(RECORDS) == EXACT


def deleted(admin: AdminClient, group: str) -> bool:
    try:
        admin.delete_consumer_groups([group])[group].result(30)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.NON_EMPTY_GROUP:
            return False
        raise
    return True
