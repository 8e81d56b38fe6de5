"""Files whose length is known at their end: unpacked on their way, or piped in. And files that change under way."""

import gzip
import io
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from producer_client import Client, WrongUsage, notes
from producer_client.folder import FileKind
from producer_client.gateways import Timing
from producer_client.streams import MOST_BYTES, Stream, piped
from tests.unit.client.fake_gateway import FakeCluster, Gateway
from tests.unit.client.test_client_api import expected_q3, q3_of, urls
from tests.unit.client.test_client_cli import Words, answers, expected, started, upload, words

__all__ = ["words"]  # a fixture


@pytest.fixture
def packed(movies: Path, tmp_path: Path) -> Path:
    """The same films, their ratings packed."""
    folder = tmp_path / "packed"
    shutil.copytree(movies, folder)
    (folder / "ratings.csv.gz").write_bytes(gzip.compress((folder / "ratings.csv").read_bytes(), 1))
    (folder / "ratings.csv").unlink()
    return folder


def never_stop() -> None:
    pass


@pytest.mark.parametrize("drops", [[], [1], [0, 0, 0], [65_537, 999_983, 1], [3_000_030]])
def test_a_packed_file_goes_on_at_odd_offsets(
    drops: list[int], pair: list[Gateway], movies: Path, packed: Path, quick: Timing, tmp_path: Path
) -> None:
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        pair[0].drops = list(drops)
        session.upload_file(packed / "ratings.csv.gz")  # its kind is told by its name
        assert not pair[0].drops  # the faults did happen
        [state] = session.state().uploads
        assert (state.state, state.length) == ("complete", (movies / "ratings.csv").stat().st_size)
        session.upload_file(movies / "movies_metadata.csv")
        session.upload_file(movies / "credits.csv")
        assert dict(session.answers(tmp_path))["movies-q3"].read_text() == expected_q3(movies)


def test_a_small_packed_file_takes_one_request(
    pair: list[Gateway], cluster: FakeCluster, quick: Timing, tmp_path: Path
) -> None:
    path = tmp_path / "credits.csv.gz"
    path.write_bytes(gzip.compress(b"id,cast\n1,somebody\n"))
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        session.upload_file(path)
        assert [upload.state for upload in session.state().uploads] == ["complete"]
    assert cluster.patches == [19]


def test_a_gateway_dies_in_the_middle_of_a_packed_file(
    pair: list[Gateway], cluster: FakeCluster, movies: Path, packed: Path, quick: Timing, tmp_path: Path
) -> None:
    cluster.hold_at = 1_500_001

    def kill_the_first() -> None:
        assert cluster.held.wait(20)
        pair[0].stop()
        cluster.release.set()

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    with Client(urls(pair), timing=quick) as client:
        assert q3_of(client, packed, tmp_path) == expected_q3(movies)
    killer.join()


def test_a_client_that_was_killed_unpacks_from_the_start_and_skips(
    words: Words, packed: Path, cluster: FakeCluster, tmp_path: Path
) -> None:
    undisturbed = expected(words, tmp_path)
    given = [words[0], str(packed), *words[2:]]
    cluster.hold_at = 1_234_567
    with started(given) as process:
        assert cluster.held.wait(20)
        process.kill()
    cluster.release.set()
    begun = [patch for patch in cluster.patches if patch == -1]
    code, _, err = upload([*given, "--resume"])
    assert code == 0, err
    assert begun
    assert answers(tmp_path / "out") == undisturbed


def test_a_complete_packed_file_is_not_unpacked_again(
    pair: list[Gateway], cluster: FakeCluster, packed: Path, quick: Timing
) -> None:
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        session.upload_file(packed / "ratings.csv.gz")
        sent = cluster.count("PATCH")
        session.upload_file(packed / "ratings.csv.gz")
        assert cluster.count("PATCH") == sent


def piping(words: Words, *more: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "producer_client", *words, "--file", "ratings=-", *more]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_pipe_outlives_its_gateway(
    words: Words, pair: list[Gateway], cluster: FakeCluster, movies: Path, tmp_path: Path
) -> None:
    """The one that holds it is killed while the pipe is open: what it had not kept is sent to the other one."""
    undisturbed = expected(words, tmp_path)
    content = (movies / "ratings.csv").read_bytes()
    (movies / "ratings.csv").unlink()
    cluster.hold_at = 1_500_001
    with piping(words, "--quiet") as process:
        assert process.stdin
        process.stdin.write(content[:2_000_000])
        process.stdin.flush()
        assert cluster.held.wait(20)
        pair[0].stop()
        cluster.release.set()
        process.stdin.write(content[2_000_000:])
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert answers(tmp_path / "out") == undisturbed


def test_a_pipe_of_a_killed_client_cannot_be_resumed_and_it_is_said_why(
    words: Words, cluster: FakeCluster, movies: Path, tmp_path: Path
) -> None:
    content = (movies / "ratings.csv").read_bytes()
    (movies / "ratings.csv").unlink()
    cluster.hold_at = 1_500_001
    with piping(words) as process:
        assert process.stdin
        with suppress(BrokenPipeError):
            process.stdin.write(content[:2_000_000])
            process.stdin.flush()
        assert cluster.held.wait(20)
        process.kill()
    cluster.release.set()
    code, _, err = upload([*words, "--file", "ratings=-", "--resume"])
    assert (code, len(err.splitlines())) == (2, 1)
    assert "ratings came by standard input, of which nobody kept the beginning" in err
    assert "begin again with --fresh" in err


def stream_of(content: bytes) -> Stream:
    whole, _ = piped(io.BufferedReader(io.BytesIO(content)))
    return Stream(FileKind("ratings", "ratings.csv"), "ratings.csv", None, None, lambda: whole, "standard input")


def test_what_is_kept_of_a_stream_is_what_was_not_committed() -> None:
    content = random.Random(3).randbytes(5 << 20)
    stream, rng, committed = stream_of(gzip.compress(content, 1)), random.Random(4), 0
    while stream.length is None or committed < len(content):
        stream.prepare(committed, never_stop)
        most = rng.randrange(1, 3 << 20)
        sent = b"".join(stream.read(committed, most))
        assert sent == content[committed : committed + len(sent)]
        assert sum(map(len, stream._kept)) <= most + 3 * (1 << 20)
        committed += rng.randrange(len(sent) + 1)  # the gateway died with the rest
    stream.close()
    assert MOST_BYTES <= 64 << 20


def test_a_slow_pipe_is_sent_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("producer_client.streams.GATHER_SECONDS", 0.05)
    monkeypatch.setattr("producer_client.streams.REQUEST_SECONDS", 0.3)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as given, os.fdopen(writing, "wb", buffering=0) as producer:
        producer.write(b"userId,rating\n")
        whole, head = piped(given) if producer.write(b"x" * 600) else (given, b"")
        assert head.startswith(b"userId,rating\n")
        stream = Stream(FileKind("ratings", "ratings.csv"), "ratings.csv", None, None, lambda: whole, "standard input")
        stream.prepare(0, never_stop)
        assert len(b"".join(stream.read(0, 1 << 20))) == 614  # the request ends, and nobody has closed the pipe
        producer.write(b"1,2.5\n")
        stream.prepare(614, never_stop)
        assert b"".join(stream.read(614, 1 << 20)) == b"1,2.5\n"
        producer.close()
        stream.prepare(620, never_stop)
        assert (stream.length, b"".join(stream.read(620, 1 << 20))) == (620, b"")


@pytest.fixture
def large(movies: Path) -> Path:
    """More than sockets and read-ahead hold: something is still to be read when the gateway has the first bytes."""
    path = movies / "ratings.csv"
    path.write_bytes(b"userId,rating\n" + b"1,2.5\n" * 5_000_000)
    return path


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"2,3.5\n")


def rewrite(path: Path) -> None:
    """Another file of the same length and time under the same name."""
    before = path.stat()
    path.with_suffix(".new").write_bytes(path.read_bytes()[::-1])
    os.utime(path.with_suffix(".new"), ns=(before.st_atime_ns, before.st_mtime_ns))
    path.with_suffix(".new").rename(path)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (grow, r"ratings\.csv\S* grew, from \d+ to \d+ bytes, while it was sent"),
        (rewrite, r"ratings\.csv\S* was written to while it was sent"),
        (Path.unlink, r"ratings\.csv\S*: No such file or directory while it was sent; put the same file back"),
    ],
)
def test_a_file_that_changes_while_it_is_sent_never_becomes_complete(
    change: Callable[[Path], None],
    sentence: str,
    is_packed: bool,
    pair: list[Gateway],
    cluster: FakeCluster,
    large: Path,
    quick: Timing,
) -> None:
    path = large
    if is_packed:
        path = large.with_name("ratings.csv.gz")
        path.write_bytes(gzip.compress(large.read_bytes(), 1))
    cluster.hold_at = 1_500_001

    def disturb() -> None:
        assert cluster.held.wait(20)
        change(path)
        cluster.release.set()

    disturber = threading.Thread(target=disturb)
    disturber.start()
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        with pytest.raises(WrongUsage, match=sentence):
            session.upload_file(path, "ratings")
        assert [upload.state for upload in session.state().uploads] == ["open"]
    disturber.join()


def test_a_file_that_was_deleted_is_named_and_not_called_a_lack_of_room(
    words: Words, cluster: FakeCluster, large: Path, tmp_path: Path
) -> None:
    cluster.hold_at = 1_500_001
    aside = large.with_name("aside.csv")
    with started(words) as process:
        assert cluster.held.wait(20)
        large.rename(aside)
        cluster.release.set()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert f"{large}: No such file or directory while it was sent; put the same file back" in err
    assert "room" not in err
    aside.rename(large)
    assert (tmp_path / "out" / notes.NAME).exists()
    code, _, err = upload([*words, "--resume", "--quiet"])
    assert (code, err) == (0, "")


def test_the_separator_of_the_first_run_is_that_of_the_next(words: Words, cluster: FakeCluster, movies: Path) -> None:
    path = movies / "credits.csv"
    path.write_bytes(b"id;cast\n" + path.read_bytes()[8:])
    cluster.hold_at = 1_500_001
    with started([*words, "--separator", "credits=;"]) as process:
        assert cluster.held.wait(20)
        process.kill()
    cluster.release.set()
    code, _, err = upload([*words, "--resume", "--separator", "credits=|"])
    assert (code, "began with the --separator 'credits=;', not 'credits=|'" in err) == (2, True), err
    [session] = cluster.sessions.values()
    assert upload([*words, "--resume", "--quiet"]) == (0, "", "")
    assert session.uploads["credits"].metadata["separator"] == ";"
    assert "separator" not in session.uploads["ratings"].metadata
