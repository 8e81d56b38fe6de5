"""The Python API against gateways that break: the answers never depend on it."""

import hashlib
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from producer_client import BadFile, Client, QueryFailed, Refused, SessionGone, Unreachable, WrongUsage
from producer_client.api import Silent
from producer_client.errors import Stopped
from producer_client.folder import FileKind, find
from producer_client.gateways import Gateways, Timing
from producer_client.transfer import Transfer
from tests.unit.client.fake_gateway import FakeCluster, Gateway


def urls(pair: list[Gateway]) -> list[str]:
    return [gateway.url for gateway in pair]


def expected_q3(movies: Path) -> str:
    lines = []
    for kind, name in [("movies", "movies_metadata.csv"), ("ratings", "ratings.csv")]:
        content = (movies / name).read_bytes()
        lines.append(f"{kind},{len(content)},{hashlib.sha256(content).hexdigest()}\n")
    return "kind,bytes,sha256\n" + "".join(lines)


def q3_of(client: Client, movies: Path, into: Path) -> str:
    """Upload everything, give the one answer that depends on the big file."""
    with client.open("movies") as session:
        session.upload(movies)
        answers = dict(session.answers(into))
        assert sorted(answers) == sorted(session.queries)
        return answers["movies-q3"].read_text()


def test_all_is_well(pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing, tmp_path: Path) -> None:
    with Client(urls(pair), timing=quick) as client:
        assert q3_of(client, movies, tmp_path) == expected_q3(movies)
    assert cluster.count("PATCH") == 3  # one a file: no tiny requests
    assert not cluster.sessions  # the context manager deleted it


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a/b", "..", "", "a\\b", "x" * 81])
def test_a_gateway_cannot_choose_another_folder_by_the_name_of_a_query(
    pair: list[Gateway], quick: Timing, name: str
) -> None:
    with Client(urls(pair), timing=quick) as client, client.open("movies") as session:
        ticket = {**session.ticket, "queries": [*session.queries, name]}
        with pytest.raises(Refused, match="is it a Cauce gateway"):
            client.resume(ticket)


def test_answers_are_data_frames(pair: list[Gateway], movies: Path, quick: Timing) -> None:
    with Client(urls(pair), timing=quick) as client, client.open("movies", scope="all") as session:
        session.upload(movies)
        frame = session.answer("movies-q3")
        assert list(frame.columns) == ["kind", "bytes", "sha256"]
        assert frame["bytes"].sum() == sum(
            (movies / name).stat().st_size for name in ["movies_metadata.csv", "ratings.csv"]
        )
        assert {query for query, _ in session.answers()} == set(session.queries)
        assert session.options["scope"] == "all"


@pytest.mark.parametrize("drops", [[1], [0, 0, 0], [65_537, 999_983, 1], [3_000_030]])
def test_goes_on_at_odd_offsets(
    drops: list[int], pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing, tmp_path: Path
) -> None:
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        pair[0].drops = list(drops)
        session.upload_file(movies / "ratings.csv")
        assert not pair[0].drops  # the faults did happen
        assert cluster.count("PATCH") > len(drops)
        session.upload_file(movies / "movies_metadata.csv")
        session.upload_file(movies / "credits.csv")
        answers = dict(session.answers(tmp_path))
    assert answers["movies-q3"].read_text() == expected_q3(movies)


@pytest.mark.parametrize("status", [409, 423, 429, 500, 502, 503])
def test_asks_for_the_offset_and_goes_on_after(
    status: int, pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing, tmp_path: Path
) -> None:
    for gateway in pair:
        gateway.statuses = [("PATCH", status, {})]
    with Client(urls(pair), timing=quick) as client:
        assert q3_of(client, movies, tmp_path) == expected_q3(movies)
    assert not any(gateway.statuses for gateway in pair)


def test_a_gateway_dies_in_the_middle_of_a_file(
    pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing, tmp_path: Path
) -> None:
    cluster.hold_at = 1_500_001

    def kill_the_first() -> None:
        assert cluster.held.wait(20)
        pair[0].stop()
        cluster.release.set()

    with Client(urls(pair), timing=quick) as client, client.open("movies") as session:
        killer = threading.Thread(target=kill_the_first)
        killer.start()
        session.upload_file(movies / "ratings.csv")
        killer.join()
        state = session.state()
        [upload], [kind] = state.uploads, state.files
        assert (upload.state, upload.offset) == ("complete", (movies / "ratings.csv").stat().st_size)
        assert (upload.unused, kind.unused) == (12, 12)
        session.upload_file(movies / "movies_metadata.csv")
        session.upload_file(movies / "credits.csv")
        answers = dict(session.answers(tmp_path))
        assert answers["movies-q3"].read_text() == expected_q3(movies)
        assert session.gateways_used == (pair[0].url, pair[1].url)


def test_after_a_failure_little_is_sent_until_it_works_again(
    pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing
) -> None:
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        pair[0].statuses = [("PATCH", 503, {})]
        session.upload_file(movies / "ratings.csv")
    length = (movies / "ratings.csv").stat().st_size
    assert cluster.patches == [2**20, length - 2**20]


def test_a_stop_cuts_a_request_short(pair: list[Gateway], movies: Path, quick: Timing) -> None:
    gateways, [ratings] = Gateways(urls(pair), quick), find(movies, [FileKind("ratings", "ratings.csv")])
    route = gateways.route()
    assert ratings.length
    body = Transfer(gateways, "/uploads", {}, ratings, route, route, Silent())._body(0, ratings.length)
    assert len(next(body)) == 2**20
    route.stop.set()
    with pytest.raises(Stopped):
        next(body)
    gateways.close()


def test_a_gateway_that_asks_for_a_second_gets_it(
    pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing
) -> None:
    pair[0].statuses = [("PATCH", 503, {"Retry-After": "1"})]
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        began = time.monotonic()
        session.upload_file(movies / "credits.csv")
        assert time.monotonic() - began >= 1.0
        assert cluster.count("PATCH") == 2  # not asked in between


def test_opens_a_session_with_whoever_lives(pair: list[Gateway], movies: Path, quick: Timing, tmp_path: Path) -> None:
    pair[0].stop()
    with Client(urls(pair), timing=quick) as client:
        assert q3_of(client, movies, tmp_path) == expected_q3(movies)


def test_a_replica_that_lags_does_not_end_the_session(
    pair: list[Gateway], movies: Path, quick: Timing, tmp_path: Path
) -> None:
    pair[0].statuses = [("GET", 404, {}), ("HEAD", 404, {})]
    with Client(urls(pair), timing=quick) as client:
        assert q3_of(client, movies, tmp_path) == expected_q3(movies)
    assert not pair[0].statuses


def test_a_bad_file_ends_at_once_with_its_reason(
    pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing
) -> None:
    (movies / "credits.csv").write_bytes(b'id,cast\n1,"never closed' + b"x" * 5_000_000)
    cluster.bad_content = b"never closed"
    with Client(urls(pair), timing=quick) as client, client.open("movies") as session:
        with pytest.raises(BadFile, match="line 7: a quoted field is never closed; close it") as caught:
            session.upload(movies)
        assert caught.value.file == "credits.csv"
        assert caught.value.line == 7
        assert {upload.kind for upload in session.state().uploads if upload.state == "complete"} == {
            "movies",
            "ratings",
        }
        failed = [query.query for query in session.watch() if query.state == "failed"]
        assert failed == ["movies-q4"]  # the others do not need that file


def test_a_file_that_was_not_even_begun_leaves_the_others(
    pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing
) -> None:
    with Client(urls(pair), timing=quick) as client, client.open("movies") as session:
        for name in ["movies_metadata.csv", "ratings.csv"]:
            session.upload_file(movies / name)
        pair[0].statuses = [("POST", 413, {})]
        with pytest.raises(BadFile, match="told to answer 413"):
            session.upload_file(movies / "credits.csv")
        ended = {query.query for query in session.watch(settle_seconds=0.2)}
        assert ended == {"movies-q1", "movies-q2", "movies-q3", "movies-q5"}


@pytest.mark.parametrize("cuts", [1, 3])
@pytest.mark.parametrize("knows_ranges", [True, False])
def test_events_and_answers_that_break_in_the_middle(
    cuts: int,
    knows_ranges: bool,
    pair: list[Gateway],
    cluster: FakeCluster,
    movies: Path,
    quick: Timing,
    tmp_path: Path,
) -> None:
    for gateway in pair:
        gateway.cut_events = gateway.cut_answers = cuts
        gateway.knows_ranges = knows_ranges
    with Client(urls(pair), timing=quick) as client:
        assert q3_of(client, movies, tmp_path) == expected_q3(movies)
    cut = [sizes for sizes in cluster.downloads.values() if len(sizes) > 1]
    assert cut
    assert all((size < first) == knows_ranges for first, *again in cut for size in again)  # what was there is kept
    assert not any(path.name.endswith(".part") for path in tmp_path.iterdir())


def test_what_happened_before_the_events_is_not_missed(
    pair: list[Gateway], movies: Path, quick: Timing, tmp_path: Path
) -> None:
    for gateway in pair:
        gateway.only_changes = True
    with Client(urls(pair), timing=replace(quick, events=30)) as client:
        began = time.monotonic()
        assert q3_of(client, movies, tmp_path) == expected_q3(movies)
        assert time.monotonic() - began < 25  # not found out by silence alone


def test_looks_every_second_where_there_are_no_events(
    pair: list[Gateway], movies: Path, quick: Timing, tmp_path: Path
) -> None:
    for gateway in pair:
        gateway.mute_events = True
    with Client(urls(pair), timing=quick) as client:
        assert q3_of(client, movies, tmp_path) == expected_q3(movies)


def test_a_failed_query_says_why_and_spares_the_others(
    pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing
) -> None:
    cluster.failed_queries["movies-q5"] = "the model wobbly-bert is not installed"
    with Client(urls(pair), timing=quick) as client, client.open("movies") as session:
        session.upload(movies)
        got: list[str] = []
        with pytest.raises(QueryFailed, match="movies-q5 failed: the model wobbly-bert"):
            got.extend(query for query, _ in session.answers())
        assert sorted(got) == ["movies-q1", "movies-q2", "movies-q3", "movies-q4"]
        with pytest.raises(QueryFailed, match="wobbly-bert"):
            session.answer("movies-q5")


def test_what_cannot_work_is_said_at_once(
    pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing, tmp_path: Path
) -> None:
    with pytest.raises(WrongUsage, match="'localhost:8080' is no address"):
        Client(["localhost:8080"])
    with Client(urls(pair), timing=quick) as client:
        with pytest.raises(Refused, match="there is no dataset films"):
            client.open("films")
        session = client.open("movies")
        (movies / "ratings.csv").unlink()
        with pytest.raises(WrongUsage, match=r"has no ratings\.csv"):
            session.upload(movies)
        with pytest.raises(WrongUsage, match=r"notes\.txt is no file of movies"):
            session.upload_file(tmp_path / "notes.txt")
        with pytest.raises(WrongUsage, match="there are movies-q1"):
            session.answer("movies-q9")
        session.close()
        session.close()
        with pytest.raises(SessionGone, match="there is no session"):
            session.state()


def test_gives_up_with_a_clear_sentence(pair: list[Gateway], movies: Path, quick: Timing) -> None:
    with Client(urls(pair), timing=Timing(give_up=0.3, open=0.3, first_wait=0.01)) as client:
        session = client.open("movies")
        for gateway in pair:
            gateway.stop()
        with pytest.raises(Unreachable, match=r"no progress for 0 s with http://127.*cannot be reached"):
            session.upload(movies)
