"""Which session gives way where all places are taken, and when a newcomer should ask again."""

from hypothesis import given
from hypothesis import strategies as st

from cauce.messages import ClientId
from gateway.admission import Candidates, OpenSession

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
