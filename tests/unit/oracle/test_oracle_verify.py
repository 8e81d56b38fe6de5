"""`cauce verify` notices a byte, a line, a file; and says what it could not read."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cauce.errors import ConfigError
from infra.generate.movies import generate
from infra.oracle import movies
from infra.oracle.rows import Answers
from infra.oracle.sentiment import Sentiment
from infra.verify import Difference, as_json, compared, describe, first_difference, verify


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    generate(folder, rows=2000, seed=3)
    return folder


@pytest.fixture(scope="module")
def truth(files: Path) -> Answers:
    return movies.answer(files, "us", Sentiment())


@pytest.fixture
def results(truth: Answers, tmp_path: Path) -> Path:
    for name, content in truth.files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def write_report(results: Path, **report: object) -> None:
    (results / "report.json").write_text(json.dumps(report))


def test_the_same_bytes_have_no_difference(files: Path, results: Path) -> None:
    assert verify("movies", files, results) == []
    assert describe("movies", []).splitlines() == [f"movies-q{number}.csv  same" for number in range(1, 6)]


def test_a_changed_byte(files: Path, results: Path) -> None:
    path = results / "movies-q2.csv"
    good = path.read_text().splitlines()
    path.write_text("\n".join([*good[:2], good[2] + "0", *good[3:], ""]))
    assert verify("movies", files, results) == [Difference("movies-q2.csv", 3, good[2], good[2] + "0")]


def test_a_missing_file(files: Path, results: Path) -> None:
    (results / "movies-q4.csv").unlink()
    [difference] = verify("movies", files, results)
    assert (difference.file, difference.line, difference.found) == ("movies-q4.csv", None, None)


def test_swapped_rows(files: Path, results: Path) -> None:
    path = results / "movies-q3.csv"
    header, highest, lowest = path.read_text().splitlines()
    path.write_text(f"{header}\n{lowest}\n{highest}\n")
    assert verify("movies", files, results) == [Difference("movies-q3.csv", 2, highest, lowest)]


@pytest.mark.parametrize(
    ("found", "line", "ours", "theirs"),
    [
        (b"a\nb", 2, "b", "b (no line end)"),
        (b"a\r\nb\n", 1, "a", "a\\r"),
        (b"a\n", 2, "b", None),
        (b"a\nb\nc\n", 3, None, "c"),
        (b"", 1, "a", None),
        (b"\xff\nb\n", 1, "a", "\\xff"),
    ],
)
def test_the_first_line_that_differs(found: bytes, line: int, ours: str | None, theirs: str | None) -> None:
    assert first_difference("x", b"a\nb\n", found) == Difference("x", line, ours, theirs)


def test_scope_comes_from_the_report_unless_it_is_given(files: Path, results: Path) -> None:
    write_report(results, options={"scope": "all", "model": "tiny-sentiment"})
    assert [difference.file for difference in verify("movies", files, results)] == ["movies-q5.csv"]
    assert verify("movies", files, results, scope="us") == []


def test_counts_of_the_report_are_compared_in_total(files: Path, results: Path, truth: Answers) -> None:
    count = truth.counts["credits.csv"]
    rejected = {"one": 1, "rest": count.rejected - 1}
    stage = {"kind": "credits", "rows": count.rows, "rejected": rejected, "sent": 9, "folded": 9}
    between = {"kind": "overviews", "rows": 0, "rejected": {}, "sent": 0, "folded": 7}
    write_report(results, stages=[stage, between])
    assert verify("movies", files, results) == []
    write_report(results, stages=[stage | {"rejected": {"one": 1}}])
    [difference] = verify("movies", files, results)
    assert (difference.file, difference.found) == ("report.json", f"credits: {count.rows} rows, 1 rejected")
    write_report(results, stages=[stage | {"folded": 8}])
    [difference] = verify("movies", files, results)
    assert difference.found == "credits: 8 rows folded"


def test_what_cannot_be_verified_is_said_in_a_sentence(files: Path, results: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no dataset tea"):
        verify("tea", files, results)
    with pytest.raises(ConfigError, match="nowhere is not a folder"):
        verify("movies", files, tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"movies_metadata\.csv is missing"):
        verify("movies", results, results)
    with pytest.raises(ConfigError, match="scope eu is unknown"):
        verify("movies", files, results, scope="eu")
    for text, sentence in (("{", "not JSON"), ("[]", "not a JSON object"), ('{"dataset": "coffee"}', "for coffee")):
        (results / "report.json").write_text(text)
        with pytest.raises(ConfigError, match=sentence):
            verify("movies", files, results)
    write_report(results, options={"model": "huge"})
    with pytest.raises(ConfigError, match="no model huge"):
        verify("movies", files, results)


def test_exit_codes_of_the_command(files: Path, results: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "infra", "verify", "movies", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    good = run(str(files), str(results), "--json")
    assert (good.returncode, json.loads(good.stdout)["same"]) == (0, True)
    shutil.copy(results / "movies-q1.csv", results / "movies-q2.csv")
    bad = run(str(files), str(results))
    assert (bad.returncode, "movies-q2.csv  differs, line 1" in bad.stdout) == (1, True)
    wrong = run(str(files), str(results / "nowhere"))
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_what_was_asked_for_is_compared_and_nothing_else(files: Path, results: Path, tmp_path: Path) -> None:
    for number in (2, 3, 4):
        (results / f"movies-q{number}.csv").unlink()
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(files / "movies_metadata.csv", data)  # the other files were not sent
    assert len(verify("movies", files, results)) == 3
    assert verify("movies", data, results, queries=["q1", "movies-q5"]) == []
    write_report(results, options={"queries": ["movies-q1", "movies-q5"]})
    assert verify("movies", data, results) == []
    same = compared("movies", results)
    assert describe("movies", [], same).splitlines() == ["movies-q1.csv  same", "movies-q5.csv  same"]
    assert json.loads(as_json("movies", [], same))["queries"] == {"movies-q1": True, "movies-q5": True}
    write_report(results, options={"queries": ["movies-q1"]})
    [left] = verify("movies", data, results)
    assert (left.file, left.expected) == ("movies-q5.csv", "no file, for the query was not asked for")
    assert "movies-q5.csv  differs" in describe("movies", [left], compared("movies", results))
    write_report(results, options={"queries": ["movies-q3"]})
    with pytest.raises(ConfigError, match=r"ratings.csv is missing"):
        verify("movies", data, results)
    with pytest.raises(ConfigError, match="movies-q6 is no query of movies; there are movies-q1, "):
        verify("movies", data, results, queries=["q6"])
