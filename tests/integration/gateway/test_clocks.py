"""Gateways whose clocks are wrong, at the same time as one whose clock is right: nobody's session suffers from it."""

import time
from functools import partial
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]
from faust.types import TP

from cauce.provision import WantedTopic, ensure_topics
from cauce.tokens import OPERATOR, Tokens
from cauce.topics import SESSIONS, STAMPED_BY_BROKERS, TOPICS
from infra.broker import Broker
from infra.cluster import Cluster
from infra.ports import Ports
from infra.processes import wait_until
from streams.recovery import Changelogs, Restore
from tables.store import Identity, StoreMemory, open_store
from tests.harness.clock import HOUR, BrokerClock, WrongClock, needs_faketime
from tests.integration.gateway.conftest import PARTITIONS, NewReplica
from tests.integration.gateway.reading import Topics, ratings
from tests.integration.gateway.replica import SECRET, Replica

pytestmark = pytest.mark.kafka
MINUTE = 60.0
SWEEP_SECONDS = 15.0  # between two sweeps at most
WRONG = {"ahead": 3 * HOUR, "somewhat-ahead": 50 * MINUTE, "behind": -3 * HOUR}


def says(replica: Replica, words: str) -> bool:
    status, text = replica.page("/readyz")
    return status == 503 and words in text


def mentions(replica: Replica, words: str) -> bool:
    return words in replica.page("/readyz")[1]


def gauge(replica: Replica, name: str) -> float:
    (line,) = (line for line in replica.page("/metrics")[1].splitlines() if line.startswith(f"{name} "))
    return float(line.split()[1])


def start_all(right: Replica, *wrong: Replica) -> None:
    for replica in (right, *wrong):
        replica.start()
    right.wait_ready()
    for replica in wrong:
        wait_until(partial(says, replica, "the clock of this machine is"), seconds=60, otherwise="not a word")


@needs_faketime
def test_gateways_hours_off_say_so_and_serve_each_others_sessions(new_replica: NewReplica, tmp_path: Path) -> None:
    clocks = {name: WrongClock(tmp_path / name, off) for name, off in WRONG.items() if name != "somewhat-ahead"}
    right, (ahead, behind) = new_replica(), (new_replica(**clock.variables) for clock in clocks.values())
    start_all(right, ahead, behind)
    assert says(ahead, "s ahead of the brokers'")
    assert says(behind, "s behind the brokers'")
    assert [round(gauge(each, "cauce_gateway_clock_ahead_seconds") / HOUR) for each in (right, ahead, behind)] == [
        0, 3, -3,
    ]  # fmt: skip
    assert [gauge(each, "cauce_gateway_sweeps") for each in (right, ahead, behind)] == [1, 0, 0]
    data = ratings(500)
    for opened_at in (right, ahead, behind):
        visit = opened_at.open()
        assert abs(visit.opened["expires_at"] - time.time() - 5 * MINUTE) < MINUTE, "of an empty session"
        location = visit.create("ratings.csv", len(data))
        for at, (begin, end) in zip((right, ahead, behind), ((0, 3000), (3000, 6000), (6000, len(data))), strict=True):
            answer = visit.at(at).patch(location, begin, data[begin:end])
            assert answer.status_code == 204, (at.name, answer.text)
            assert visit.at(at).ask("GET", "").status_code == 200
        ticket = visit.ask("POST", "answers/movies-q1/ticket").json()["href"]
        for at in (right, ahead, behind):
            assert httpx.get(at.url + ticket).status_code == 409, "the ticket is good, the answer is not there yet"
    operator = {"Authorization": f"Bearer {Tokens(SECRET.encode()).issue(OPERATOR, time.time() + 60)}"}
    assert {httpx.get(f"{at.url}/sessions", headers=operator).status_code for at in (right, ahead, behind)} == {200}
    clocks["ahead"].jump_to(0)
    wait_until(lambda: ahead.ready, seconds=30, otherwise="right again, and it does not notice")
    clocks["ahead"].jump_to(-20 * HOUR)
    assert says(ahead, "s behind the brokers'")
    assert visit.at(ahead).ask("GET", "").status_code == 200


@needs_faketime
@pytest.mark.strangers
def test_no_gateway_ends_a_session_because_its_clock_is_wrong_or_jumps(
    new_replica: NewReplica, topics: Topics, tmp_path: Path
) -> None:
    """Three sweeps of each: on the time to live of half an hour, fifty minutes ahead are enough to end all."""
    life = {"CAUCE_SESSION_TTL_SECONDS": "1800"}
    clocks = [WrongClock(tmp_path / name, off) for name, off in WRONG.items()]
    right, wrong = new_replica(**life), [new_replica(**life, **clock.variables) for clock in clocks]
    start_all(right, *wrong)
    visits = [each.open() for each in (right, *wrong)]
    data = ratings(30_000)
    location = visits[0].create("ratings.csv", len(data))
    offset, ends_at, jumps = 0, time.monotonic() + 3 * SWEEP_SECONDS, 0
    while time.monotonic() < ends_at:
        clocks[0].jump_to((3 * HOUR, -3 * HOUR, 0.0, 20 * HOUR)[jumps % 4])
        jumps += 1
        for each in (right, *wrong):
            piece = data[offset : offset + 1000]
            answer = visits[0].at(each).patch(location, offset, piece)
            assert answer.status_code == 204, (each.name, jumps, answer.text)
            offset += len(piece)
    assert {visit.client_id for visit in visits} == set(topics.states("sessions"))
    assert all(visit.show()["client_id"] == visit.client_id for visit in visits)
    assert visits[0].offset(location) == offset > 0


@needs_faketime
@pytest.mark.strangers
def test_what_nobody_uses_is_ended_by_the_gateway_whose_clock_is_right(
    new_replica: NewReplica, topics: Topics, tmp_path: Path
) -> None:
    life = {"CAUCE_SESSION_TTL_SECONDS": "20"}
    clocks = [WrongClock(tmp_path / name, off) for name, off in WRONG.items()]
    wrong = [new_replica(**life, **clock.variables) for clock in clocks]
    right = new_replica(**life)
    start_all(right, *wrong)
    opened_at = time.monotonic()
    visits = [each.open() for each in (right, *wrong)]
    wait_until(lambda: not topics.states("sessions"), seconds=90, otherwise="some live on")
    assert time.monotonic() - opened_at > 20
    ended = right.log_file.read_text()
    assert all(f'"session ended", "client_id": "{visit.client_id}"' in ended for visit in visits)


def test_a_store_knows_when_the_broker_took_the_last_record_that_it_has(
    broker: Cluster, prefix: str, tmp_path: Path
) -> None:
    """Whatever the sender says: here it is twenty hours behind."""
    changelog, client = TP(prefix + "count-changelog", 0), {"bootstrap.servers": broker.bootstrap}
    ensure_topics(client, [WantedTopic(changelog.topic, 1, STAMPED_BY_BROKERS)], 1)
    producer = Producer({**client, "transactional.id": prefix})
    producer.init_transactions(30)

    def write(key: str) -> None:
        producer.begin_transaction()
        producer.produce(changelog.topic, key=key, value=b"1", timestamp=int((time.time() - 20 * HOUR) * 1000))
        producer.commit_transaction(30)

    before = time.time()
    write("a")
    changelogs = Changelogs(client)
    identity = Identity("c", changelog.topic, "id", 0)
    store = open_store(tmp_path / "s", identity, StoreMemory(cache_mib=8))
    assert Restore(client, {changelog: store}, changelogs.ends([changelog])).run()
    store.close()
    again = open_store(tmp_path / "s", identity, StoreMemory(cache_mib=8))
    assert before - 1 < again.position.appended_at < time.time() + 1
    assert not again.may_have_missed_deletes(changelogs.newest_at([changelog])[changelog])
    time.sleep(0.1)  # between two records: the broker's clock must have moved
    write("b")
    assert changelogs.newest_at([changelog])[changelog] >= again.position.appended_at + 0.1
    again.close()


def test_topics_of_an_older_version_are_altered_to_the_brokers_time(
    broker: Cluster, prefix: str, new_replica: NewReplica
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    old = NewTopic(prefix + SESSIONS.name, PARTITIONS, 1, config={"message.timestamp.type": "CreateTime"})
    admin.create_topics([old])[prefix + SESSIONS.name].result(30)
    with new_replica() as replica:
        asked = [ConfigResource(ResourceType.TOPIC, prefix + topic.name) for topic in TOPICS]

        def others() -> set[str]:
            """Brokers learn of what the controller has altered a moment after it has said so."""
            told = {each.name: told.result() for each, told in admin.describe_configs(asked).items()}
            return {name for name, config in told.items() if config["message.timestamp.type"].value != "LogAppendTime"}

        wait_until(lambda: others() == set(), seconds=30, otherwise="not all go by the brokers' time")
        assert '"topic altered"' in replica.log_file.read_text()
        replica.stop()
        replica.log_file.unlink()
        replica.start()
        replica.wait_ready()
        assert '"topic altered"' not in replica.log_file.read_text()


@pytest.mark.strangers
def test_when_the_only_broker_jumps_gateways_that_run_stay_ready_and_one_that_starts_is_not(
    tmp_path: Path, ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = BrokerClock(tmp_path / "clock")
    told = [f"{name}={value}" for name, value in clock.variables.items()]
    command = Broker.command
    monkeypatch.setattr(Broker, "command", lambda broker, java: ["env", *told, *command(broker, java)])
    with Cluster(tmp_path / "kafka", brokers=1, heap="256m") as cluster:
        settings = {"CAUCE_BOOTSTRAP": cluster.bootstrap, "CAUCE_PARTITIONS": "2", "CAUCE_HOME": str(tmp_path)}
        late = Replica(ports.take(), tmp_path / "late.log", settings)
        with Replica(ports.take(), tmp_path / "running.log", settings) as running:
            for off, where in ((100, "ahead of"), (-100, "behind")):
                words = f"100 s {where} that of this machine"
                clock.jump_to(off)
                wait_until(partial(mentions, running, words), seconds=40, otherwise="not a word")
                assert running.page("/readyz")[0] == 200
                assert '"a clock is wrong"' in running.log_file.read_text()
                assert gauge(running, "cauce_gateway_ready") == 1
                assert gauge(running, "cauce_gateway_sweeps") == 0
                assert round(gauge(running, "cauce_gateway_clock_ahead_seconds"), -1) == -off
                visit, data = running.open(), ratings(200)
                assert visit.patch(visit.create("ratings.csv", len(data)), 0, data).status_code == 204
            try:
                late.start()
                wait_until(lambda: says(late, "the clock of this machine is"), seconds=60, otherwise="not a word")
                clock.jump_to(0)
                wait_until(lambda: late.ready, seconds=40, otherwise="the broker is right again")
            finally:
                late.stop()
            wait_until(lambda: running.page("/readyz") == (200, "ready"), seconds=40, otherwise="it does not notice")


@pytest.mark.strangers
def test_while_one_broker_of_three_is_off_nobody_sweeps_and_all_say_so_and_work(
    tmp_path: Path, ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = BrokerClock(tmp_path / "clock")
    told = [f"{name}={value}" for name, value in clock.variables.items()]
    command = Broker.command
    monkeypatch.setattr(
        Broker, "command", lambda broker, java: [*(["env", *told] if broker.id == 2 else []), *command(broker, java)]
    )
    with Cluster(tmp_path / "kafka", brokers=3, heap="256m") as cluster:
        settings = {
            "CAUCE_BOOTSTRAP": cluster.bootstrap,
            "CAUCE_PARTITIONS": "6",
            "CAUCE_HOME": str(tmp_path),
            "CAUCE_SESSION_TTL_SECONDS": "20",
        }
        with (
            Replica(ports.take(), tmp_path / "gateway-0.log", settings) as one,
            Replica(ports.take(), tmp_path / "gateway-1.log", settings) as other,
        ):
            assert [gauge(each, "cauce_gateway_sweeps") for each in (one, other)] == [1, 1]
            visit = one.open()
            clock.jump_to(100)

            def all_say_so() -> bool:
                pages = [each.page("/readyz") for each in (one, other)]
                return all(status == 200 and "broker 2 +100 s" in text for status, text in pages)

            wait_until(all_say_so, seconds=40, otherwise="nobody says so")
            assert [gauge(each, "cauce_gateway_sweeps") for each in (one, other)] == [0, 0]
            data = ratings(200)
            late = other.open()
            assert late.at(one).patch(late.create("ratings.csv", len(data)), 0, data).status_code == 204
            silent_until = time.monotonic() + 20 + 2 * SWEEP_SECONDS
            topics = Topics(cluster.bootstrap, "", 6)
            while time.monotonic() < silent_until:
                assert visit.client_id in topics.states("sessions"), "swept by a clock that nobody vouches for"
                time.sleep(1)
            clock.jump_to(0)
            wait_until(lambda: one.page("/readyz") == (200, "ready"), seconds=40, otherwise="it does not notice")
            # what broker 2 stamped meanwhile lives for 100 s more
            wait_until(
                lambda: visit.client_id not in topics.states("sessions"),
                seconds=60,
                otherwise="nothing is swept any more",
            )
