"""`cauce clients`: one of several is killed; it alone has no answers, and nothing of its session is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra import keeper
from infra.clients import Client, known
from infra.processes import wait_until

ROOT = Path(__file__).parents[2]
VICTIM = 1  # of the datasets in turn: flights, and the only one
pytestmark = [pytest.mark.kafka, pytest.mark.kill]


def command(home: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "infra", *arguments, "--home", str(home)]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    shape = ("--brokers", "1", "--workers", "1", "--gateways", "2", "--partitions", "2")
    environment = os.environ | {"CAUCE_SESSION_TTL_SECONDS": "40"}  # on a busy machine 20 s without a word were seen
    subprocess.run(command(home, "up", *shape, "--detach"), cwd=ROOT, env=environment, check=True, timeout=120)
    try:
        yield home
    finally:
        subprocess.run(command(home, "down"), cwd=ROOT, check=True, timeout=120)


def client(home: Path, number: int) -> Client:
    return next(each for each in known(home) if each.number == number)


def datasets(home: Path) -> list[str]:
    return [session["dataset"] for session in keeper.status(home)["sessions"]]


def test_a_client_is_killed_and_the_others_get_their_answers(home: Path) -> None:
    wish = ("spawn", "all", "--clients", "4", "--stagger", "0.2", "--rows", "20000")
    with subprocess.Popen(command(home, "clients", *wish), cwd=ROOT, stdout=subprocess.PIPE, text=True) as spawning:
        wait_until(lambda: "flights" in datasets(home), seconds=60, otherwise="its session was never there")
        client(home, VICTIM).process.send(signal.SIGSTOP)
        wait_until(lambda: client(home, VICTIM).state == "paused", seconds=60, otherwise="SIGSTOP had no effect")
        subprocess.run(command(home, "clients", "kill", str(VICTIM)), cwd=ROOT, check=True, timeout=60)
        said, _ = spawning.communicate(timeout=180)
    assert spawning.returncode == 1
    states = {each.number: each.state for each in known(home)}
    assert states == {0: "right", VICTIM: "SIGKILL", 2: "right", 3: "right"}, said
    assert f"client {VICTIM}: SIGKILL after" in said
    wait_until(lambda: not datasets(home), seconds=120, otherwise="the session of the killed client is still there")
    again = subprocess.run(
        command(home, "clients", "kill", str(VICTIM)), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (again.returncode, again.stdout) == (2, "")
    assert f"no client {VICTIM} is running" in again.stderr
