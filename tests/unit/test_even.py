"""Two workers must never own the same partition of a table; where topics were shared out unevenly, they would."""

import pytest
from faust.types import TP

from streams.even import Uneven, refuse_uneven

COUNTS = {"rows": 4, "users": 4}


def given(**partitions: list[int]) -> list[TP]:
    return [TP(topic, number) for topic, numbers in partitions.items() for number in numbers]


def test_the_same_partitions_of_every_topic_are_fine() -> None:
    refuse_uneven(given(rows=[0, 1], users=[0, 1]), COUNTS)
    refuse_uneven([], COUNTS)


def test_topics_of_other_sizes_are_shared_out_by_themselves() -> None:
    refuse_uneven(given(rows=[0, 1], users=[0, 1], small=[0]), {**COUNTS, "small": 1})


@pytest.mark.parametrize("tps", [given(rows=[0, 1, 2, 3], users=[0, 1]), given(users=[2, 3])], ids=["more", "none"])
def test_a_topic_that_some_member_did_not_know_is_noticed_by_all(tps: list[TP]) -> None:
    with pytest.raises(Uneven, match="did not know all topics"):
        refuse_uneven(tps, COUNTS)


def test_a_topic_that_only_a_former_self_has_asked_for_is_not_taken() -> None:
    with pytest.raises(Uneven, match="which we do not read"):
        refuse_uneven(given(rows=[0, 1], users=[0, 1], more=[0, 1]), COUNTS)
