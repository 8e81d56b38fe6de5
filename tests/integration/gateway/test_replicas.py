"""Any replica goes on where another one stopped, died or fell asleep: every row is there once."""

import random
import signal
import threading
import time

import pytest

from infra.cluster import Cluster
from infra.processes import wait_until
from tests.integration.gateway.conftest import NewReplica
from tests.integration.gateway.reading import Topics, expected, ratings, same_rows
from tests.integration.gateway.replica import TUS, Replica, Trickle, Visit

pytestmark = pytest.mark.kafka

DATA = ratings(20_000)


def wait_for_progress(visit: Visit, location: str) -> None:
    wait_until(lambda: visit.committed(location) > 0, seconds=60, otherwise="nothing was committed")


def half_way(first: Replica, second: Replica) -> tuple[Visit, str, Trickle]:
    """An upload that the first has in hand, and the second knows of."""
    visit = first.open()
    location = visit.create("ratings.csv", len(DATA))
    trickle = Trickle(visit, location, DATA)
    wait_for_progress(visit.at(second), location)
    return visit, location, trickle


def finish(visit: Visit, location: str) -> None:
    """As a careful client does: ask, go on, and ask again when told so."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        head = visit.ask("HEAD", location, TUS)
        if head.status_code == 503:
            time.sleep(int(head.headers["Retry-After"]))
            continue
        assert head.status_code == 200, head.status_code
        offset = int(head.headers["Upload-Offset"])
        if offset == len(DATA):
            return
        answer = visit.patch(location, offset, DATA[offset:])
        assert answer.status_code in (204, 409, 423, 503), answer.text
    raise AssertionError("it never got to the end")


def check(topics: Topics, visit: Visit) -> None:
    assert same_rows(topics.rows("ratings", visit.client_id), expected("ratings", DATA))
    assert {value["rows"] for _, value in topics.ends("ratings", visit.client_id)} == {20_000}


def test_one_is_killed_and_another_goes_on(new_replica: NewReplica, topics: Topics) -> None:
    with new_replica() as first, new_replica() as second:
        visit, location, trickle = half_way(first, second)
        first.kill()
        trickle.finish()
        assert trickle.status == 0  # the fault did happen in the middle
        elsewhere = visit.at(second)
        assert 0 < elsewhere.offset(location) < len(DATA)
        finish(elsewhere, location)
        check(topics, visit)


def test_one_falls_asleep_and_finds_another_in_its_place(new_replica: NewReplica, topics: Topics) -> None:
    with new_replica() as first, new_replica() as second:
        visit, location, trickle = half_way(first, second)
        first.pause()
        try:
            elsewhere = visit.at(second)
            offset = elsewhere.offset(location)
            assert 0 < offset < len(DATA)
            assert elsewhere.patch(location, offset, DATA[offset : offset + 100_001]).status_code in (204, 409)
        finally:
            first.send(signal.SIGCONT)
        trickle.finish()
        assert trickle.status in (0, 409, 423, 503)  # fenced: whatever it had was not committed
        finish(elsewhere, location)
        check(topics, visit)


def test_an_upload_that_goes_from_one_to_the_other_all_the_time(new_replica: NewReplica, topics: Topics) -> None:
    with new_replica() as first, new_replica() as second:
        rng = random.Random(3)
        visit = first.open()
        location = visit.create("ratings.csv", len(DATA))
        cuts = sorted(rng.sample(range(1, len(DATA)), 9))
        for start, end in zip([0, *cuts], [*cuts, len(DATA)], strict=True):
            here = visit.at(rng.choice([first, second]))
            assert here.offset(location) == start
            answer = here.patch(location, start, DATA[start:end])
            if answer.status_code == 423:  # its idle producer was fenced meanwhile; it is told to ask again
                assert here.offset(location) == start
                answer = here.patch(location, start, DATA[start:end])
            assert answer.status_code == 204, answer.text
        check(topics, visit)


def test_sigterm_keeps_what_came_and_exits_with_0(new_replica: NewReplica, topics: Topics) -> None:
    with new_replica() as first, new_replica() as second:
        visit, location, trickle = half_way(first, second)
        asked = time.monotonic()
        assert first.stop() == 0
        assert time.monotonic() - asked < 10
        trickle.finish()
        assert trickle.status in (0, 503)
        finish(visit.at(second), location)
        check(topics, visit)


def test_two_that_create_the_same_upload_at_once_make_one(new_replica: NewReplica) -> None:
    with new_replica() as first, new_replica() as second:
        visit = first.open()
        made: list[str] = []

        def create(here: Visit) -> None:
            for _ in range(10):
                try:
                    made.append(here.create("ratings.csv", len(DATA)))
                except AssertionError:  # told to try again
                    continue
                return

        threads = [threading.Thread(target=create, args=[visit.at(replica)]) for replica in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert made == [f"{visit.path}/uploads/ratings"] * 2
        assert len(visit.show()["uploads"]) == 1


def test_a_long_row_that_was_cut_goes_on_elsewhere(new_replica: NewReplica, topics: Topics) -> None:
    """Its first half is in the progress record, and too long to be kept in memory by everybody."""
    cast = ", ".join(f"{{'cast_id': {n}, 'name': 'Nobody {n}'}}" for n in range(20_000))
    data = f'cast,crew,id\n"[{cast}]",[],5\n"[]",[],6\n'.encode()
    with new_replica() as first, new_replica() as second:
        visit = first.open()
        location = visit.create("credits.csv", len(data))
        cuts = [0, 300_000, 600_000, len(data)]
        for start, end, replica in zip(cuts, cuts[1:], [first, second, first], strict=False):
            answer = visit.at(replica).patch(location, start, data[start:end])
            assert answer.status_code == 204, answer.text
        assert same_rows(topics.rows("credits", visit.client_id), expected("credits", data))


def test_kafka_falls_silent_for_a_while(broker: Cluster, new_replica: NewReplica, topics: Topics) -> None:
    with new_replica() as replica:
        visit = replica.open()
        location = visit.create("ratings.csv", len(DATA))
        trickle = Trickle(visit, location, DATA)
        wait_for_progress(visit, location)
        broker.pause(0)
        try:
            trickle.finish()
            assert trickle.status in (0, 423, 503)
            wait_until(lambda: replica.page("/readyz")[0] == 503, seconds=60, otherwise="it calls itself ready")
            assert replica.page("/livez")[0] == 200
            answer = visit.ask("HEAD", location, {"Tus-Resumable": "1.0.0"})
            assert answer.status_code == 503
            assert "Retry-After" in answer.headers
        finally:
            broker.resume(0)
        replica.wait_ready()
        finish(visit, location)
        check(topics, visit)


def test_a_delete_at_another_gateway_is_the_last_word_on_the_upload(new_replica: NewReplica, topics: Topics) -> None:
    with new_replica() as first, new_replica() as second:
        visit, location, trickle = half_way(first, second)
        elsewhere = visit.at(second)
        assert elsewhere.ask("DELETE", location, TUS).status_code == 204
        trickle.finish()
        assert trickle.status in (0, 409, 410, 422, 423)
        for here in (visit, elsewhere):
            (upload,) = here.show()["uploads"]
            assert (upload["state"], "its client deleted it" in upload["reason"]) == ("failed", True)
            late = here.patch(location, upload["offset"], DATA[upload["offset"] :])
            assert (late.status_code, "its client deleted it" in late.json()["detail"]) == (410, True)
        assert topics.ends("ratings", visit.client_id) == []
        assert topics.rows("ratings", visit.client_id).num_rows > 0
