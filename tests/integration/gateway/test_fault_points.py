"""A gateway dies at each point of an upload's transaction; another goes on, and every row is there once."""

import signal
import sys
import time

import httpx
import pytest

from gateway.publish import TRANSACTION_TIMEOUT_MS
from tests.harness.faulty_gateway import POINTS, Point
from tests.integration.gateway.conftest import PARTITIONS, NewReplica
from tests.integration.gateway.reading import Topics, expected, ratings, same_rows

pytestmark = [pytest.mark.kafka, pytest.mark.kill]

DATA = ratings(4_000)
PIECE = len(DATA) // 4
NTH = 3  # the first one creates the upload, the second is the first piece


@pytest.mark.parametrize("at", POINTS)
def test_a_gateway_killed_inside_its_transaction_leaves_all_of_it_or_nothing(
    at: Point, new_replica: NewReplica, topics: Topics
) -> None:
    faulty, other = new_replica(KILL_AT=at, KILL_NTH=str(NTH)), new_replica()
    faulty._command = [sys.executable, "-m", "tests.harness.faulty_gateway"]
    with faulty, other:
        visit = faulty.open()
        location = visit.create("ratings.csv", len(DATA))
        assert visit.patch(location, 0, DATA[:PIECE]).status_code == 204
        with pytest.raises(httpx.TransportError):
            visit.patch(location, PIECE, DATA[PIECE : 2 * PIECE])
        assert faulty.wait_for_end() == -signal.SIGKILL
        elsewhere = visit.at(other)
        asked = time.monotonic()
        reached = elsewhere.offset(location)
        assert time.monotonic() - asked < TRANSACTION_TIMEOUT_MS / 1000, "it waited for the dead one's transaction"
        assert reached == (2 * PIECE if at == "committed" else PIECE)
        answer = elsewhere.patch(location, reached, DATA[reached:])
        assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, str(len(DATA)))
        assert same_rows(topics.rows("ratings", visit.client_id), expected("ratings", DATA))
        assert len(topics.ends("ratings", visit.client_id)) == PARTITIONS
