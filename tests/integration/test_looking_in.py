"""Looking into a session from outside: Kafka's own console consumer, and `cauce inspect`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.cluster import Cluster
from infra.generate.movies import generate
from queries.movies import MOVIES_DATASET
from tests.harness.stack import Stack, answers, session

pytestmark = pytest.mark.kafka


def test_an_answer_is_found_with_kafkas_own_tool_and_batches_are_readable(
    kafka: Cluster, prefix: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    generate(data, rows=2000, seed=3)
    with Stack(kafka, prefix, tmp_path, workers=1, gateways=1, partitions=2) as stack, session(stack) as opened:
        opened.upload(data)
        expected = answers(opened, tmp_path / "out")

        told = cauce(
            *("kafka", "--home", str(tmp_path), "console-consumer", "--bootstrap-server", kafka.bootstrap),
            *("--topic", f"{prefix}answers", "--from-beginning", "--isolation-level", "read_committed"),
            *("--max-messages", str(len(expected) + len(MOVIES_DATASET.all_files))),  # and how much was folded
        )
        done = [answer for answer in map(json.loads, told) if answer["state"] == "done"]
        found = {f"{answer['query']}.csv": answer["csv"].encode() for answer in done}
        assert found == expected

        about = inspect(kafka, prefix, "ratings", "--client", opened.client_id)
        assert {each["headers"]["kind"] for each in about} == {"batch", "end"}
        assert sum(int(each["headers"]["rows"]) for each in about if each["headers"]["kind"] == "batch") > 1900
        assert all(each["key"] == opened.client_id for each in about)
        first = next(each for each in about if each["headers"]["kind"] == "batch")
        assert set(first["value"][0]) == {"movie_id", "half_stars", "rows"}
        assert inspect(kafka, prefix, "ratings", "--client", "nobody") == []
        uploads = inspect(kafka, prefix, "uploads")
        assert {each["value"]["name"] for each in uploads} == {path.name for path in data.iterdir()}


def inspect(kafka: Cluster, prefix: str, *arguments: str) -> list[dict[str, Any]]:
    lines = cauce("inspect", *arguments, "--json", CAUCE_BOOTSTRAP=kafka.bootstrap, CAUCE_TOPIC_PREFIX=prefix)
    return [json.loads(line) for line in lines]


def cauce(*arguments: str, **variables: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-m", "infra", *arguments],
        env={**os.environ, **variables}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()
