"""The time that gateways share, by clocks that are as wrong as a test wants them."""

import time
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cauce.errors import BrokerUnavailable
from gateway.clock import APART_SECONDS, DRIFT, SILENT_SECONDS, TICK_SECONDS, SharedTime, elapsed

NOW = 1_795_000_000.0
HOUR = 3600.0
OFF = [-20 * HOUR, -61.0, 61.0, 20 * HOUR]


@dataclass
class World:
    """A gateway with brokers, and how far each of their clocks is from the truth."""

    brokers: dict[int, float | None] = field(default_factory=lambda: {0: 0.0, 1: 0.0, 2: 0.0})
    own: float = 0.0
    passed: float = 0.0

    def __post_init__(self) -> None:
        self.clock = SharedTime(lambda: NOW + self.passed + self.own, lambda: self.passed)

    def tick(self) -> None:
        self.clock.take({broker: None if off is None else NOW + off for broker, off in self.brokers.items()})

    def run(self, seconds: float) -> None:
        end = self.passed + seconds
        while self.passed < end:
            self.passed = min(end, self.passed + TICK_SECONDS)
            self.tick()

    @property
    def error(self) -> float:
        """Of the shared time."""
        return self.clock.now() - (NOW + self.passed)


def test_nobody_knows_the_time_before_a_broker_has_told_it() -> None:
    world = World()
    with pytest.raises(BrokerUnavailable, match="no broker has told"):
        world.clock.now()
    assert "no broker" in world.clock.why_not_ready()
    assert "no broker" in world.clock.why_not_sweep()
    world.tick()
    assert world.error == 0
    assert (world.clock.trouble(), world.clock.why_not_sweep()) == ("", "")


@pytest.mark.parametrize(("off", "says"), [(3 * HOUR, "10800 s ahead"), (-3 * HOUR, "10800 s behind")])
def test_a_gateway_whose_clock_is_wrong_says_so_ends_nothing_and_goes_by_the_others(off: float, says: str) -> None:
    world = World(own=off)
    world.tick()
    assert says in world.clock.why_not_ready()
    assert says in world.clock.why_not_sweep()
    assert world.error == 0
    world.own = 0
    assert (world.clock.why_not_ready(), world.clock.why_not_sweep()) == ("", "")


def test_a_clock_that_jumps_is_seen_at_once() -> None:
    world = World()
    world.run(60)
    world.own = APART_SECONDS + 1
    assert "ahead" in world.clock.why_not_ready()
    world.own = -APART_SECONDS - 1
    assert "behind" in world.clock.why_not_ready()


@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_one_broker_of_three_that_is_wrong_is_named_and_nobody_sweeps(off: float, wrong: int) -> None:
    world = World()
    world.brokers[wrong] = off
    world.tick()
    assert world.error == 0
    assert world.clock.why_not_ready() == "", "the gateway is right, and there is work to do"
    for said in (world.clock.why_not_sweep(), world.clock.trouble()):
        assert f"broker {wrong} {off:+.0f} s" in said
        assert "no session is swept" in said


def test_of_two_brokers_our_clock_tells_which_one_is_wrong() -> None:
    for off in (-HOUR, HOUR):
        world = World(brokers={0: off, 1: 0.0})
        world.tick()
        assert world.error == 0
        assert world.clock.why_not_ready() == ""
        assert world.clock.why_not_sweep()


def test_brokers_that_jump_ahead_expire_nothing() -> None:
    world = World()
    world.run(HOUR)
    world.brokers = dict.fromkeys(world.brokers, 3 * HOUR)
    world.run(60)
    assert world.error < 1
    assert world.clock.why_not_sweep(), "our clock says something else"
    world.own = 3 * HOUR
    assert world.clock.why_not_ready() == ""
    assert "jumped ahead by 10800 s" in world.clock.trouble()
    assert world.error < 1


def test_brokers_that_fall_back_and_recover_leave_nothing_behind() -> None:
    world = World()
    world.run(60)
    world.brokers = dict.fromkeys(world.brokers, -3 * HOUR)
    world.run(60)
    assert world.error == -3 * HOUR
    assert world.clock.why_not_sweep()
    world.brokers = dict.fromkeys(world.brokers, 0.0)
    world.run(60)
    assert world.error == 0
    assert (world.clock.trouble(), world.clock.why_not_sweep()) == ("", "")


@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize(("wrong", "brokers"), [(1, 1), (2, 2), (2, 3), (3, 3)])
def test_brokers_that_jump_leave_a_gateway_ready_which_says_so(off: float, wrong: int, brokers: int) -> None:
    world = World(brokers=dict.fromkeys(range(brokers), 0.0))
    world.run(60)
    world.brokers |= dict.fromkeys(range(wrong), off)
    world.run(60)
    assert world.clock.why_not_ready() == ""
    for said in (world.clock.trouble(), world.clock.why_not_sweep()):
        assert f"the brokers' clocks are {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} that of this" in said
    assert round(world.clock.off_seconds) == -off
    assert world.error < 1
    world.brokers = dict.fromkeys(world.brokers, 0.0)
    world.run(60)
    assert (world.clock.trouble(), world.clock.why_not_sweep()) == ("", "")


@pytest.mark.parametrize("off", OFF)
def test_a_gateway_whose_own_clock_jumps_is_to_blame_whatever_the_brokers_have_done(off: float) -> None:
    for before in (-HOUR, 30.0, -30.0, HOUR):
        world = World()
        world.run(60)
        world.brokers = dict.fromkeys(world.brokers, before)
        world.run(60)
        assert world.clock.why_not_ready() == ""
        world.own = 2 * off
        assert world.clock.why_not_ready().startswith("the clock of this machine is"), (before, off)
        world.run(60)
        assert world.clock.why_not_ready(), "it does not come to be right by waiting"
        world.own = before
        world.tick()
        assert world.clock.why_not_sweep() == "", "both are wrong alike: nobody can tell"


def test_a_clock_that_creeps_away_from_the_brokers_leaves_the_gateway_ready() -> None:
    """A quartz that nobody sets right: whose it is cannot be told, and brokers must not stop all gateways."""
    world = World()
    for _ in range(8 * 24 * 60):
        world.passed += 60
        world.brokers = dict.fromkeys(world.brokers, world.passed * 1e-4)
        world.tick()
        assert world.clock.why_not_ready() == ""
    assert "that of this machine, which nothing shows to be wrong" in world.clock.trouble()
    assert world.clock.why_not_sweep()


@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize(("wrong", "brokers", "is_ready"), [(1, 1, False), (3, 3, False), (2, 3, True), (1, 2, True)])
def test_a_gateway_that_starts_is_ready_where_one_broker_agrees_with_it(
    off: float, wrong: int, brokers: int, is_ready: bool
) -> None:
    """One that is alone against all is the wrong one, as far as anybody can tell."""
    world = World(brokers={broker: off if broker < wrong else 0.0 for broker in range(brokers)})
    world.tick()
    assert bool(world.clock.why_not_ready()) is not is_ready
    assert world.clock.trouble()
    assert world.clock.why_not_sweep()
    world.brokers = dict.fromkeys(world.brokers, 0.0)
    world.tick()
    assert world.clock.why_not_ready() == ""


@pytest.mark.parametrize("off", [-3 * HOUR, 3 * HOUR])
def test_a_wrong_broker_that_answers_first_alone_bounds_nobody(off: float) -> None:
    world = World(brokers={0: off, 1: None, 2: None})
    world.run(30)
    assert world.error == off, "it is all that is known"
    world.brokers = {0: off, 1: 0.0, 2: 0.0}
    world.run(30)
    assert world.error == 0
    world.brokers = {0: 3 * HOUR, 1: None, 2: None}
    world.run(30)
    assert world.error < 1, "most have had their say, and it holds"


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no clock that counts while it sleeps")
def test_a_night_in_which_the_machine_slept_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = 0.0
    wall, gettime = time.time, time.clock_gettime
    monkeypatch.setattr(time, "time", lambda: wall() + slept)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: gettime(clock) + (clock == time.CLOCK_BOOTTIME) * slept)
    clock = SharedTime(time.time)
    clock.take({0: time.time() - elapsed()})
    before = clock.now()
    slept = 8 * HOUR
    assert clock.now() - before == pytest.approx(slept, abs=5)
    assert clock.why_not_ready() == ""
    assert "no broker has told the time for 288" in clock.why_not_sweep()


def test_a_slow_quartz_is_followed_for_days() -> None:
    """100 seconds in a million, which is a bad one: without it the gateway were a minute behind in a week."""
    world = World()
    for _ in range(7 * 24 * 60):
        world.passed += 60
        world.own = world.passed * 1e-4
        world.brokers = dict.fromkeys(world.brokers, world.own)
        world.tick()
    assert world.error == pytest.approx(world.own, abs=0.1)
    assert world.clock.trouble() == ""


def test_without_ticks_time_goes_on_and_nothing_is_swept() -> None:
    world = World()
    world.tick()
    world.passed = SILENT_SECONDS
    world.clock.take({})
    assert world.clock.why_not_sweep() == ""
    world.passed += 1
    assert "no broker has told the time for 61 s" in world.clock.why_not_sweep()
    assert world.error == 0
    assert world.clock.why_not_ready() == ""


@given(jumps=st.lists(st.tuples(st.floats(0, HOUR), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), max_size=20))
def test_it_never_gets_ahead_of_what_has_passed_whatever_the_clocks_do(
    jumps: list[tuple[float, float, float]],
) -> None:
    world = World()
    world.tick()
    for seconds, broker, own in jumps:
        world.passed += seconds
        world.brokers, world.own = dict.fromkeys(world.brokers, broker), own
        world.tick()
        assert world.error <= DRIFT * world.passed + 1e-3
