"""Requests that schemathesis makes up from openapi.json: a gateway answers each as the schema says."""

from pathlib import Path

import httpx
import pytest

from infra.processes import wait_until
from tests.integration.gateway.conftest import NewReplica
from tests.integration.gateway.reading import Topics
from tests.integration.gateway.test_page_http import operator
from tests.strangers.schemathesis_run import open_session, run

pytestmark = pytest.mark.kafka


def nothing_is_found(new_replica: NewReplica, topics: Topics, folder: Path, *arguments: str) -> None:
    with new_replica(CAUCE_SESSION_REQUESTS_PER_SECOND="100000", CAUCE_NEW_SESSIONS_PER_SECOND="10000") as replica:
        with httpx.Client(base_url=replica.url) as gateway:
            session = open_session(gateway)
        topics.answer(session["client_id"], "coffee-q1", "year,rows\n2023,", "17\n")
        token = operator(3600)["Authorization"].removeprefix("Bearer ")
        said = run(replica.url, token, session, folder, *arguments)
        assert said.returncode == 0, said.stdout + said.stderr
        wait_until(lambda: replica.page("/livez")[0] == 200, seconds=30, otherwise="the gateway is gone")


def test_a_short_run_finds_nothing(new_replica: NewReplica, topics: Topics, tmp_path: Path) -> None:
    nothing_is_found(
        new_replica, topics, tmp_path, "--seed", "1", "--max-examples", "2", "--phases", "examples,coverage,fuzzing"
    )


@pytest.mark.strangers
def test_a_long_run_finds_nothing(new_replica: NewReplica, topics: Topics, tmp_path: Path) -> None:
    nothing_is_found(new_replica, topics, tmp_path, "--seed", "1", "--max-examples", "100")
