"""What the page asks a gateway for: datasets, tickets, the operator's view; and who may."""

import time
from typing import Any

import httpx
import pytest

from cauce.tokens import OPERATOR, Tokens
from infra.processes import wait_until
from tests.integration.gateway.conftest import NewReplica
from tests.integration.gateway.replica import SECRET, Replica
from tests.integration.gateway.test_refusals_http import problem

pytestmark = pytest.mark.kafka

OTHER = "http://127.0.0.1:9"
APP = "https://app.example"


def operator(seconds: float = 60) -> dict[str, str]:
    token = Tokens(SECRET.encode()).issue(OPERATOR, time.time() + seconds)
    return {"Authorization": f"Bearer {token}"}


def test_the_page_is_at_the_root_and_datasets_say_what_it_needs(shared_replica: Replica) -> None:
    page = httpx.get(shared_replica.url)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    known = httpx.get(f"{shared_replica.url}/datasets").json()
    assert [dataset["name"] for dataset in known["datasets"]] == ["movies", "flights", "coffee"]
    assert known["datasets"][0]["queries"][1] == {
        "query": "movies-q2", "header": ["country", "budget"], "files": ["movies"],
    }  # fmt: skip


def test_a_ticket_opens_one_answer_of_one_session(shared_replica: Replica) -> None:
    visit, other = shared_replica.open(), shared_replica.open()
    href = visit.ask("POST", "answers/movies-q1/ticket").json()["href"]
    url = shared_replica.url
    assert httpx.get(url + href).json()["type"] == "/docs#not-ready"  # let in, and there is no answer yet
    assert httpx.get(url + href.replace("movies-q1", "movies-q2", 1)).status_code == 403
    assert httpx.get(url + href.replace(visit.client_id, other.client_id, 1)).status_code == 403
    assert httpx.get(url + href[:-1] + ("0" if href[-1] != "0" else "1")).status_code == 401
    ticket = href.rpartition("=")[2]
    as_token = httpx.get(f"{url}/sessions/{visit.client_id}", headers={"Authorization": f"Bearer {ticket}"})
    assert as_token.status_code == 403
    assert other.ask("POST", f"/sessions/{visit.client_id}/answers/movies-q1/ticket").status_code == 403
    assert visit.ask("POST", "answers/movies-q9/ticket").status_code == 404


@pytest.mark.parametrize("path", ["/operator", "/operator/events"])
def test_the_cluster_is_shown_to_the_operator_only(shared_replica: Replica, path: str) -> None:
    url = shared_replica.url + path
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, headers=operator(-1)).status_code == 401
    assert httpx.get(url, headers=shared_replica.open().auth).status_code == 403
    with httpx.stream("GET", url, headers=operator()) as shown:
        assert shown.status_code == 200


def test_without_supervisors_the_operator_sees_kafka_and_sessions_and_why_there_is_no_more(
    shared_replica: Replica,
) -> None:
    def shown() -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{shared_replica.url}/operator", headers=operator()).json()
        return found

    visit = shared_replica.open()
    wait_until(  # what is shown may be half a second old, and the session is read from Kafka
        lambda: visit.client_id in [session["client_id"] for session in shown()["sessions"]],
        seconds=60,
        otherwise="the operator does not see a session that is open",
    )
    assert shown()["cluster"] is None
    assert "CAUCE_SUPERVISORS" in shown()["why_no_cluster"]
    assert shown()["kafka"]["stalls"] == []


def test_a_supervisor_that_does_not_answer_is_named(new_replica: NewReplica) -> None:
    with new_replica(CAUCE_SUPERVISORS=f'["{OTHER}"]') as replica:
        shown = httpx.get(f"{replica.url}/operator", headers=operator()).json()
    assert shown["cluster"] is None
    assert OTHER in shown["why_no_cluster"]


def test_only_pages_of_known_gateways_and_named_origins_may_ask_from_elsewhere(new_replica: NewReplica) -> None:
    wish = {"Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "authorization,upload-offset"}
    with new_replica(CAUCE_GATEWAYS=f'["{OTHER}"]', CAUCE_CORS_ORIGINS=f'["{APP}"]') as replica:
        uploads = f"{replica.url}/sessions/x/uploads/ratings"
        for origin in (OTHER, APP):
            let_in = httpx.options(uploads, headers={**wish, "Origin": origin})
            assert (let_in.status_code, let_in.headers["access-control-allow-origin"]) == (200, origin)
        kept_out = httpx.options(uploads, headers={**wish, "Origin": "http://evil.example"})
        assert "access-control-allow-origin" not in kept_out.headers
        assert "CAUCE_CORS_ORIGINS" in problem(kept_out, 403, "origin")["detail"]
        told = httpx.get(f"{replica.url}/datasets", headers={"Origin": OTHER})
        assert "Upload-Offset" in told.headers["access-control-expose-headers"]
