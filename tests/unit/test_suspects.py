"""Who is suspected, who is acquitted, and when a record is set aside."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from faust.types import TP, Message

from cauce.handling import KILLED, Death, Item, read_death
from streams.exactly_once import ExactlyOnceApp
from streams.inbox import Inbox
from streams.options import Options
from streams.suspects import CRASHES, KILLS, Label, Note, Suspects

ROWS = TP("rows", 3)
OWN = "app.w0"
CRASH = Death(frozenset({("rows-3", 7)}), ("rows-3", 7), "Segmentation fault", is_certain=True)
KILL = Death(frozenset({("rows-3", 7)}), ("rows-3", 7), KILLED, is_certain=False)
ELSEWHERE = Death(frozenset(), None, KILLED, is_certain=False)
AMONG_OTHERS = Death(frozenset({("rows-3", 7), ("rows-0", 2)}), None, "Segmentation fault", is_certain=True)


@pytest.fixture(autouse=True)
def _crashes_stay_pytests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cauce.handling.Handling.catch_crashes", lambda self: None)


def record(offset: int) -> Message:
    return Message("rows", 3, offset, 0.0, 0, [], b"", b"", None, tp=ROWS)


class Life:
    """Processes one after the other, each owning the partition; a label is what the last of them has committed."""

    def __init__(self) -> None:
        self.label = Label(OWN)

    def runs(self, death: Death, owner: str = OWN) -> str:
        """A process starts after that death, meets the record at 7 and tries it alone. Why it did not, if so."""
        suspects = Suspects(owner)
        suspects._death = death
        suspects.assigned({ROWS: 5}, {ROWS: self.label})
        assert record(7) in suspects
        assert record(6) not in suspects
        reason = suspects.about_to_run(record(7))
        self.label = Label.read(suspects.label(ROWS))
        return reason


def test_a_record_that_crashes_workers_alone_is_set_aside_after_a_few() -> None:
    life = Life()
    assert life.runs(AMONG_OTHERS) == ""
    assert [life.runs(CRASH) for _ in range(CRASHES - 1)] == [""] * (CRASHES - 1)
    assert life.runs(CRASH) == (
        f"this record ended the worker {CRASHES} times, alone (last: Segmentation fault); it was set aside"
    )


def test_kills_count_less_and_a_death_elsewhere_acquits_of_them() -> None:
    life = Life()
    life.runs(AMONG_OTHERS)
    assert [life.runs(KILL) for _ in range(KILLS - 1)] == [""] * (KILLS - 1)
    assert life.runs(ELSEWHERE) == ""
    assert [life.runs(KILL) for _ in range(KILLS - 1)] == [""] * (KILLS - 1)
    assert KILLED in life.runs(KILL)


def test_the_count_goes_on_with_another_owner() -> None:
    life = Life()
    life.runs(AMONG_OTHERS)
    life.runs(CRASH)
    life.runs(CRASH)
    assert life.runs(ELSEWHERE, owner="app.w1") == "", "why the other one died is not known here"
    assert life.label.note == Note(7, crashes=2, kills=1, is_running=True, last=CRASH.how)
    assert "3 times" in life.runs(CRASH, owner="app.w1")


def test_each_worker_counts_its_own_crash_when_the_partition_comes_back_to_it() -> None:
    """As when a restart takes longer than the session: the partition goes from one to the other and back."""
    life = Life()
    life.runs(AMONG_OTHERS)
    turns = [life.runs(death, owner) for death, owner in ((ELSEWHERE, "app.w1"), (CRASH, OWN), (CRASH, "app.w1"))]
    assert turns == ["", "", ""]
    assert "3 times" in life.runs(CRASH, OWN)


def test_a_record_that_is_passed_is_forgotten() -> None:
    suspects = Suspects(OWN)
    suspects._death = AMONG_OTHERS
    suspects.assigned({ROWS: 5}, {ROWS: Label(OWN, Note(7, crashes=2))})
    suspects.finished(record(7))
    assert not suspects
    assert suspects.label(ROWS) == OWN
    suspects.assigned({ROWS: 8}, {ROWS: Label(OWN, Note(7, crashes=2))})
    assert not suspects, "the commit is past it"


def test_a_death_is_judged_once_however_often_partitions_come_back() -> None:
    suspects = Suspects(OWN)
    suspects._death = CRASH
    noted = {ROWS: Label(OWN, Note(7, is_running=True))}
    for _ in range(2):  # taken from us before anything was committed
        suspects.assigned({ROWS: 5}, noted)
        assert suspects._notes[ROWS].crashes == 1
    noted = {ROWS: Label.read(suspects.label(ROWS))}
    suspects.assigned({ROWS: 5}, noted)
    assert suspects._notes[ROWS].crashes == 1


def test_a_kill_from_outside_suspects_nothing_until_it_hits_the_same_record_twice(tmp_path: Path) -> None:
    for suspected, in_hand in ((set(), (6, 7, 8)), (set(), (7, 9)), ({7}, ())):
        suspects = Suspects(OWN)
        suspects.open(tmp_path)
        suspects.assigned({ROWS: 5}, {ROWS: Label(OWN)})
        assert {offset for offset in range(5, 10) if record(offset) in suspects} == suspected
        for offset in in_hand:
            suspects.begun(record(offset))


def test_a_record_is_in_hand_while_it_is_decoded(tmp_path: Path) -> None:
    """What crashes there has not got to an agent."""

    async def scene() -> None:
        suspects = Suspects(OWN)
        suspects.open(tmp_path)
        inbox = Inbox(suspects, lambda message: None)

        async def decode(message: Message) -> None:
            assert in_hand() == {("rows-3", 7)}
            seen.set()

        async def alone(message: Message) -> None:
            raise AssertionError("nothing is suspected")

        seen = asyncio.Event()
        delivering = asyncio.create_task(inbox.deliver(decode, alone))
        inbox.received([Read("rows", 3, 7)], generation=1)
        await asyncio.wait_for(seen.wait(), 10)
        assert in_hand() == set()
        delivering.cancel()

    def in_hand() -> frozenset[Item]:
        return read_death((tmp_path / "in-hand").read_bytes(), OWN).in_hand

    asyncio.run(scene())


def test_a_record_whose_decoding_raises_is_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what is no error of decoding to Faust: a schema of the app's own raises what it likes."""
    ended: list[BaseException] = []
    options = Options(
        worker_id="w0", data=tmp_path, kafka={"bootstrap.servers": "127.0.0.1:1"}, on_fatal=cast("Any", ended.append)
    )
    app = ExactlyOnceApp("app", options=options)

    async def decode(message: Message) -> None:
        raise ValueError("no such version")

    monkeypatch.setattr(app, "on_message", decode)
    app.engine.suspects.open(tmp_path)
    with pytest.raises(ValueError, match="no such version"):
        asyncio.run(app.engine.hand_over(record(7)))
    after = Suspects(OWN)
    after.open(tmp_path)
    after.assigned({ROWS: 5}, {ROWS: Label(OWN)})
    assert record(7) in after


class Read:
    """A record as the library hands it out."""

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        self._at = topic, partition, offset

    def topic(self) -> str:
        return self._at[0]

    def partition(self) -> int:
        return self._at[1]

    def offset(self) -> int:
        return self._at[2]

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def headers(self) -> None: ...

    def key(self) -> None: ...

    def value(self) -> None: ...


def test_the_processs_own_end_is_its_own_affair(tmp_path: Path) -> None:
    """A worker that ends because Kafka is away suspects nothing; one whose agent raised does."""
    for error, expected in ((None, False), (ValueError("no"), True)):
        suspects = Suspects(OWN)
        suspects.open(tmp_path)
        suspects.begun(record(7))
        if error:
            suspects.blame(error)
        suspects.pardon()
        after = Suspects(OWN)
        after.open(tmp_path)
        after.assigned({ROWS: 5}, {ROWS: Label(OWN)})
        assert (record(7) in after) is expected


@pytest.mark.parametrize("label", [Label(""), Label(OWN), Label(OWN, Note(7, 1, 2, True, 'says "no"'))])
def test_labels_are_read_as_they_were_written(label: Label) -> None:
    assert Label.read(label.text()) == label
