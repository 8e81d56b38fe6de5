"""Route, folder, events, files: what needs no server."""

import json
import os
import stat
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer_client import notes
from producer_client.errors import Stopped, Unreachable, WrongUsage
from producer_client.events import Event, parse
from producer_client.files import replacing
from producer_client.folder import Choice, FileKind, find, source
from producer_client.gateways import Route, Timing, Trouble, _seconds
from producer_client.progress import Lines

RATINGS = FileKind("ratings", "ratings.csv")


USERS = FileKind("users", "users.csv", is_folder=True)


class Waits:
    """A stop that never comes, and the clock that its waits move on."""

    def __init__(self) -> None:
        self.now, self.waits = 100.0, list[float]()

    def clock(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(round(timeout or 0.0, 6))
        self.now += timeout or 0.0
        return False

    def is_set(self) -> bool:
        return False


def route(waits: Waits, gateways: int = 1, timing: Timing | None = None) -> Route:
    made = Route([f"g{index}" for index in range(gateways)], timing or Timing(), clock=waits.clock, jitter=lambda: 1.0)
    made.stop = waits  # type: ignore[assignment]
    return made


def test_waits_grow_and_shrink_back_with_progress() -> None:
    waits = Waits()
    way = route(waits)
    for _ in range(9):
        way.failed(Trouble("g0", "no"))
    assert waits.waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    way.progressed()
    way.failed(Trouble("g0", "no"))
    assert waits.waits[-1] == 0.1


def test_another_gateway_is_asked_at_once_and_retry_after_is_respected() -> None:
    waits = Waits()
    way = route(waits, gateways=2)
    way.failed(Trouble("g0", "busy", retry_after=7))
    assert (way.gateway, waits.waits) == ("g1", [0.0])
    way.failed(Trouble("g1", "busy", retry_after=3))
    assert (way.gateway, waits.waits[-1]) == ("g1", 3.0)  # g0 asked for more time
    way.failed(Trouble("g1", "busy", retry_after=30))
    assert (way.gateway, waits.waits[-1]) == ("g0", 4.0)


def test_time_without_progress_ends_it() -> None:
    waits = Waits()
    way = route(waits, timing=Timing(give_up=20))

    def fail_often() -> None:
        for _ in range(100):
            way.failed(Trouble("g0", "no"))

    with pytest.raises(Unreachable, match=r"no progress for 20 s with g0; the last trouble was g0: no; see"):
        fail_often()
    assert waits.now == 120.0


def test_a_stop_ends_a_wait() -> None:
    way = Route(["g0"], Timing(first_wait=60, longest_wait=60))
    way.stop.set()
    with pytest.raises(Stopped):
        way.failed(Trouble("g0", "no"))


@pytest.mark.parametrize(("header", "seconds"), [(None, 0), ("3", 3), ("-1", 0), ("soon", 0), ("1.5", 1.5)])
def test_retry_after(header: str | None, seconds: float) -> None:
    assert _seconds(header) == seconds


def test_retry_after_may_be_a_date() -> None:
    assert _seconds("Wed, 21 Oct 2099 07:28:00 GMT") > 1e9


def test_a_date_to_wait_for_is_by_the_clock_of_who_answered() -> None:
    assert _seconds("Wed, 21 Oct 2099 07:28:05 GMT", "Wed, 21 Oct 2099 07:28:00 GMT") == 5
    assert _seconds("Wed, 21 Oct 2099 07:28:00 GMT", "Wed, 21 Oct 2099 07:28:05 GMT") == 0


@given(content=st.binary(min_size=1, max_size=300), offset=st.integers(0, 300), length=st.integers(0, 300))
def test_a_source_reads_like_a_slice(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, offset: int, length: int
) -> None:
    path, content = tmp_path_factory.mktemp("source") / "ratings.csv", b"a,b\n" + content
    path.write_bytes(content)
    whole = source(RATINGS, path)
    assert whole.length == len(content)
    length = max(0, min(length, whole.length - offset))
    assert b"".join(whole.read(offset, length)) == content[offset : offset + length]


def test_the_files_of_a_folder_are_sent_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "ratings").mkdir()
    for month in ("02", "01"):
        (tmp_path / "ratings" / f"{month}.csv").write_bytes(b"a,b\n" + month.encode())
    (tmp_path / "ratings" / "notes.txt").write_bytes(b"no file of ours")
    found = find(tmp_path, [FileKind("ratings", "ratings.csv", is_folder=True)])
    assert [(one.name, b"".join(one.read(0, one.length or 0))) for one in found] == [
        ("ratings/01.csv", b"a,b\n01"),
        ("ratings/02.csv", b"a,b\n02"),
    ]


def test_a_folder_of_one_file_is_enough_and_of_several_is_too_much(tmp_path: Path) -> None:
    (tmp_path / "ratings").mkdir()
    (tmp_path / "ratings" / "any.csv").write_bytes(b"a,b\n1,2\n")
    assert [one.name for one in find(tmp_path, [RATINGS])] == ["ratings.csv"]
    (tmp_path / "ratings" / "other.csv").write_bytes(b"a,b\n3,4\n")
    with pytest.raises(WrongUsage, match="has 2 files, and ratings is one"):
        find(tmp_path, [RATINGS])


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    users = FileKind("users", "users.csv", is_folder=True)
    with pytest.raises(WrongUsage, match=r"no ratings\.csv and no users\.csv; .* users\.csv or a folder of them"):
        find(tmp_path, [RATINGS, users])


def test_an_empty_or_a_shrinking_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.touch()
    with pytest.raises(WrongUsage, match=r"ratings\.csv is empty"):
        find(tmp_path, [RATINGS])
    path.write_bytes(b"a,b\n1,2\n")
    whole = find(tmp_path, [RATINGS])[0]
    path.write_bytes(b"a,b\n")
    with pytest.raises(WrongUsage, match="became shorter"):
        list(whole.read(0, 8))


@given(cuts=st.lists(st.integers(1, 20)), end=st.sampled_from([b"\n", b"\r\n"]))
def test_events_may_be_cut_anywhere(cuts: list[int], end: bytes) -> None:
    lines = [
        b": hi",
        b"",
        b"event: query",
        'data: {"a": "é\u2028"}'.encode(),
        b"",
        b"data:x",
        b"data: y",
        b"id: 4",
        b"",
        b"event: q",
    ]
    body = end.join(lines) + end
    pieces = []
    for cut in cuts:
        pieces.append(body[:cut])
        body = body[cut:]
    expected = [Event(""), Event("query", '{"a": "é\u2028"}'), Event("message", "x\ny")]
    assert list(parse([*pieces, body])) == expected


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "movies-q1.csv"
    path.write_bytes(b"old")
    (tmp_path / ".movies-q1.csv.part").write_bytes(b"left by a crash")

    def write_half() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_bytes() == b"old"
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("movies-q1.csv", b"new")]


def test_a_note_is_private_and_comes_back(tmp_path: Path) -> None:
    note = notes.Note({"client_id": "c", "token": "t"}, ["http://g"], "/data", {"ratings.csv": {"size": 1}})
    assert notes.read(tmp_path) is None
    before = os.umask(0)
    try:
        notes.write(tmp_path, note)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / notes.NAME).stat().st_mode) == 0o600
    assert notes.read(tmp_path) == note
    (tmp_path / notes.NAME).write_text(json.dumps({"client_id": "c"}))
    with pytest.raises(WrongUsage, match="is not what Cauce wrote"):
        notes.read(tmp_path)


def test_plain_lines_tell_rate_and_time_left() -> None:
    now, out = [0.0], StringIO()
    lines = Lines(out, clock=lambda: now[0])
    lines.begin("ratings.csv", 100_000_000)
    lines.at("ratings.csv", 20_000_000)  # resumed there
    for now[0], offset in [(1.0, 25_000_000), (5.0, 60_000_000), (6.0, 70_000_000)]:
        lines.at("ratings.csv", offset)
    lines.trouble("ratings.csv", "http://g: went silent")
    lines.trouble("ratings.csv", "http://g: went silent")
    assert out.getvalue().splitlines() == [
        "ratings.csv 60 %: 60 of 100 MB, 8 MB/s, 5 s left",
        "ratings.csv: http://g: went silent; trying again",
    ]


def test_two_files_of_one_name_are_refused_in_a_folder(tmp_path: Path) -> None:
    paths = [tmp_path / name / "data.csv" for name in "xy"]
    for path in paths:
        path.parent.mkdir()
        path.write_text("id\n1\n")
    sentence = f"{paths[0]} and {paths[1]} would both be users/data.csv in this upload; rename one of them"
    with pytest.raises(WrongUsage) as refused:
        find(tmp_path, [USERS], Choice({"users": paths}))
    assert str(refused.value) == sentence
    with pytest.raises(WrongUsage, match=r"data\.csv was given twice as a file of users; give it once"):
        find(tmp_path, [USERS], Choice({"users": [paths[0], paths[0]]}))
    paths[1] = paths[1].rename(tmp_path / "y" / "other.csv")
    assert [each.name for each in find(tmp_path, [USERS], Choice({"users": paths}))] == [
        "users/data.csv",
        "users/other.csv",
    ]


def test_a_pipe_that_is_given_by_a_path_is_named_with_what_to_do(tmp_path: Path) -> None:
    """Both as the shell's <(zcat …) is, and as mkfifo makes one."""
    named = tmp_path / "ratings.csv"
    os.mkfifo(named)
    reading, writing = os.pipe()
    kept = os.open(named, os.O_RDWR)  # nobody waits for a writer
    try:
        for path in (Path(f"/dev/fd/{reading}"), named):
            with pytest.raises(WrongUsage) as refused:
                source(RATINGS, path)
            advice = "is no regular file, and cannot be read twice; pipe it in with --file ratings=-"
            assert str(refused.value) == f"{path} {advice}"
    finally:
        for descriptor in (reading, writing, kept):
            os.close(descriptor)
