"""Labels of texts by a model: Hugging Face's tokenizer and ONNX Runtime, no torch.

Invariant: a text has the same label whatever it travels with. So the model sees one text at a time: padding and
quantisation over a batch would let its company change a label.
"""

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from cauce.errors import ConfigError

log = logging.getLogger(__name__)

ONNX_FILES: Final = ("model.onnx", "onnx/model.onnx")  # ours, and where Hugging Face's exports have it
LABELS: Final = ("NEGATIVE", "POSITIVE")
# Weights that are stored as int8 become floats when the model is loaded, not at every text: a quarter of its time.
WIDENED_ONCE: Final = ("session.disable_quant_qdq", "1")


class Sentiment:
    """The models of this worker, loaded when a film first needs one, in a thread of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._models: dict[str, Model] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sentiment")

    async def label(self, rows: pa.Table, model: str) -> pa.Table:
        texts = [str(text) for text in rows.column("overview").to_pylist()]
        labels = await asyncio.get_running_loop().run_in_executor(self._thread, self._labels, model, texts)
        return rows.append_column("label", pa.array(labels, pa.string()))

    def _labels(self, name: str, texts: list[str]) -> list[str]:
        if name not in self._models:
            self._models[name] = load(self._folder, name)
        return self._models[name].labels(texts)


class Model:
    def __init__(self, tokenizer: Any, session: Any, labels: list[str], longest: int) -> None:
        self._tokenizer = tokenizer
        self._session = session
        self._wanted = {each.name for each in session.get_inputs()}
        self._labels = labels
        self._longest = longest

    def labels(self, texts: list[str]) -> list[str]:
        """All are cut into pieces in one call, without padding, which takes half as long; the model sees one by one."""
        encoded = self._tokenizer(texts, truncation=True, max_length=self._longest)
        columns = [name for name in encoded if name in self._wanted]
        return [self._label({name: encoded[name][place] for name in columns}) for place in range(len(texts))]

    def _label(self, pieces: Mapping[str, list[int]]) -> str:
        inputs = {name: np.array([numbers], np.int64) for name, numbers in pieces.items()}
        logits = self._session.run(None, inputs)[0][0]
        negative, positive = (logits[self._labels.index(label)] for label in LABELS)
        return "POSITIVE" if positive > negative else "NEGATIVE"


def load(folder: Path, name: str) -> Model:
    """A folder beside ours, or whatever Hugging Face knows by that name and has an ONNX export of."""
    import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415 a second at every start, and only films need it

    started = time.monotonic()
    here = folder / name
    source = here if here.is_dir() else fetched(name)
    config = json.loads((source / "config.json").read_text())
    labels = [config["id2label"][str(number)].upper() for number in range(len(config["id2label"]))]
    if sorted(labels) != list(LABELS):
        raise ConfigError(f"model {name} has the labels {labels}; wanted is one with POSITIVE and NEGATIVE")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the cores belong to the folds; and one thread adds up in one order
    options.add_session_config_entry(*WIDENED_ONCE)
    session = onnxruntime.InferenceSession(str(onnx_file(source, name)), options, providers=["CPUExecutionProvider"])
    tokenizer = load_tokenizer(source)
    longest = min(config.get("max_position_embeddings", 512), tokenizer.model_max_length)
    log.info("model loaded", extra={"model": name, "seconds": round(time.monotonic() - started, 2)})
    return Model(tokenizer, session, labels, longest)


def load_tokenizer(source: Path) -> Any:
    """By the class that reads tokenizer.json, where there is one: to find out which class a model wants takes twice as
    long to import."""
    if (source / "tokenizer.json").exists():
        from transformers import PreTrainedTokenizerFast  # noqa: PLC0415 as above

        return PreTrainedTokenizerFast.from_pretrained(str(source))
    from transformers import AutoTokenizer  # noqa: PLC0415

    return AutoTokenizer.from_pretrained(str(source))


def fetched(name: str) -> Path:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 rarely needed

    try:
        folder = snapshot_download(name, allow_patterns=["*.json", "*.txt", *ONNX_FILES])
    except Exception as error:
        raise ConfigError(f"model {name} is not in the models folder and cannot be fetched: {error}") from error
    return Path(folder)


def onnx_file(source: Path, name: str) -> Path:
    for each in ONNX_FILES:
        if (source / each).exists():
            return source / each
    raise ConfigError(f"model {name} has no ONNX export ({' or '.join(ONNX_FILES)}); choose one that has")
