"""How the client ends before its time, and that what it says then is true."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from producer_client import notes
from tests.unit.client.fake_gateway import NEEDS, FakeCluster, Gateway, wait_for
from tests.unit.client.test_client_cli import Words, answers, expected, upload, words
from tests.unit.client.test_client_streams import piping

__all__ = ["words"]  # a fixture

ROWS = b"userId,rating\n" + b"1,2.5\n" * 30_000  # several reads of a gateway
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


# A request of a pipe that says no more lasts ten seconds otherwise.
IMPATIENT = """
import sys
from producer_client import cli, streams

streams.REQUEST_SECONDS = 0.5
sys.exit(cli.run(sys.argv[1:], program="python -m producer_client"))
"""


def has_begun(cluster: FakeCluster, name: str) -> bool:
    uploads = [upload for session in cluster.sessions.values() for upload in session.uploads.values()]
    return any(upload.name == name and upload.offset for upload in uploads)


@contextmanager
def idle_pipe(words: Words, rows: bytes) -> Iterator["subprocess.Popen[bytes]"]:
    """The client, given these rows by a pipe that stays open and says no more."""
    command = [sys.executable, "-c", IMPATIENT, *words, "--file", "ratings=-", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        try:
            process.stdin.write(rows)
            process.stdin.flush()
            yield process
        finally:
            process.kill()


def ended(process: "subprocess.Popen[bytes]") -> tuple[int, str]:
    """The exit code and what was said, of one whose pipe stays open."""
    assert process.stderr
    return process.wait(60), process.stderr.read().decode()


@pytest.mark.parametrize(("sign", "code"), SIGNALS)
def test_an_idle_pipe_does_not_spoil_the_end_by_a_signal(
    sign: signal.Signals, code: int, words: Words, cluster: FakeCluster, movies: Path
) -> None:
    (movies / "ratings.csv").unlink()
    with idle_pipe(words, ROWS) as process:
        wait_for(lambda: has_begun(cluster, "ratings.csv"), "the first rows to be taken")
        process.send_signal(sign)
        assert ended(process) == (
            code,
            "stopped\nbegin again with --fresh: what was piped in came once, and --resume cannot go on with it\n",
        )
    assert upload([*words, "--file", "ratings=-", "--resume"])[0] == 2


def test_an_idle_pipe_does_not_spoil_the_end_by_a_refusal(words: Words, cluster: FakeCluster, movies: Path) -> None:
    (movies / "ratings.csv").unlink()
    cluster.bad_content = b"never closed"
    with idle_pipe(words, ROWS + b'1,"never closed\n' + ROWS) as process:
        code, err = ended(process)
    assert code == 1
    assert "ratings.csv, line 7: a quoted field is never closed" in err
    assert "Fatal" not in err


def test_a_standard_input_that_is_closed_is_named(words: Words, cluster: FakeCluster, movies: Path) -> None:
    (movies / "ratings.csv").unlink()
    command = [sys.executable, "-m", "producer_client", *words, "--file", "ratings=-"]
    closing = ["sh", "-c", 'exec "$0" "$@" <&-', *command]
    done = subprocess.run(closing, capture_output=True, text=True, timeout=60, check=False)
    sentence = "standard input is closed; pipe a file in, or give the path of one\n"
    assert (done.returncode, done.stderr) == (2, sentence)


def test_what_was_piped_in_whole_can_be_gone_on_with_and_it_says_so(
    words: Words, cluster: FakeCluster, movies: Path, tmp_path: Path
) -> None:
    undisturbed = expected(words, tmp_path)
    (movies / "ratings.csv").rename(tmp_path / "piped.csv")
    with pytest.MonkeyPatch.context() as patch, piping(words, "--quiet") as process:
        patch.setitem(NEEDS, "movies-q5", {"movies", "nothing"})
        asked = cluster.count("GET", "/events")
        assert process.stdin
        process.stdin.write((tmp_path / "piped.csv").read_bytes())
        process.stdin.close()
        wait_for(lambda: cluster.count("GET", "/events") > asked, "the client to wait for answers")
        process.send_signal(signal.SIGINT)
        code, err = ended(process)
    assert code == 130
    first, last = err.splitlines()
    assert first == "stopped; what was sent is kept"
    go_on = last.removeprefix("go on with: python -m producer_client ").split()
    assert go_on == [*words[:4], "--file", "ratings=-", "--resume"]
    assert upload([*go_on, "--quiet"]) == (0, "", "")
    assert answers(tmp_path / "out") == undisturbed


def test_ctrl_c_before_anything_was_sent_is_a_word_and_no_traceback(
    words: Words, cluster: FakeCluster, movies: Path
) -> None:
    (movies / "ratings.csv").unlink()
    with idle_pipe(words, b"") as process:
        assert process.stdin
        wait_for(lambda: cluster.count("GET", "/datasets") > 0, "the client to ask for the kinds of files")
        process.send_signal(signal.SIGINT)
        assert ended(process) == (130, "stopped\n")


# `cauce run` itself, on gateways that are there already.
RUN = """
import sys
from infra import cli, keeper

gateways = sys.argv.pop(1).split(",")
keeper.detach = lambda *given, **named: None
keeper.down = lambda home: ""
keeper.status = lambda home: {"gateways": gateways}
cli.main()
"""


def running(pair: list[Gateway], words: Words) -> "subprocess.Popen[str]":
    """`words` without the gateways, which `cauce run` finds by itself."""
    gateways = ",".join(gateway.url for gateway in pair)
    command = [sys.executable, "-c", RUN, gateways, "run", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stopped_run(pair: list[Gateway], cluster: FakeCluster, words: Words, sign: signal.Signals) -> tuple[int, list[str]]:
    """The exit code and the lines of one that was stopped half-way."""
    cluster.hold_at = 1_234_567
    with running(pair, words) as process:
        assert cluster.held.wait(30)
        process.send_signal(sign)
        _, err = process.communicate(timeout=60)
    cluster.hold_at = -1
    cluster.release.set()
    return process.returncode, err.splitlines()


@pytest.mark.parametrize(("sign", "code"), SIGNALS)
def test_a_cluster_that_is_gone_leaves_nothing_to_go_on_with(
    sign: signal.Signals, code: int, pair: list[Gateway], cluster: FakeCluster, words: Words, tmp_path: Path
) -> None:
    given = [*words[:4], "--quiet"]
    assert stopped_run(pair, cluster, given, sign) == (code, ["stopped"])
    assert not (tmp_path / "out" / notes.NAME).exists()
    with running(pair, [*given, "--resume"]) as process:
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err.count("\n")) == (2, 1)
        assert "leave --resume out, or give --home" in err
    with running(pair, given) as process:  # begins again
        assert (process.communicate(timeout=60), process.returncode) == (("", ""), 0)


def test_the_command_that_goes_on_names_the_home_of_the_cluster(
    pair: list[Gateway], cluster: FakeCluster, words: Words, tmp_path: Path
) -> None:
    undisturbed = expected(words, tmp_path)
    own = ["--brokers", "1", "--home", str(tmp_path / "a home")]
    code, said = stopped_run(pair, cluster, [*words[:4], *own, "--quiet"], signal.SIGINT)
    assert (code, said[0]) == (130, "stopped; what was sent is kept")
    command = ["cauce", "run", *words[:4], "--brokers", "1", "--home", f"'{tmp_path}/a home'", "--resume"]
    assert said[1:] == [f"go on with: {' '.join(command)}"]
    with running(pair, [*words[:4], *own, "--resume", "--quiet"]) as process:
        assert (process.communicate(timeout=60), process.returncode) == (("", ""), 0)
    assert answers(tmp_path / "out") == undisturbed
