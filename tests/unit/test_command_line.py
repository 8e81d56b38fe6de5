"""`cauce` teaches: examples that are right, errors that name the next step, completion. And it is quiet in a pipe."""

import os
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cauce.errors import ConfigError
from infra.cli import app
from infra.services import Plan, Shape
from tests.harness.terminal import COLOUR, CONTROL, on_a_terminal

CAUCE = Path(sys.executable).with_name("cauce")
COMMANDS: Any = typer.main.get_command(app)


def cauce(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CAUCE_")}
    return subprocess.run(
        [CAUCE, *words], env={**kept, **variables}, capture_output=True, text=True, timeout=120, check=False
    )


def examples(text: str) -> list[str]:
    """The command lines of a help text, without what is said beside them."""
    found = re.findall(r"^\s*(cauce .+?)(?:\s{2,}.*|\s*\||\s*\\)?$", text, re.MULTILINE)
    return [re.sub(r"\s*\|.*", "", line) for line in found]


def test_help_has_an_example_of_every_command() -> None:
    shown = {shlex.split(line)[1] for line in examples(COMMANDS.help or "")}
    assert shown == COMMANDS.commands.keys()


def all_examples() -> list[str]:
    texts = [COMMANDS.help or "", *(command.help or "" for command in COMMANDS.commands.values())]
    return sorted({line for text in texts for line in examples(text)})


@pytest.mark.parametrize("line", all_examples())
def test_every_example_is_understood(line: str) -> None:
    """Parsed, not run. What `kafka`, `upload` and `run` hand on is others' to understand."""
    command, words = COMMANDS, shlex.split(line)[1:]
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    with command.make_context("cauce", words, ignore_unknown_options=True):
        pass


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["stauts"], r"Did you mean 'status'\?; see `cauce --help`"),
        (["verify"], "Missing argument 'DATASET'; see `cauce verify --help`"),
        (["up", "--brokerz", "3"], "--brokers.*; see `cauce up --help`"),
        (["up", "--brokers", "2"], "3 to survive the loss of one"),
        (["generate", "nope", "x"], "there are movies, flights, coffee"),
        (["upload", "movies"], "Missing argument 'DIR'; see `cauce upload --help`"),
        (["upload", "movies", "nowhere", "--out", "out"], "give the one that holds the CSV files"),
        (["verify", "movies", "nowhere", "out"], "give the folder of the files"),
        (["kafka", "nothing"], "`cauce kafka` lists them"),
        (["inspect", "ratings"], "start one with `cauce up"),
        (["chaos"], "cauce up"),
        (["clients", "spawn", "all"], "cauce up"),
    ],
)
def test_every_error_is_a_sentence_that_names_the_next_step(words: list[str], says: str, tmp_path: Path) -> None:
    done = cauce(*words, CAUCE_HOME=str(tmp_path / "home"))
    assert done.returncode in (1, 2)
    said = done.stderr.strip() or done.stdout.strip()
    assert re.search(says, said), said
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1, said


def test_a_misspelt_variable_is_such_a_sentence_too() -> None:
    done = cauce("status", CAUCE_HOEM="x")
    assert (done.returncode, done.stderr) == (2, "CAUCE_HOEM is no setting of Cauce; did you mean CAUCE_HOME?\n")


def test_a_cluster_of_this_machine_is_not_started_with_a_certificate_that_it_would_not_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAUCE_GATEWAY_TLS_CERTIFICATE", "certificate.pem")
    with pytest.raises(ConfigError, match="unset it, or start gateways by themselves"):
        Plan(tmp_path, Shape()).new_records()


def here(*words: str) -> str:
    """What `cauce` prints, in this process: it is the same, and quicker."""
    done = CliRunner().invoke(app, words, prog_name="cauce")
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_version_is_that_of_the_package() -> None:
    line = f"cauce {metadata.version('cauce')}\n"
    assert here("--version") == line
    assert here("upload", "--version") == line
    command = [sys.executable, "-m", "producer_client", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == line


@pytest.mark.parametrize("words", [[], ["up"], ["upload"], ["run"], ["clients"], ["clients", "spawn"]])
def test_h_is_help_everywhere(words: list[str]) -> None:
    text = here(*words, "-h")
    assert text == here(*words, "--help")
    assert text.startswith(f"Usage: {' '.join(['cauce', *words])} ")


def completed(typed: str) -> list[str]:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
    return cauce(_CAUCE_COMPLETE="complete_bash", **words).stdout.split()


def test_the_shell_completes_commands_options_and_datasets() -> None:
    assert completed("cauce st") == ["status"]
    assert completed("cauce verify ") == ["movies", "flights", "coffee"]
    assert completed("cauce generate c") == ["coffee"]
    assert "--partitions" in completed("cauce up --")


def test_the_script_for_the_shell_is_one_that_bash_understands() -> None:
    search = f"{CAUCE.parent}{os.pathsep}{os.environ['PATH']}"
    script = subprocess.run(
        ["bash", "-c", "cauce --show-completion; exit"],
        env={**os.environ, "PATH": search},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert "_CAUCE_COMPLETE" in script
    checked = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p cauce"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "_cauce_completion" in checked.stdout


def test_in_a_pipe_there_are_no_control_codes_and_no_bars(tmp_path: Path) -> None:
    made = cauce("generate", "coffee", str(tmp_path / "data"), "--rows", "200", TERM="xterm-256color")
    assert (made.returncode, made.stderr) == (0, "")
    for done in (made, cauce("--help"), cauce("status", "--home", str(tmp_path)), cauce("kafka")):
        assert not CONTROL.search(done.stdout + done.stderr)


def test_on_a_terminal_there_are_bars_and_no_color_takes_the_colours_out(tmp_path: Path) -> None:
    words = [str(CAUCE), "generate", "coffee", str(tmp_path / "data"), "--rows", "2000"]
    assert COLOUR.search(on_a_terminal(words))
    plain = on_a_terminal(words, NO_COLOR="1")
    assert not COLOUR.search(plain)
    assert "transactions" in plain
