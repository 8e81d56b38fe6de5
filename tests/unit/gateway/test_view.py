"""What a replica knows does not depend on the order in which it reads the topics, which no start has in common."""

import asyncio
import itertools
import time

import pytest

from cauce.messages import Answer, ClientId, Session, Upload, UploadId
from cauce.settings import Settings
from gateway.follow import Seen
from gateway.uploads import SIGN_OF_LIFE
from gateway.view import Client, Message, View

ADA = ClientId("ada")
NOW = time.time()
RECORDS: list[tuple[str, Message]] = [
    ("sessions", Session(ADA, "movies", {}, NOW, NOW + 3600)),
    ("uploads", Upload(ADA, UploadId("ratings"), "ratings", "ratings.csv", 10, offset=10)),
    ("answers", Answer(ADA, "ratings", "counted", batches=1, rows=7)),
    ("answers", Answer(ADA, "movies-q3", "done", size=4)),
]


async def read(records: list[tuple[str, Message]]) -> Client | None:
    view = View(Settings.load(bootstrap="127.0.0.1:1"), lambda: NOW)
    for offset, (topic, message) in enumerate(records):
        key = f"{ADA}/{message.upload_id}" if isinstance(message, Upload) else ADA
        view._apply(Seen(topic, 0, offset, key, b"", NOW), message)
    return view.client(ADA)


@pytest.mark.parametrize("order", list(itertools.permutations(range(len(RECORDS)))))
def test_all_of_a_session_is_known_whatever_is_read_first(order: tuple[int, ...]) -> None:
    client = asyncio.run(read([RECORDS[place] for place in order]))
    assert client is not None
    assert client.session is not None
    assert set(client.uploads) == {"ratings"}
    assert client.folded == {"ratings": (1, 7)}
    assert client.answers["movies-q3"].whole


def test_an_empty_session_ends_soon_and_one_with_an_upload_does_not() -> None:
    async def ends(records: list[tuple[str, Message]], complete: bool) -> float:
        view = View(
            Settings.load(bootstrap="127.0.0.1:1", session_ttl_seconds=3600, empty_session_seconds=300), lambda: NOW
        )
        view._complete = complete
        for offset, (topic, message) in enumerate(records):
            key = f"{ADA}/{message.upload_id}" if isinstance(message, Upload) else ADA
            view._apply(Seen(topic, 0, offset, key, b"", NOW), message)
        (session,) = view.open_sessions()
        assert session.is_empty == (len(records) == 1 and complete)
        return session.expires_at

    assert asyncio.run(ends(RECORDS[:1], complete=True)) == NOW + 300
    assert asyncio.run(ends(RECORDS[:2], complete=True)) == NOW + 3600
    # A gateway that starts has read the session, and perhaps not yet its uploads.
    assert asyncio.run(ends(RECORDS[:1], complete=False)) == NOW + 3600


def test_a_tombstone_of_no_upload_renews_an_empty_session_and_brings_none_back() -> None:
    async def read_late(session: Session | None) -> list[float]:
        view = View(Settings.load(bootstrap="127.0.0.1:1", empty_session_seconds=300), lambda: NOW)
        view._complete = True
        if session is not None:
            view._apply(Seen("sessions", 0, 0, ADA, b"", NOW), session)
        view._apply(Seen("uploads", 0, 0, f"{ADA}/{SIGN_OF_LIFE}", None, NOW + 200), None)
        assert len(view._clients) == (session is not None)
        return [each.idle_since for each in view.open_sessions()]

    session = RECORDS[0][1]
    assert isinstance(session, Session)
    assert asyncio.run(read_late(session)) == [NOW + 200]
    assert asyncio.run(read_late(None)) == []


def test_nothing_is_kept_of_a_session_that_has_ended() -> None:
    async def ended() -> dict[ClientId, Client]:
        view = View(Settings.load(bootstrap="127.0.0.1:1"), lambda: NOW)
        view._complete = True
        view._apply(Seen("answers", 0, 0, ADA, b"", NOW), RECORDS[2][1])
        view._drop_strays()
        return view._clients

    assert asyncio.run(ended()) == {}
