"""The label of an overview, by a model in a folder: config.json, tokenizer.json, model.onnx.

Invariant: one text a call, one thread, float compute, so a label depends on its text alone.
"""

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it ships no types; `_session` is the doorway
from tokenizers import Tokenizer

from cauce.errors import ConfigError
from infra.oracle.movies import LABELS, Label

MODELS = Path(__file__).resolve().parents[2] / "models"
DEFAULT_MODEL = "tiny-sentiment"
MODEL_FILES = ("config.json", "tokenizer.json", "model.onnx")


class Sentiment:
    """Call it with a text. The model is loaded at the first call: a folder without such films never needs it."""

    def __init__(self, model: str = DEFAULT_MODEL) -> None:
        self.folder = find_model(model)
        config = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
        self._labels: list[str] = [config["id2label"][number] for number in ("0", "1")]
        if sorted(self._labels) != sorted(LABELS):
            raise ConfigError(f"{self.folder}/config.json: labels {self._labels}; a model with {LABELS} is needed")
        self._most_tokens: int = config["max_position_embeddings"]

    def __call__(self, text: str) -> Label:
        negative, positive = self.logits(text)
        return "POSITIVE" if positive > negative else "NEGATIVE"

    def logits(self, text: str) -> tuple[float, float]:
        """NEGATIVE, then POSITIVE."""
        tokens = self._tokenizer.encode(text)
        offered = {
            "input_ids": tokens.ids,
            "attention_mask": tokens.attention_mask,
            "token_type_ids": tokens.type_ids,
        }
        inputs = {entry.name: np.array([offered[entry.name]], dtype=np.int64) for entry in self._session.get_inputs()}
        found = self._session.run(None, inputs)[0][0]
        return float(found[self._labels.index("NEGATIVE")]), float(found[self._labels.index("POSITIVE")])

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokenizer.enable_truncation(self._most_tokens)
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.disable_quant_qdq", "1")  # as workers do: the seventh digit differs
        return onnxruntime.InferenceSession(
            str(self.folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )


def find_model(model: str) -> Path:
    """A folder by its path, or by its name among the models of this repository."""
    for folder in (Path(model), MODELS / model):
        if all((folder / name).is_file() for name in MODEL_FILES):
            return folder
    raise ConfigError(f"no model {model}: neither it nor {MODELS / model} is a folder with {', '.join(MODEL_FILES)}")
