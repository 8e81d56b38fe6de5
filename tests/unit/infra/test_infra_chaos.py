"""What `cauce chaos` and `cauce soak` are told, and how they say how it went."""

from datetime import time
from pathlib import Path

import pytest

from cauce.errors import ConfigError
from infra.chaos import Blow, Chaos, Window, parse_roles, parse_seconds, parse_signals
from infra.clients import Client
from infra.clients import Wish as Clients
from infra.leftovers import Left
from infra.processes import Process
from infra.soak import Outcome, Wish


def test_roles_and_signals_are_said_as_people_say_them() -> None:
    assert parse_roles("workers, brokers") == ["worker", "broker"]
    assert parse_signals("sigkill,STOP") == ["KILL", "STOP"]
    with pytest.raises(ConfigError, match="there are no clients to kill"):
        parse_roles("clients")
    with pytest.raises(ConfigError, match="no signal HUP"):
        parse_signals("HUP")


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200)])
def test_times(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-1s", "0", "nan", "inf", "1e999", "1 hour"])
def test_what_is_no_time_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="is no time"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("window", "moment", "inside"),
    [("09:00-17:00", time(9), True), ("09:00-17:00", time(17), False), ("22:00-06:00", time(23), True),
     ("22:00-06:00", time(5, 59), True), ("22:00-06:00", time(12), False)],
)  # fmt: skip
def test_a_window_of_the_day(window: str, moment: time, inside: bool) -> None:
    assert Window.parse(window).has(moment) is inside


@pytest.mark.parametrize("text", ["9 to 5", "09:00", "09:00-25:00"])
def test_what_is_no_window_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="no window of the day"):
        Window.parse(text)


def test_without_a_cluster_chaos_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cauce up --detach"):
        Chaos(tmp_path, print).targets()


def test_sizes_of_clients_files_are_spread_and_repeatable() -> None:
    wish = Clients("all", None, None, 0, (200, 20_000), True)
    sizes = [wish.rows_of(number) for number in range(200)]
    assert sizes == [wish.rows_of(number) for number in range(200)]
    assert all(200 <= size <= 20_000 for size in sizes)
    assert 60 < sum(size < 2_000 for size in sizes) < 140


def client(code: int, differences: tuple[str, ...] | None = ()) -> Client:
    return Client(0, "movies", "", Process(1, "never"), 0.0, code, 1.0, differences)


CLEAN = Left({}, 0, {"sessions": 0}, 0)
BACK = Blow("", "worker", 0, 1, "KILL", 1.0, 2.0)


@pytest.mark.parametrize(
    ("ended", "blows", "left", "processes", "is_right"),
    [
        ([client(0)], [BACK], CLEAN, 0, True),
        ([client(0), client(-9, None)], [BACK], CLEAN, 0, True),  # killed by us
        ([], [BACK], CLEAN, 0, False),  # nothing was tried
        ([client(0, ("movies-q1 differs",))], [BACK], CLEAN, 0, False),
        ([client(1, None)], [BACK], CLEAN, 0, False),
        ([client(0)], [Blow("", "worker", 0, 1, "KILL", is_lost=True)], CLEAN, 0, False),
        ([client(0)], [BACK], Left({}, 0, {"sessions": 1}, 0), 0, False),
        ([client(0)], [BACK], Left({}, 0, {}, 1), 0, False),
        ([client(0)], [BACK], CLEAN, 1, False),
    ],
)
def test_a_soak_is_right_only_if_nothing_is_wrong_or_left(
    ended: list[Client], blows: list[Blow], left: Left, processes: int, is_right: bool
) -> None:
    outcome = Outcome(Wish(1, 1, 1, ["worker"]), ended, blows, left, processes)
    assert outcome.is_right is is_right
    assert outcome.as_json()["is_right"] is is_right
    assert "wrong answers" in "\n".join(outcome.lines())
