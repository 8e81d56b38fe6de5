"""The jars are whole and the pinned ones, or they are not there. Maven is a small script here."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cauce.errors import ConfigError
from infra.jars import KAFKA, KAFKA_VERSION, Recipe, ensure_jars

CONTENT = b"not really a jar"

FAKE_MAVEN = """#!/bin/sh
for argument in "$@"; do
  case "$argument" in -DoutputDirectory=*) into="${argument#*=}" ;; esac
done
echo ran >> "$CALLS"
printf 'not really ' > "$into/a.jar"
sleep 0.1
printf 'a jar' >> "$into/a.jar"
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake mvn first on PATH; the file counts how often it ran."""
    programs = tmp_path / "bin"
    programs.mkdir()
    maven = programs / "mvn"
    maven.write_text(FAKE_MAVEN)
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


def recipe(folder: Path, content: bytes = CONTENT) -> Recipe:
    manifest = folder / "jars.sha256"
    manifest.write_text(f"{hashlib.sha256(content).hexdigest()}  a.jar\n")
    return Recipe(folder / "pom.xml", manifest)


def test_jars_are_fetched_once(tmp_path: Path, calls: Path) -> None:
    folder = ensure_jars(tmp_path / "cache", recipe(tmp_path))
    assert (folder / "a.jar").read_bytes() == CONTENT
    assert ensure_jars(tmp_path / "cache", recipe(tmp_path)) == folder
    assert calls.read_text().split() == ["ran"]


def test_a_jar_that_is_not_the_pinned_one_is_refused(tmp_path: Path, calls: Path) -> None:
    with pytest.raises(ConfigError, match=r"wrong digest: a\.jar"):
        ensure_jars(tmp_path / "cache", recipe(tmp_path, b"another jar"))
    assert [file.name for file in (tmp_path / "cache").iterdir()] == ["jars.lock"]


def test_a_damaged_jar_is_fetched_again(tmp_path: Path, calls: Path) -> None:
    folder = ensure_jars(tmp_path / "cache", recipe(tmp_path))
    (folder / "a.jar").write_bytes(b"cut sho")
    assert (ensure_jars(tmp_path / "cache", recipe(tmp_path)) / "a.jar").read_bytes() == CONTENT
    assert calls.read_text().split() == ["ran", "ran"]


def test_set_ups_at_the_same_moment_fetch_once_and_all_see_whole_jars(tmp_path: Path, calls: Path) -> None:
    wanted = recipe(tmp_path)
    code = (
        "import sys; from pathlib import Path; from infra.jars import Recipe, ensure_jars\n"
        "cache, pom, manifest = map(Path, sys.argv[1:])\n"
        "print((ensure_jars(cache, Recipe(pom, manifest)) / 'a.jar').read_text())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "cache"), str(wanted.pom), str(wanted.manifest)]
    setups = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[3])
        for _ in range(4)
    ]
    assert [setup.communicate()[0].strip() for setup in setups] == [CONTENT] * 4
    assert calls.read_text().split() == ["ran"]


def test_what_a_killed_set_up_left_is_cleared_away(tmp_path: Path, calls: Path) -> None:
    left = tmp_path / "cache" / "making-abc"
    left.mkdir(parents=True)
    (left / "a.jar").write_bytes(b"half")
    ensure_jars(tmp_path / "cache", recipe(tmp_path))
    assert not left.exists()


@pytest.mark.parametrize(("present", "sentence"), [((), "no java on PATH"), (("java",), "no mvn on PATH")])
def test_a_missing_program_is_one_sentence_with_the_cure(
    present: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in present:
        (programs / name).write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
        (programs / name).chmod(0o755)
    ran = _set_up(tmp_path, path=str(programs))
    assert ran.returncode == 2
    assert sentence in ran.stderr
    assert "install it: " in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_old_java_is_refused(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'java version \"1.8.0_292\"' >&2\n")
    java.chmod(0o755)
    ran = _set_up(tmp_path, path=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert ran.returncode == 2
    assert f"Java 17 or newer and {java} is 8" in ran.stderr


def test_the_version_is_the_same_in_pom_code_and_manifest() -> None:
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    version = ET.parse(KAFKA.pom).getroot().findtext("m:properties/m:kafka.version", namespaces=space)  # noqa: S314  (our own file)
    assert version == KAFKA_VERSION
    assert f"kafka_2.13-{KAFKA_VERSION}.jar" in KAFKA.digests()


def _set_up(folder: Path, path: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": path, "CAUCE_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "infra.jars"]
    return subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False
    )
