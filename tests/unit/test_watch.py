"""A stall is told from an end, a pause, slow work and a trickle; and a second try comes before the verdict."""

from faust.types import TP

from streams.watch import SILENT_POLLS, Verdict, Watch

A, B = TP("rows", 0), TP("rows", 1)
LONG = SILENT_POLLS
FINE = Verdict()


def test_a_partition_that_stands_still_is_asked_for_again_and_then_stalled() -> None:
    watch = Watch()
    assert watch.look({A: 5, B: 7}, 0, {A: 9, B: 7}) == FINE
    assert watch.look({A: 5, B: 7}, LONG - 1, {A: 9, B: 7}) == FINE
    assert watch.look({A: 5, B: 7}, LONG, {A: 9, B: 7}) == Verdict(ask_again=[A])
    assert watch.look({A: 5, B: 7}, 2 * LONG - 1, {A: 9, B: 7}) == FINE
    assert watch.look({A: 5, B: 7}, 2 * LONG, {A: 9, B: 7}) == Verdict(stalled=[A])


def test_asking_again_may_help() -> None:
    watch = Watch()
    watch.look({A: 8}, 0, {A: 9})
    assert watch.look({A: 8}, LONG, {A: 9}) == Verdict(ask_again=[A])
    assert watch.look({A: 9}, 2 * LONG, {A: 9}) == FINE
    watch.look({A: 9}, 3 * LONG, {A: 10})
    assert watch.look({A: 9}, 4 * LONG, {A: 10}) == Verdict(ask_again=[A])  # another time, from the start


def test_a_partition_read_to_its_end_is_fine() -> None:
    watch = Watch()
    for silent in range(0, 3 * LONG, 20):
        assert watch.look({A: 9}, silent, {A: 9}) == FINE


def test_time_counts_from_when_there_was_more_to_read() -> None:
    watch = Watch()
    watch.look({A: 9}, 0, {A: 9})
    assert watch.look({A: 9}, LONG, {A: 10}) == FINE
    assert watch.look({A: 9}, 2 * LONG, {A: 10}) == Verdict(ask_again=[A])


def test_whoever_moves_is_fine() -> None:
    watch = Watch()
    for step, silent in enumerate(range(0, 10 * LONG, LONG)):
        assert watch.look({A: step}, silent, {A: 100}) == FINE


def test_while_others_keep_the_consumer_busy_nothing_is_said() -> None:
    watch = Watch()
    for _ in range(100):
        assert watch.look({A: 5}, 0, {A: 9}) == FINE


def test_being_held_back_starts_the_count_anew() -> None:
    watch = Watch()
    watch.look({A: 5}, 0, {A: 9})
    watch.look({}, LONG - 1, {A: 9})
    assert watch.look({A: 5}, LONG + 1, {A: 9}) == FINE


def test_a_new_assignment_starts_the_count_anew() -> None:
    watch = Watch()
    watch.look({A: 5}, 0, {A: 9})
    watch.forget()
    assert watch.look({A: 5}, LONG, {A: 9}) == FINE
