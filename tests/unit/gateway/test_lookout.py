"""A partition is stalled while records wait behind an offset that does not move."""

from gateway.lookout import STALL_SECONDS, Stall, Stalls

PLACE = ("ratings", 3)


def test_a_partition_that_is_stable_to_its_end_is_not_stalled() -> None:
    stalls = Stalls()
    for now in (0.0, STALL_SECONDS, 10 * STALL_SECONDS):
        assert stalls.look({PLACE: 7}, {PLACE: 7}, now) == ()


def test_an_open_transaction_is_a_stall_once_it_has_lasted() -> None:
    stalls = Stalls()
    assert stalls.look({PLACE: 7}, {PLACE: 9}, 100.0) == ()
    assert stalls.look({PLACE: 7}, {PLACE: 9}, 99.0 + STALL_SECONDS) == ()
    assert stalls.look({PLACE: 7}, {PLACE: 12}, 101.0 + STALL_SECONDS) == (Stall(*PLACE, 7, 12, STALL_SECONDS + 1),)


def test_an_offset_that_moves_is_no_stall_however_much_waits_behind_it() -> None:
    stalls = Stalls()
    for step in range(5):
        assert stalls.look({PLACE: step}, {PLACE: 100}, step * STALL_SECONDS) == ()


def test_a_stall_that_ended_counts_anew() -> None:
    stalls = Stalls()
    stalls.look({PLACE: 7}, {PLACE: 9}, 0.0)
    assert stalls.look({PLACE: 9}, {PLACE: 9}, STALL_SECONDS) == ()
    assert stalls.look({PLACE: 9}, {PLACE: 10}, STALL_SECONDS + 1) == ()
    assert stalls.look({PLACE: 9}, {PLACE: 10}, 2 * STALL_SECONDS) == ()
    assert len(stalls.look({PLACE: 9}, {PLACE: 10}, 2 * STALL_SECONDS + 1)) == 1


def test_what_the_end_is_not_known_of_is_not_told() -> None:
    stalls = Stalls()
    stalls.look({PLACE: 7}, {}, 0.0)
    assert stalls.look({PLACE: 7}, {}, 2 * STALL_SECONDS) == ()
