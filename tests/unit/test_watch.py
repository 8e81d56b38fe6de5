"""A stall is told from an end, a pause, slow work and a trickle."""

from faust.types import TP

from streams.watch import SILENT_POLLS, Watch

A, B = TP("rows", 0), TP("rows", 1)
LONG = SILENT_POLLS


def test_a_partition_that_stands_still_through_a_long_silence_is_stalled() -> None:
    watch = Watch()
    assert watch.stalled({A: 5, B: 7}, 0, {A: 9, B: 7}) == []
    assert watch.stalled({A: 5, B: 7}, LONG - 1, {A: 9, B: 7}) == []
    assert watch.stalled({A: 5, B: 7}, LONG, {A: 9, B: 7}) == [A]


def test_a_partition_read_to_its_end_is_not() -> None:
    watch = Watch()
    for silent in range(0, 3 * LONG, 20):
        assert watch.stalled({A: 9}, silent, {A: 9}) == []


def test_time_counts_from_when_there_was_more_to_read() -> None:
    watch = Watch()
    watch.stalled({A: 9}, 0, {A: 9})
    assert watch.stalled({A: 9}, LONG, {A: 10}) == []
    assert watch.stalled({A: 9}, 2 * LONG, {A: 10}) == [A]


def test_whoever_moves_is_not_stalled() -> None:
    watch = Watch()
    for step, silent in enumerate(range(0, 10 * LONG, LONG)):
        assert watch.stalled({A: step}, silent, {A: 100}) == []


def test_while_others_keep_the_consumer_busy_nothing_is_said() -> None:
    watch = Watch()
    for _ in range(100):
        assert watch.stalled({A: 5}, 0, {A: 9}) == []


def test_being_held_back_starts_the_count_anew() -> None:
    watch = Watch()
    watch.stalled({A: 5}, 0, {A: 9})
    watch.stalled({}, LONG - 1, {A: 9})
    assert watch.stalled({A: 5}, LONG + 1, {A: 9}) == []


def test_a_new_assignment_starts_the_count_anew() -> None:
    watch = Watch()
    watch.stalled({A: 5}, 0, {A: 9})
    watch.forget()
    assert watch.stalled({A: 5}, LONG, {A: 9}) == []
