"""Models besides our own: a folder or a Hugging Face id, in its layout, with its labels; and why one cannot be used."""

import asyncio
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from agents.sentiment import Sentiment
from cauce.errors import ConfigError

MODELS = Path(__file__).parents[3] / "models"
TEXTS = ["A wonderful, warm and happy film about love.", "A terrible murder, and a cruel, hopeless death."]


def labels(folder: Path, model: str, texts: list[str] | None = None) -> list[str]:
    rows = pa.table({"overview": texts or TEXTS})
    return [str(label) for label in asyncio.run(Sentiment(folder).label(rows, model))["label"].to_pylist()]


def lay_out(folder: Path, id2label: dict[str, str]) -> None:
    """Our model as Hugging Face's exports lie, with other labels."""
    shutil.copytree(MODELS / "tiny-sentiment", folder)
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"id2label": id2label}))


@pytest.fixture
def ours() -> list[str]:
    found = labels(MODELS, "tiny-sentiment")
    assert sorted(found) == ["NEGATIVE", "POSITIVE"], "the texts tell nothing"
    return found


def test_a_folder_in_the_layout_of_hugging_face_counts_with_its_own_labels(tmp_path: Path, ours: list[str]) -> None:
    config = json.loads((MODELS / "tiny-sentiment" / "config.json").read_text())
    lay_out(tmp_path / "same", config["id2label"])
    lay_out(tmp_path / "turned", {"0": config["id2label"]["1"].lower(), "1": config["id2label"]["0"].lower()})
    assert labels(tmp_path, "same") == ours
    assert labels(tmp_path, "turned") == ours[::-1]


def test_an_id_of_hugging_face_is_found_in_its_cache(
    tmp_path: Path, ours: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it lies there after a download; no network here."""
    repository = tmp_path / "hub" / "models--acme--feelings"
    lay_out(repository / "snapshots" / "0123abcd", {"0": "NEGATIVE", "1": "POSITIVE"})
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123abcd")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert labels(MODELS, "acme/feelings") == ours
    with pytest.raises(ConfigError, match="acme/other is not in the models folder and cannot be fetched"):
        labels(MODELS, "acme/other")


def test_a_label_does_not_depend_on_the_company(ours: list[str]) -> None:
    many = TEXTS * 3 + ["", "x " * 2000, *TEXTS]
    assert labels(MODELS, "tiny-sentiment", many)[-2:] == ours
    assert labels(MODELS, "tiny-sentiment", many)[:2] == ours


def test_a_model_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    lay_out(tmp_path / "stars", {"0": "1 star", "1": "5 stars"})
    with pytest.raises(ConfigError, match=r"has the labels .*1 STAR.* wanted is one with POSITIVE and NEGATIVE"):
        labels(tmp_path, "stars")
    lay_out(tmp_path / "torch-only", {"0": "NEGATIVE", "1": "POSITIVE"})
    shutil.rmtree(tmp_path / "torch-only" / "onnx")
    with pytest.raises(ConfigError, match="has no ONNX export"):
        labels(tmp_path, "torch-only")
