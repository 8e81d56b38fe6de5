"""`cauce upload` in a pipe and on a terminal: the same words, and control codes only where somebody looks."""

import subprocess
import sys
from pathlib import Path

from tests.harness.terminal import COLOUR, CONTROL, on_a_terminal
from tests.unit.client.fake_gateway import Gateway


def words(pair: list[Gateway], movies: Path, out: Path) -> list[str]:
    gateways = [word for gateway in pair for word in ("--gateway", gateway.url)]
    return [sys.executable, "-m", "producer_client", "movies", str(movies), "--out", str(out), *gateways]


def test_in_a_pipe_tables_are_plain_and_there_are_no_bars(pair: list[Gateway], movies: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        words(pair, movies, tmp_path / "out"), capture_output=True, text=True, timeout=120, check=True
    )
    assert "movies-q1" in done.stdout
    assert not CONTROL.search(done.stdout + done.stderr)


def test_with_no_color_a_terminal_gets_bars_without_colours(pair: list[Gateway], movies: Path, tmp_path: Path) -> None:
    assert COLOUR.search(on_a_terminal(words(pair, movies, tmp_path / "coloured")))
    plain = on_a_terminal(words(pair, movies, tmp_path / "plain"), NO_COLOR="1")
    assert "ratings.csv" in plain
    assert not COLOUR.search(plain)
