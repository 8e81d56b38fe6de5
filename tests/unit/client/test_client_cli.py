"""`cauce upload` as a process: exit codes, what it prints, and what is left after it was killed."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from producer_client import notes
from producer_client.api import Client
from producer_client.cli import run
from producer_client.errors import WrongUsage
from tests.unit.client.fake_gateway import NEEDS, FakeCluster, Gateway, wait_for

Words = list[str]


@pytest.fixture
def words(pair: list[Gateway], movies: Path, tmp_path: Path) -> Words:
    """The command line of a plain upload."""
    options = [word for gateway in pair for word in ("--gateway", gateway.url)]
    return ["movies", str(movies), "--out", str(tmp_path / "out"), *options]


@contextmanager
def started(words: Words) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "producer_client", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def upload(words: Words) -> tuple[int, str, str]:
    """In this process: it is the same, and quicker."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words, program="python -m producer_client")
    return code, out.getvalue(), err.getvalue()


def answers(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.csv")}


def expected(words: Words, tmp_path: Path) -> dict[str, bytes]:
    """What an upload that nothing disturbs writes."""
    other = tmp_path / "undisturbed"
    code, _, err = upload([*words[:3], str(other), *words[4:], "--quiet"])
    assert code == 0, err
    return answers(other)


def test_writes_answers_and_a_report(words: Words, cluster: FakeCluster, movies: Path, tmp_path: Path) -> None:
    code, out, err = upload([*words, "--scope", "all"])
    assert code == 0, err
    folder = tmp_path / "out"
    assert sorted(path.name for path in folder.iterdir()) == [*(f"{query}.csv" for query in NEEDS), "report.json"]
    assert "movies-q3" in out
    assert "ratings: 300,003 rows read, 299,988 folded; rejected: 3 no rating; 12 rows that no query uses" in out
    assert "movies-q5 is here" in err
    report = json.loads((folder / "report.json").read_text())
    assert report["dataset"] == "movies"
    assert report["options"] == {"scope": "all", "model": "tiny-sentiment"}
    assert report["files"][1] == {
        "name": "ratings.csv",
        "kind": "ratings",
        "bytes": (movies / "ratings.csv").stat().st_size,
        "rows": 300_003,
        "rejected": {"no rating": 3},
        "unused": 12,
        "state": "complete",
        "reason": None,
    }
    (stage,) = (stage for stage in report["stages"] if stage["kind"] == "ratings")  # they were created side by side
    assert stage == {
        "kind": "ratings",
        "rows": 300_003,
        "rejected": {"no rating": 3},
        "unused": 12,
        "sent": 299_988,
        "batches": 1,
        "folded": 299_988,
    }
    assert [query["state"] for query in report["queries"]] == ["done"] * 5
    assert list(report["seconds"]) == ["connect", "upload", "answers", "total"]
    assert set(report["gateways"]) <= set(words)
    assert cluster.deleted == [report["client_id"]]


def test_keeps_the_session_when_asked_and_prints_json(words: Words, cluster: FakeCluster, tmp_path: Path) -> None:
    code, out, err = upload([*words, "--keep", "--json"])
    assert code == 0, err
    assert json.loads(out) == json.loads((tmp_path / "out" / "report.json").read_text())
    assert list(cluster.sessions) == [json.loads(out)["client_id"]]


@pytest.mark.parametrize("hold_at", [1, 1_234_567])
def test_a_client_that_was_killed_resumes_to_the_same_files(
    hold_at: int, words: Words, cluster: FakeCluster, tmp_path: Path
) -> None:
    undisturbed = expected(words, tmp_path)
    cluster.hold_at = hold_at
    with started(words) as process:
        assert cluster.held.wait(20)
        process.kill()
    note = tmp_path / "out" / notes.NAME
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    cluster.release.set()
    code, _, err = upload(words)
    assert (code, "--resume, or give it up with --fresh" in err) == (2, True)
    code, _, err = upload([*words, "--resume"])
    assert code == 0, err
    assert answers(tmp_path / "out") == undisturbed
    assert json.loads((tmp_path / "out" / "report.json").read_text())["resumed"] is True
    assert not note.exists()
    assert not cluster.sessions


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_it_and_it_says_how_to_go_on(
    sign: signal.Signals, code: int, words: Words, cluster: FakeCluster, tmp_path: Path
) -> None:
    undisturbed = expected(words, tmp_path)
    cluster.hold_at = 1_234_567
    with started(words) as process:
        assert cluster.held.wait(20)
        process.send_signal(sign)
        _, err = process.communicate(timeout=20)
    assert process.returncode == code
    assert "Traceback" not in err
    go_on = err.splitlines()[-1].removeprefix("go on with: python -m producer_client ").split()
    assert go_on == [*words[:4], "--resume"]
    cluster.release.set()
    assert upload([*go_on, "--quiet"]) == (0, "", "")  # the gateways come from the note
    assert answers(tmp_path / "out") == undisturbed


def test_fresh_gives_the_old_upload_up(words: Words, cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.hold_at = 5
    with started(words) as process:
        assert cluster.held.wait(20)
        process.kill()
    cluster.release.set()
    [old] = cluster.sessions
    code, out, err = upload([*words, "--fresh", "--json"])
    assert code == 0, err
    assert cluster.deleted == [old, json.loads(out)["client_id"]]


def test_a_file_changed_in_between_is_not_mixed_in(words: Words, cluster: FakeCluster, movies: Path) -> None:
    cluster.hold_at = 5
    with started(words) as process:
        assert cluster.held.wait(20)
        process.kill()
    cluster.release.set()
    path = movies / "ratings.csv"
    path.write_bytes(path.read_bytes()[::-1])
    code, _, err = upload([*words, "--resume"])
    assert (code, err) == (2, "ratings.csv was changed since the upload began; begin again with --fresh\n")
    code, _, err = upload([*words, "--resume", "--scope", "all"])
    assert code == 2
    assert "began with the --scope us, not all" in err


def test_a_refused_file_leaves_what_was_answered(
    words: Words, cluster: FakeCluster, movies: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "movies-q4.csv").write_text("of an earlier run")
    (movies / "credits.csv").write_bytes(b'id,cast\n1,"never closed' + b"x" * 5_000_000)
    cluster.bad_content = b"never closed"
    code, _, err = upload(words)
    assert code == 1
    assert "credits.csv, line 7: a quoted field is never closed; close it and send the file again" in err
    assert "movies-q4 has no answer: credits.csv, line 7" in err
    assert sorted(answers(tmp_path / "out")) == ["movies-q1.csv", "movies-q2.csv", "movies-q3.csv", "movies-q5.csv"]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["files"][2]["state"] == "failed"
    assert not (tmp_path / "out" / notes.NAME).exists()  # nothing to resume


def test_a_failed_query_is_exit_code_1(words: Words, cluster: FakeCluster) -> None:
    cluster.failed_queries["movies-q5"] = "the model wobbly-bert is not installed"
    code, _, err = upload([*words, "--quiet"])
    assert (code, err) == (1, "movies-q5 has no answer: the model wobbly-bert is not installed\n")


def test_wrong_usage_is_one_sentence_and_exit_code_2(words: Words, cluster: FakeCluster, movies: Path) -> None:
    home = ["--home", str(movies / "no-cluster")]
    (movies / "ratings.csv").unlink()
    for given, sentence in [
        (["movies", "/nowhere", *words[2:]], "/nowhere is no folder"),
        (["films", *words[1:]], "there is no dataset films; there are movies"),
        (words, "has no ratings.csv; put there movies_metadata.csv, ratings.csv, credits.csv"),
        ([*words, "--resume"], "holds no upload to go on with"),
        ([*words, "--scope", "eu"], "see `python -m producer_client --help`"),
        ([*words[:4], "--gateway", "127.0.0.1:1"], "is no address of a gateway"),
        ([*words[:4], *home], "no-cluster; start some with `cauce up`, or give --gateway URL"),
    ]:
        code, out, err = upload(given)
        assert (code, out, len(err.splitlines())) == (2, "", 1), err
        assert sentence in err
    # A session is opened when there is something to upload, not to learn what files there are.
    assert cluster.count("POST") == 0


def test_no_gateway_is_exit_code_3(words: Words, pair: list[Gateway], cluster: FakeCluster) -> None:
    for gateway in pair:
        gateway.stop()
    code, _, err = upload([*words, "--patience", "0.3"])
    assert code == 3
    assert "cannot be reached" in err


def test_gateways_that_die_under_way_leave_an_upload_to_resume(
    words: Words, pair: list[Gateway], cluster: FakeCluster, tmp_path: Path
) -> None:
    cluster.hold_at = 1_234_567
    with started([*words, "--patience", "0.5"]) as process:
        assert cluster.held.wait(20)
        for gateway in pair:
            gateway.stop()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert err.splitlines()[-1].endswith("--resume")
    assert (tmp_path / "out" / notes.NAME).exists()


def test_bars_on_a_terminal(words: Words) -> None:
    reading, writing = os.openpty()
    command = [sys.executable, "-m", "producer_client", *words]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=writing, env=environment)
    os.close(writing)
    shown = b""
    try:
        while piece := os.read(reading, 65536):
            shown += piece
    except OSError:  # the other end is closed: Linux says it so
        pass
    finally:
        os.close(reading)
    assert process.wait(30) == 0
    assert "━━━".encode() in shown
    assert b"ratings.csv" in shown
    assert b"3.0/3.0 MB" in shown


def test_waiting_for_answers_survives_the_gateway(words: Words, pair: list[Gateway], cluster: FakeCluster) -> None:
    needs = dict(NEEDS)
    NEEDS["movies-q5"] = {"movies", "nothing"}
    try:
        with started(words) as process:
            wait_for(lambda: cluster.count("GET", "/events") > 0, "the client to listen")
            pair[0].stop()
            wait_for(
                lambda: any(
                    url.endswith("/events") and pair[1].url.endswith(str(port)) for port, _, url in cluster.seen
                ),
                "the client to listen elsewhere",
            )
            NEEDS.update(needs)
            _, err = process.communicate(timeout=30)
            assert process.returncode == 0, err
    finally:
        NEEDS.update(needs)


@pytest.mark.parametrize("names", [["--queries", "q1,movies-q3"], ["--queries", "movies-q3", "--queries", "q1"]])
def test_files_that_no_asked_query_reads_stay_here_and_it_says_so(
    names: Words, words: Words, cluster: FakeCluster, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "movies-q2.csv").write_text("of an earlier run\n")
    code, _, err = upload([*words, *names])
    assert code == 0, err
    assert sorted(answers(folder)) == ["movies-q1.csv", "movies-q3.csv"]
    assert "credits.csv is not sent: none of the queries of this session (" in err
    assert "ratings.csv is not sent" not in err
    report = json.loads((folder / "report.json").read_text())
    assert sorted(report["options"]["queries"]) == ["movies-q1", "movies-q3"]
    assert sorted(query["query"] for query in report["queries"]) == ["movies-q1", "movies-q3"]
    assert sorted(file["kind"] for file in report["files"]) == ["movies", "ratings"]
    assert cluster.count("POST", "/uploads") == 2


def test_a_file_that_no_asked_query_reads_may_be_missing(words: Words, movies: Path) -> None:
    (movies / "ratings.csv").unlink()
    assert upload([*words, "--queries", "q2,q4"])[0] == 0
    code, _, err = upload([*words, "--queries", "q3"])
    assert (code, "has no ratings.csv" in err) == (2, True)


def test_an_upload_goes_on_with_the_queries_that_it_began_with(words: Words, cluster: FakeCluster) -> None:
    cluster.hold_at = 1_234_567
    with started([*words, "--queries", "q3"]) as process:
        assert cluster.held.wait(20)
        process.kill()
        process.wait()
    cluster.hold_at = -1
    cluster.release.set()
    code, _, err = upload([*words, "--resume", "--queries", "q1,q3"])
    assert (code, "began with the --queries movies-q3, not movies-q1,movies-q3" in err) == (2, True)
    code, _, err = upload([*words, "--resume", "--queries", "movies-q3"])
    assert code == 0, err


def test_a_query_that_there_is_not_is_what_the_gateway_says(words: Words) -> None:
    code, _, err = upload([*words, "--queries", "q7"])
    assert (code, err) == (2, "queries: movies-q7 is no query of movies\n")


@pytest.mark.parametrize("given", ["q3", ["q3"], ["movies-q3"]])
def test_from_python_a_session_asks_for_queries(given: str | list[str], pair: list[Gateway], movies: Path) -> None:
    with Client([gateway.url for gateway in pair]) as client, client.open("movies", queries=given) as session:
        assert session.queries == ("movies-q3",)
        assert [kind.kind for kind in session.files_not_read] == ["credits"]
        with pytest.raises(WrongUsage, match=r"credits.csv: none of the queries .*movies-q3.* reads credits"):
            session.upload_file(movies / "credits.csv")
        session.upload(movies)
        assert [query for query, _ in session.answers(movies)] == ["movies-q3"]
