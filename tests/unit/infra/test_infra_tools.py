"""What is added to a tool's own arguments, and how credentials reach Java."""

import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from cauce.errors import ConfigError
from cauce.settings import Settings
from infra.tools import TOOLS, complete, escape, java_properties

SECURE = Settings.load(
    bootstrap="kafka.example:9093",
    kafka_security_protocol="SASL_SSL",
    kafka_sasl_mechanism="SCRAM-SHA-512",
    kafka_sasl_username="ana",
    kafka_sasl_password=SecretStr('a"b\\c'),
)


def test_the_address_comes_first_because_some_tools_have_commands() -> None:
    arguments = complete(TOOLS["features"], ["describe"], Settings.load(bootstrap="b:1"))
    assert arguments == ["--bootstrap-server", "b:1", "describe"]


@pytest.mark.parametrize("typed", [["--bootstrap-server", "x:1", "--list"], ["--bootstrap-server=x:1"], ["--help"]])
def test_what_was_typed_wins(typed: list[str]) -> None:
    assert complete(TOOLS["topics"], typed, Settings.load(bootstrap="b:1")) == typed


def test_a_tool_that_reads_files_gets_no_address() -> None:
    assert complete(TOOLS["dump-log"], ["--files", "a.log"], Settings.load(bootstrap="b:1")) == ["--files", "a.log"]


def test_without_a_cluster_the_sentence_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAUCE_BOOTSTRAP", raising=False)
    with pytest.raises(ConfigError, match="cauce up --detach"):
        complete(TOOLS["topics"], ["--list"], Settings.load(home=tmp_path))


def test_credentials_are_spelt_for_java() -> None:
    spelt = java_properties(SECURE)
    assert spelt["security.protocol"] == "SASL_SSL"
    assert spelt["sasl.jaas.config"] == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="ana" password="a\\"b\\\\c";'
    )


def test_credentials_are_in_a_file_without_a_name() -> None:
    arguments = complete(TOOLS["topics"], ["--list"], SECURE)
    assert arguments[:3] == ["--bootstrap-server", "kafka.example:9093", "--command-config"]
    with Path(arguments[3]).open("rb") as handle:  # closes only our copy of it
        assert b"sasl.mechanism=SCRAM-SHA-512\n" in handle.read()
    os.close(int(Path(arguments[3]).name))


def test_values_survive_javas_way_of_reading_them() -> None:
    assert escape("a\\b\nñ😀") == "a\\\\b\\n\\u00f1\\ud83d\\ude00"
