"""Full tables, and inputs that nobody has ever read: Kafka has forgotten where we were. Nothing is counted again."""

import pytest
from faust.types import TP

from cauce.errors import ConfigError
from streams.forgotten import refuse_forgotten
from streams.suspects import Label

TPS = [TP(topic, partition) for topic in ("in", "mid") for partition in (0, 1)]
CHANGELOG = [TP("app-counts-changelog", partition) for partition in (0, 1)]


def test_a_new_app_has_empty_tables() -> None:
    refuse_forgotten(TPS, TPS, dict.fromkeys(CHANGELOG, 0))


def test_tables_grow_while_offsets_are_known() -> None:
    refuse_forgotten(TPS, [], dict.fromkeys(CHANGELOG, 7))


def test_one_input_more_than_last_time_is_read_from_its_beginning() -> None:
    refuse_forgotten(TPS, [tp for tp in TPS if tp.topic == "mid"], dict.fromkeys(CHANGELOG, 7))


def test_a_partition_without_any_offset_and_with_a_full_table_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"partition 1: app-counts-changelog has records.*reset-offsets"):
        refuse_forgotten(TPS, [tp for tp in TPS if tp.partition == 1], dict.fromkeys(CHANGELOG, 7))


def test_an_offset_that_somebody_has_set_by_hand_is_known() -> None:
    assert Label.of(0, "").is_of_a_commit
    assert not Label.of(-1001, None).is_of_a_commit
    assert Label.of(3, Label("app.w0").text()) == Label("app.w0")
