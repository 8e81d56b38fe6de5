"""Topics are declared once, and each declaration is one that Kafka takes."""

import re

from cauce.topics import FOREVER_MS, SESSIONS, TOMBSTONES_MS, TOPICS, UPLOADS
from tables.store import STALE_SECONDS


def test_every_topic_has_a_name_of_its_own_that_kafka_takes() -> None:
    names = [topic.name for topic in TOPICS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9._-]{1,200}", name) for name in names)


def test_every_topic_says_what_it_is_for() -> None:
    assert all(topic.key and topic.holds for topic in TOPICS)


def test_changelogs_and_the_state_of_clients_are_compacted_and_kept_and_the_rest_expires() -> None:
    for topic in TOPICS:
        kept = topic.name.endswith("-changelog") or topic in (SESSIONS, UPLOADS)
        assert topic.compacted is kept
        assert (topic.retention_ms == FOREVER_MS) is kept
        assert topic.config()["cleanup.policy"] == ("compact" if kept else "delete")


def test_a_store_is_restored_anew_before_its_changelog_may_have_forgotten_a_delete() -> None:
    assert STALE_SECONDS * 1000 * 2 <= TOMBSTONES_MS
