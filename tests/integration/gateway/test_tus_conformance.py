"""tus 1.0.0 to the letter: every check of tests/strangers/tus_checks.py against a gateway of ours."""

import pytest

from tests.integration.gateway.replica import Replica
from tests.strangers.tus_checks import CHECKS, Check
from tests.strangers.tus_client import Server
from tests.strangers.tus_conformance import verdict

pytestmark = pytest.mark.kafka

USERS = "user_id,gender,birthdate,registered_at\n" + "".join(f"{n},f,1990-01-01,2023-07-01\n" for n in range(200))


def opened(replica: Replica) -> Server:
    """A session of its own for a check. Users come in a folder, so it may have any number of such files."""
    visit = replica.open(dataset="coffee")
    metadata = [("filename", "users/{n}.csv"), ("kind", "users")]
    return Server(f"{replica.url}{visit.path}/uploads", visit.auth, metadata, USERS.encode())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name.replace(" ", "-"))
def test_a_gateway_keeps_to_the_protocol(shared_replica: Replica, check: Check) -> None:
    server = opened(shared_replica)
    found = verdict(server, server.extensions(), check)
    if found.result == "left out":
        pytest.skip(f"the gateway's Tus-Extension has other names than the check is for: {check.extension}")
    assert found.result == "holds", str(found)
