"""Traces: off they cost nothing and change nothing; on, a parent's id goes along."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cauce import tracing
from cauce.errors import ConfigError

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_off_nothing_is_imported_nothing_is_sent_and_a_span_is_always_the_same_nothing() -> None:
    code = (
        "import sys; from cauce import tracing; tracing.start(None, 'x');"
        "span = tracing.span('x', {'traceparent': 'y'}, a=1); span.__enter__();"
        "assert tracing.span('z') is span and tracing.headers() == {} and tracing.record_headers() == [];"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_on_a_child_has_its_parents_trace_and_both_are_lines_of_a_file(tmp_path: Path) -> None:
    spans = tracing.Tracing(f"file:{tmp_path / 'spans'}", "tester")
    with spans.span("outer", {"traceparent": PARENT.encode()}, client_id="ada"), spans.span("inner", spans.headers()):
        assert spans.headers()["traceparent"].split("-")[1] == PARENT.split("-")[1]
    inner, outer = (json.loads(line) for line in (tmp_path / "spans").read_text().splitlines())
    assert (outer["name"], outer["service"], outer["client_id"]) == ("outer", "cauce-tester", "ada")
    assert {inner["trace_id"], outer["trace_id"]} == {PARENT.split("-")[1]}
    assert outer["parent_id"] == PARENT.split("-")[2]
    assert inner["parent_id"] == outer["span_id"]


@pytest.mark.parametrize("nonsense", ["", "x", "00-0-0-0", "\xff", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_a_parent_that_is_none_begins_a_trace(tmp_path: Path, nonsense: str) -> None:
    spans = tracing.Tracing(f"file:{tmp_path / 'spans'}", "tester")
    with spans.span("outer", {"traceparent": nonsense.encode()}):
        pass
    (line,) = (tmp_path / "spans").read_text().splitlines()
    assert json.loads(line)["parent_id"] is None


@pytest.mark.parametrize("where", ["collector:4318", "file:/nowhere/at/all"])
def test_a_place_that_is_none_is_one_sentence(where: str) -> None:
    with pytest.raises(ConfigError, match="CAUCE_TRACE"):
        tracing.Tracing(where, "tester")


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError, match=r"pip install cauce\[trace\]"):
        tracing.Tracing("file:/dev/null", "tester")
