"""`cauce up`, `status`, `down` and `kafka` as a person or a script runs them: real processes, real signals."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra import keeper
from infra.cluster import Cluster
from infra.processes import Process, wait_until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.kafka
KAFKA_ALONE = ("--workers", "0", "--gateways", "0")


def cauce(*arguments: str, stdin: str | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith("CAUCE_") or name == "CAUCE_CACHE"
    }
    return subprocess.run(
        [sys.executable, "-m", "infra", *arguments],
        cwd=ROOT, env=clean | environment, input=stdin, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def status(home: Path) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(cauce("status", "--home", str(home), "--json").stdout)
    return shown


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose cluster, if a test leaves one, is ended."""
    folder = tmp_path / "home"
    yield folder
    cauce("down", "--home", str(folder))


def test_up_status_down_detached(home: Path) -> None:
    started = cauce("up", "--brokers", "1", *KAFKA_ALONE, "--detach", "--home", str(home))
    assert started.returncode == 0, started.stderr
    shown = status(home)
    rows = shown.pop("processes")
    assert [(row["role"], row["index"], row["state"], row["restarts"], row["note"]) for row in rows] == [
        ("broker", 0, "ready", 0, None),
        ("supervisor", 0, "ready", 0, None),
        ("supervisor", 1, "ready", 0, None),
    ]
    assert shown == {"bootstrap": rows[0]["address"], "gateways": [], "sessions": [], "troubles": []}
    processes = [Process.of(row["pid"]) for row in rows]

    second = cauce("up", "--brokers", "1", *KAFKA_ALONE, "--home", str(home))
    assert (second.returncode, second.stdout) == (2, "")
    assert "already runs" in second.stderr

    ended = cauce("down", "--home", str(home))
    assert (ended.returncode, ended.stdout) == (0, f"stopped the cluster in {home}; its data is kept\n")
    assert not any(process.alive for process in processes)
    again = cauce("down", "--home", str(home))
    assert (again.returncode, again.stdout) == (0, f"nothing is running in {home}\n")


@pytest.mark.kill
@pytest.mark.parametrize(
    ("sign", "moment", "code"),
    [
        (signal.SIGTERM, "ready", 0),
        (signal.SIGINT, "ready", 130),
        (signal.SIGINT, "starting", 130),
        (signal.SIGKILL, "starting", -9),
    ],
)
def test_a_signal_leaves_nothing_running(sign: signal.Signals, moment: str, code: int, home: Path) -> None:
    command = [sys.executable, "-m", "infra", "up", "--brokers", "1", *KAFKA_ALONE, "--home", str(home)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as up:
        try:
            wait_until(lambda: moment in _states(home), seconds=60, otherwise=f"the broker was never {moment}")
            processes = [Process.of(row["pid"]) for row in keeper.status(home)["processes"]]
            up.send_signal(sign)
            assert up.wait(60) == code
        finally:
            up.kill()
    assert processes
    wait_until(lambda: not any(p.alive for p in processes), seconds=60, otherwise="a process is left running")
    assert cauce("status", "--home", str(home), "--json").returncode == 1


def _states(home: Path) -> list[str]:
    return [row["state"] for row in keeper.status(home)["processes"] if row["role"] == "broker"]


def test_without_a_cluster_status_says_how_to_start_one(home: Path) -> None:
    shown = cauce("status", "--home", str(home))
    assert shown.returncode == 1
    assert f"cauce up --home {home}" in shown.stdout
    assert status(home) == {"bootstrap": None, "gateways": [], "processes": [], "sessions": [], "troubles": []}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("up", "--brokers", "2"), "2 brokers: a cluster has 1, or 3"),
        (("up", "--detach", "--heap", "lots"), "heap 'lots': write it as Java does"),
        (("kafka", "topic"), "there is no tool 'topic'"),
        (("kafka", "topics", "--list"), "no cluster runs in"),
        (("upp",), "No such command 'upp'"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments: tuple[str, ...], sentence: str, home: Path) -> None:
    ran = cauce(*arguments, CAUCE_HOME=str(home))
    assert ran.returncode == 2
    assert sentence in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_misspelt_variable_is_named(home: Path) -> None:
    ran = cauce("status", CAUCE_HOM=str(home))
    assert (ran.returncode, ran.stderr) == (2, "CAUCE_HOM is no setting of Cauce; did you mean CAUCE_HOME?\n")


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = cauce("up", *KAFKA_ALONE, "--detach", "--home", str(tmp_path / "file" / "home"))
    assert ran.returncode == 2
    assert "choose another --home" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_kafkas_own_tools_run_on_the_cluster(kafka: Cluster, prefix: str) -> None:
    topic, where = prefix + "lines", {"CAUCE_BOOTSTRAP": kafka.bootstrap}
    made = cauce("kafka", "topics", "--create", "--topic", topic, **where)
    assert made.returncode == 0, made.stderr
    sent = cauce("kafka", "console-producer", "--topic", topic, stdin="uno\ndos\n", **where)
    assert sent.returncode == 0, sent.stderr
    arguments = ("--topic", topic, "--from-beginning", "--max-messages", "2")
    assert cauce("kafka", "console-consumer", *arguments, **where).stdout == "uno\ndos\n"
    assert cauce("kafka", "topics", "--describe", "--topic", prefix + "none", **where).returncode == 1
    assert "LeaderId" in cauce("kafka", "metadata-quorum", "describe", "--status", **where).stdout


def test_the_list_of_tools() -> None:
    assert "console-consumer" in cauce("kafka").stdout
