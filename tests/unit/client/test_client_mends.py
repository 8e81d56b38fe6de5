"""A refused file is put right and sent again; and what cannot work is said at once, by name."""

import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trustme

from producer_client import BadFile, Client, Unreachable, WrongUsage, notes
from producer_client.gateways import Timing
from tests.unit.client.fake_gateway import KINDS, NEEDS, FakeCluster, Gateway
from tests.unit.client.test_client_cli import Words, answers, expected, upload, words

__all__ = ["words"]  # a fixture

BAD = b'id,cast\n1,"never closed'


@pytest.fixture
def refusing(cluster: FakeCluster) -> FakeCluster:
    """Nothing is taken of a piece that has the bad bytes in it, as gateways do it."""
    cluster.bad_content, cluster.keeps_bad_pieces = b'"never closed', False
    return cluster


def test_a_refused_file_is_replaced_from_python(
    pair: list[Gateway], refusing: FakeCluster, movies: Path, quick: Timing
) -> None:
    """By one of the same name and length: what tells them apart is the checksum."""
    (movies / "credits.csv").write_bytes(BAD)
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        with pytest.raises(BadFile, match="line 7: a quoted field"):
            session.upload(movies)
        (movies / "credits.csv").write_bytes(BAD.replace(b'"n', b"An"))
        session.upload_file(str(movies / "credits.csv"))
        assert sorted(query for query, _ in session.answers()) == sorted(NEEDS)


def test_a_refused_file_is_put_right_and_only_that_one_is_sent_again(
    words: Words, refusing: FakeCluster, movies: Path, tmp_path: Path
) -> None:
    undisturbed, path = expected(words, tmp_path), movies / "credits.csv"
    good = path.read_bytes()
    path.write_bytes(BAD)
    code, _, err = upload([*words, "--quiet"])
    assert code == 1
    assert "movies-q4 has no answer: credits.csv, line 7" in err
    go_on = err.splitlines()[-1].removeprefix("put it right, then go on with: python -m producer_client ").split()
    assert go_on == [*words[:4], "--resume"]
    assert sorted(answers(tmp_path / "out")) == ["movies-q1.csv", "movies-q2.csv", "movies-q3.csv", "movies-q5.csv"]

    code, _, again = upload([*go_on, "--quiet"])  # nothing was put right
    assert (code, again) == (1, err)

    path.write_bytes(good)
    sent = len(refusing.patches)
    assert upload([*go_on, "--quiet"]) == (0, "", "")
    assert refusing.patches[sent:] == [len(good)]
    assert answers(tmp_path / "out") == undisturbed
    assert not (tmp_path / "out" / notes.NAME).exists()
    assert not refusing.sessions


def test_an_upload_is_taken_away_alone(pair: list[Gateway], refusing: FakeCluster, movies: Path, quick: Timing) -> None:
    (movies / "credits.csv").write_bytes(BAD)
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        with pytest.raises(BadFile):
            session.upload(movies)
        with pytest.raises(WrongUsage, match=r"no upload 'casts\.csv' in this session; there are .*credits\.csv"):
            session.remove("casts.csv")
        session.remove("credits.csv")
        assert {upload.name for upload in session.state().uploads} == {"movies_metadata.csv", "ratings.csv"}


def test_without_resume_it_begins_again_and_the_old_session_is_deleted(
    words: Words, refusing: FakeCluster, movies: Path, tmp_path: Path
) -> None:
    good = (movies / "credits.csv").read_bytes()
    (movies / "credits.csv").write_bytes(BAD)
    assert upload([*words, "--quiet"])[0] == 1
    [old] = refusing.sessions
    (movies / "credits.csv").write_bytes(good)
    code, out, err = upload([*words, "--json"])
    assert code == 0, err
    assert refusing.deleted == [old, json.loads(out)["client_id"]]


def test_of_the_other_files_none_may_change_meanwhile(words: Words, refusing: FakeCluster, movies: Path) -> None:
    (movies / "credits.csv").write_bytes(BAD)
    assert upload([*words, "--quiet"])[0] == 1
    (movies / "ratings.csv").write_bytes(b"userId,rating\n")
    code, _, err = upload([*words, "--resume"])
    assert (code, err) == (2, "ratings.csv was changed since the upload began; begin again with --fresh\n")


def test_a_file_that_was_put_right_under_another_name_is_called_new(
    words: Words, refusing: FakeCluster, movies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS[2], "folder", True)
    good = (movies / "credits.csv").read_bytes()
    (movies / "credits.csv").unlink()
    (movies / "credits").mkdir()
    bad, mended = movies / "credits" / "b.csv", movies / "credits" / "b2.csv"
    bad.write_bytes(BAD)
    assert upload([*words, "--quiet"])[0] == 1
    bad.unlink()
    mended.write_bytes(good)
    code, _, err = upload([*words, "--resume", "--quiet"])
    sentence = "credits/b2.csv is new since the upload began; rename it to credits/b.csv, which was refused,"
    assert (code, err) == (2, f"{sentence} or begin again with --fresh\n")
    mended.rename(bad)
    assert upload([*words, "--resume", "--quiet"]) == (0, "", "")


def test_a_disk_that_is_full_is_named_with_the_way_to_go_on(words: Words, tmp_path: Path) -> None:
    """Full is a file that may not become longer: the kernel says so in the same way."""
    undisturbed, out = expected(words, tmp_path), tmp_path / "out"
    command = [sys.executable, "-c", LITTLE_ROOM, *words, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    first, last = done.stderr.splitlines()
    assert first.startswith(f"{out}/movies-q")
    assert first.endswith(".csv: File too large")
    assert last == f"make room, then go on with: python -m producer_client {' '.join(words[:4])} --resume"
    assert upload([*words[:4], "--resume", "--quiet"]) == (0, "", "")
    assert answers(out) == undisturbed


def test_a_disk_that_was_full_from_the_start_leaves_nothing_to_resume(words: Words, tmp_path: Path) -> None:
    script = LITTLE_ROOM.replace("Session.save_answer = save_with_little_room", FULL_AT_ONCE)
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60, check=False
    )
    note = tmp_path / "out" / notes.NAME
    assert (done.returncode, done.stderr) == (1, f"{note}: File too large; make room, or choose another --out\n")


FULL_AT_ONCE = "resource.setrlimit(resource.RLIMIT_FSIZE, (50, resource.RLIM_INFINITY))"
# Only answers: the note is written before them.
LITTLE_ROOM = """
import resource, sys
from producer_client import cli
from producer_client.api import Session

save = Session.save_answer

def save_with_little_room(*given):
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, resource.RLIM_INFINITY))
    return save(*given)

Session.save_answer = save_with_little_room
sys.exit(cli.run(sys.argv[1:], program="python -m producer_client"))
"""


def test_what_python_is_given_wrongly_is_wrong_usage(
    pair: list[Gateway], cluster: FakeCluster, movies: Path, quick: Timing, tmp_path: Path
) -> None:
    with Client(pair[0].url, timing=quick) as client, client.open("movies") as session:
        asked = len(cluster.seen)
        with pytest.raises(WrongUsage, match="'stores' is no folder, and only a folder is completed; movies has none"):
            session.complete("stores")
        for ticket in [{}, {"client_id": "c"}, {**session.ticket, "files": 7}]:
            with pytest.raises(WrongUsage, match=r"this ticket .*; give the whole of Session\.ticket"):
                client.resume(ticket)
        assert len(cluster.seen) == asked
        session.upload(movies)
        list(session.answers(str(tmp_path)))
        assert session.save_answer("movies-q1", str(tmp_path / "x.csv")) == tmp_path / "x.csv"
        assert (tmp_path / "x.csv").read_bytes() == (tmp_path / "movies-q1.csv").read_bytes()


@contextmanager
def listening(context: ssl.SSLContext | None) -> Iterator[int]:
    """A server that ends every connection: of TLS, if there is a context."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        connection.settimeout(5)
                        if context is None:
                            connection.recv(1)
                        else:
                            with context.wrap_socket(connection, server_side=True) as secure:
                                secure.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def test_the_wrong_scheme_is_said_at_once(pair: list[Gateway]) -> None:
    """Timing is the default: 15 seconds for the first request."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    began = time.monotonic()
    secure = pair[0].url.replace("http:", "https:")
    with Client(secure) as client, pytest.raises(WrongUsage, match=f"HTTP is spoken there, .* write {pair[0].url}"):
        client.open("movies")
    with (
        listening(context) as port,
        Client(f"http://127.0.0.1:{port}") as client,
        pytest.raises(WrongUsage, match=f"HTTPS is spoken there, .* write https://127.0.0.1:{port}"),
    ):
        client.open("movies")
    assert time.monotonic() - began < 10


def test_a_gateway_that_breaks_off_is_not_taken_for_one_of_https() -> None:
    with (
        listening(None) as port,
        Client(f"http://127.0.0.1:{port}", timing=Timing(open=0.2)) as client,
        pytest.raises(Unreachable),
    ):
        client.open("movies")
