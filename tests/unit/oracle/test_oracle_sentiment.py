"""The oracle's own model: both labels, the same each time, whatever came before."""

import json
import shutil
from pathlib import Path

import pytest

from cauce.errors import ConfigError
from infra.oracle.sentiment import DEFAULT_MODEL, MODELS, Sentiment

GOOD = "A wonderful, charming and funny story of love and friendship."
BAD = "A terrible, boring mess of violence and despair."


@pytest.fixture(scope="module")
def sentiment() -> Sentiment:
    return Sentiment()


def test_both_labels(sentiment: Sentiment) -> None:
    assert [sentiment(GOOD), sentiment(BAD)] == ["POSITIVE", "NEGATIVE"]


def test_a_label_depends_on_its_text_alone(sentiment: Sentiment) -> None:
    before = sentiment.logits(GOOD)
    sentiment.logits(BAD * 40)
    assert sentiment.logits(GOOD) == before == Sentiment().logits(GOOD)


def test_a_long_text_is_cut_where_the_model_ends(sentiment: Sentiment) -> None:
    assert sentiment.logits("good " * 254) == sentiment.logits("good " * 254 + BAD * 100)
    assert sentiment.logits("good " * 253) != sentiment.logits("good " * 253 + BAD * 100)


@pytest.mark.parametrize(
    ("logits", "label"), [((0.5, 0.5), "NEGATIVE"), ((0.5, 0.6), "POSITIVE"), ((1, 0), "NEGATIVE")]
)
def test_equal_logits_are_negative(logits: tuple[float, float], label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sentiment, "logits", lambda *_: logits)
    assert Sentiment()("text") == label


def test_labels_go_by_the_models_own_names(sentiment: Sentiment, tmp_path: Path) -> None:
    shutil.copytree(MODELS / DEFAULT_MODEL, tmp_path / "other")
    config = json.loads((tmp_path / "other/config.json").read_text())
    config["id2label"] = {"0": "POSITIVE", "1": "NEGATIVE"}
    (tmp_path / "other/config.json").write_text(json.dumps(config))
    assert Sentiment(str(tmp_path / "other")).logits(GOOD) == sentiment.logits(GOOD)[::-1]


def test_an_unknown_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no model huge"):
        Sentiment("huge")
