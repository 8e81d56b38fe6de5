"""Generated files: the same bytes for a seed, the shape of the real ones, rows for every query."""

import csv
import hashlib
from pathlib import Path

import numpy as np
import pytest

from cauce.errors import ConfigError
from infra.generate.draw import Draw
from infra.generate.films import film_count
from infra.generate.movies import generate
from infra.generate.ratings import skewed
from infra.oracle import movies
from infra.oracle.movies import Label

FILES = {"movies_metadata.csv": 24, "ratings.csv": 4, "credits.csv": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    generate(folder, rows=3000, seed=7)
    return folder


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file) if row]


def test_a_seed_means_the_same_bytes_for_ever(folder: Path) -> None:
    """If this fails, files that others generated before can no longer be made again: change the hash knowingly."""
    digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in sorted(FILES))).hexdigest()
    assert digest == "b5d0a7f72adc0365a5d0e952d2eadd2cc6cbcd701f9c468f0bf244c052e7ef0e"


def test_same_seed_same_bytes_other_seed_other_bytes(folder: Path, tmp_path: Path) -> None:
    generate(tmp_path / "same", rows=3000, seed=7)
    generate(tmp_path / "other", rows=3000, seed=8)
    for name in FILES:
        content = (folder / name).read_bytes()
        assert (tmp_path / "same" / name).read_bytes() == content
        assert (tmp_path / "other" / name).read_bytes() != content


@pytest.mark.parametrize("name", FILES)
def test_most_rows_have_the_columns_of_the_real_file_and_some_do_not(folder: Path, name: str) -> None:
    header, *rows = read(folder / name)
    assert len(header) == FILES[name]
    right = sum(len(row) == len(header) for row in rows)
    assert right > 0.97 * len(rows)
    assert right < len(rows) or name == "ratings.csv"


def test_there_are_as_many_ratings_as_asked_for_and_films_to_match(folder: Path) -> None:
    assert len(read(folder / "ratings.csv")) == 3001
    assert [film_count(rows) for rows in (1, 100_000, 150_000, 26_000_000)] == [200, 200, 300, 45_000]


def test_the_oddities_of_the_real_file_are_there(folder: Path) -> None:
    text = (folder / "movies_metadata.csv").read_text(encoding="utf-8")
    for oddity in ("/ff9q", ",1,", ' - Written by Ørnås"', '""', "\n\n", "日本語", '""Côte d\'Ivoire""'):
        assert oddity in text
    ids = [row[5] for row in read(folder / "movies_metadata.csv") if len(row) == 24]
    assert len(set(ids)) < len(ids)


@pytest.mark.parametrize("seed", range(5))
def test_every_query_has_rows_and_every_file_rejected_ones(tmp_path: Path, seed: int) -> None:
    def label_of(overview: str) -> Label:
        return "POSITIVE" if any(word in overview for word in ("wonderful", "joyful", "warm", "fresh")) else "NEGATIVE"

    generate(tmp_path, rows=3000, seed=seed)
    answers = movies.answer(tmp_path, "us", label_of)
    lines = {name: content.count(b"\n") - 1 for name, content in answers.files.items()}
    assert lines.pop("movies-q1.csv") >= 2
    assert lines == {"movies-q2.csv": 5, "movies-q3.csv": 2, "movies-q4.csv": 10, "movies-q5.csv": 2}
    assert all(0 < count.rejected < count.rows / 10 for count in answers.counts.values())


def test_progress_ends_at_the_number_of_rows(tmp_path: Path) -> None:
    seen: dict[str, tuple[int, int]] = {}
    generate(tmp_path, 500, 1, lambda file, rows, done: seen.update({file: (rows, done)}))
    assert seen == {"movies_metadata.csv": (200, 200), "credits.csv": (200, 200), "ratings.csv": (500, 500)}


def test_a_failure_leaves_the_old_files_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text("old")

    def full(file: str, rows: int, done: int) -> None:
        if file == "ratings.csv":
            raise OSError(28, "No space left on device")

    with pytest.raises(ConfigError, match="No space left"):
        generate(tmp_path, 500, 1, full)
    assert [path.name for path in tmp_path.iterdir()] == ["ratings.csv"]
    assert (tmp_path / "ratings.csv").read_text() == "old"


def test_choices_stay_within_their_limits() -> None:
    draw = Draw(1, "test")
    assert {draw.between(3, 5) for _ in range(200)} == {3, 4, 5}
    assert sorted(draw.shuffled(50)) == list(range(50))
    assert sorted(draw.some("abc", 9)) == ["a", "b", "c"]
    assert skewed(np.array([0, 2**32 - 1]), 47_250).tolist() == [0, 47_249]
