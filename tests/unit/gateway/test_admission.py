"""Which session gives way where all places are taken, and when a newcomer should ask again."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cauce.messages import ClientId, Session
from cauce.settings import Settings
from gateway.admission import Candidates, OpenSession
from gateway.clock import SharedTime
from gateway.follow import Seen
from gateway.problems import Problem
from gateway.sessions import Sessions
from gateway.shared import Shared
from gateway.view import View

NOW = 1_795_000_000.0
YOUNG = 30.0
ENDS = 10_000.0


def opened(name: str, address: str, at: float, is_empty: bool = True) -> OpenSession:
    return OpenSession(ClientId(name), address, at, ENDS, is_empty)


def first(sessions: list[OpenSession], newcomer: str, now: float) -> str | None:
    found = Candidates(sessions, newcomer, YOUNG).first(now)
    return found.client_id if found else None


def test_the_oldest_empty_one_of_the_address_that_has_most_gives_way() -> None:
    office = [opened(f"office {each}", "office", at=each, is_empty=each < 2) for each in range(9)]
    hostile = [opened(f"hostile {each}", "hostile", at=10 + each) for each in range(5)]
    assert first([*office, *hostile], "ada", now=100) == "hostile 0"


def test_one_that_is_young_or_has_an_upload_or_is_of_this_machine_does_not() -> None:
    sessions = [opened("young", "x", at=71), opened("used", "x", at=0, is_empty=False), opened("here", "", at=0)]
    assert first(sessions, "ada", now=100) is None
    assert Candidates(sessions, "ada", YOUNG).better_at() == 101
    assert first(sessions, "ada", now=101) == "young"


def test_whoever_has_most_waits_twice_as_long_for_his_own() -> None:
    hostile = [opened(f"hostile {each}", "hostile", at=each) for each in range(5)]
    assert first(hostile, "hostile", now=59) is None
    assert Candidates(hostile, "hostile", YOUNG).better_at() == 60
    assert first(hostile, "hostile", now=60) == "hostile 0"
    assert first(hostile, "ada", now=30) == "hostile 0"


def test_where_two_have_as_many_neither_takes_from_the_other() -> None:
    sessions = [opened(f"{who} {each}", who, at=0) for who in ("eve", "mallory") for each in range(5)]
    assert first(sessions, "eve", now=59) is None
    assert first(sessions, "ada", now=59) is not None
    assert first(sessions, "", now=59) is not None, "this machine is not counted"


def test_where_clocks_forbid_that_one_gives_way_a_newcomer_is_told_so_and_waits_for_the_first_end() -> None:
    async def refused() -> Problem:
        settings = Settings.load(bootstrap="127.0.0.1:1", max_sessions=2, empty_session_seconds=300)
        clock = SharedTime(lambda: NOW, lambda: 0.0)
        clock.take({0: NOW})
        clock.take({0: NOW - 61})
        view = View(settings, clock.now)
        view._complete = True
        for name, age in (("older", 200), ("old", 100)):
            session = Session(ClientId(name), "movies", {}, NOW - age, NOW + 1000, "office")
            view._apply(Seen("sessions", 0, 0, name, b"", NOW - age), session)
        assert first(view.open_sessions(), "ada", clock.now()) == "older"
        sessions = Sessions(cast("Shared", SimpleNamespace(settings=settings, view=view, clock=clock)))
        sessions._opening = 1
        with pytest.raises(Problem) as caught:
            await sessions._make_room("ada")
        return caught.value

    problem = asyncio.run(refused())
    assert (problem.status, problem.kind) == (503, "busy")
    assert problem.headers["Retry-After"] == str(300 - 200 + 61), "by the shared time, which is behind by 61 s"
    assert "CAUCE_MAX_SESSIONS" in problem.detail
    assert "the brokers' clocks are 61 s behind" in problem.detail


def test_it_gets_better_when_the_first_one_ends_where_none_gives_way() -> None:
    sessions = [OpenSession(ClientId("used"), "x", 0.0, at, is_empty=False) for at in (700.0, 500.0, 600.0)]
    assert Candidates(sessions, "ada", YOUNG).better_at() == 500
    assert Candidates([], "ada", YOUNG).better_at() == 0


sessions_of_anybody = st.lists(
    st.builds(
        opened,
        name=st.uuids().map(str),
        address=st.sampled_from(["", "eve", "mallory", "ada"]),
        at=st.integers(0, 100).map(float),
        is_empty=st.booleans(),
    ),
    min_size=1,
)


@given(sessions=sessions_of_anybody, newcomer=st.sampled_from(["", "ada", "eve", "bob"]), now=st.integers(0, 200))
def test_who_asks_again_at_the_time_that_he_was_told_has_a_place(
    sessions: list[OpenSession], newcomer: str, now: int
) -> None:
    candidates = Candidates(sessions, newcomer, YOUNG)
    if (found := candidates.first(now)) is not None:
        assert found.is_empty
        assert found.address
        assert now - found.idle_since >= YOUNG
        return
    at = candidates.better_at()
    assert at > now
    assert at == ENDS or candidates.first(at) is not None
