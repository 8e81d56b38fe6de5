"""Kafka's jars: fetched once for the whole machine through Maven, each one checked against a pinned SHA-256.

Invariant: a jar folder that can be seen is whole and verified. It is made under a lock in a folder of another name
and renamed at the end, so two set-ups at once, or one that was killed, cannot leave half of it. The name holds the
digest of the manifest: two clones that pin different jars do not take each other's away.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cauce.errors import CauceError, ConfigError
from cauce.settings import Settings
from infra.java import find_java, find_maven
from infra.processes import leashed

KAFKA_VERSION = "4.3.1"  # the same number is in kafka.pom.xml; a unit test holds the two equal
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.11.0:copy-dependencies"
STAMP = ".verified.json"  # size of every jar, written once all digests were right


@dataclass(frozen=True, slots=True)
class Recipe:
    """Which jars: what Maven fetches, and what must come of it."""

    pom: Path
    manifest: Path
    what: str = f"Apache Kafka {KAFKA_VERSION}"
    folder_name: str = f"kafka-{KAFKA_VERSION}"

    def digests(self) -> dict[str, str]:
        lines = self.manifest.read_text(encoding="utf-8").splitlines()
        return {name: digest for digest, name in (line.split("  ", 1) for line in lines if line)}

    def folder(self, cache: Path) -> Path:
        return cache / f"{self.folder_name}-{hashlib.sha256(self.manifest.read_bytes()).hexdigest()[:8]}"


KAFKA = Recipe(Path(__file__).with_name("kafka.pom.xml"), Path(__file__).with_name("kafka-jars.sha256"))


def ensure_jars(cache: Path, recipe: Recipe = KAFKA) -> Path:
    """The folder with the jars; fetches them if this machine has none that are right."""
    folder = recipe.folder(cache)
    if _intact(folder, recipe):
        return folder
    with _locked(cache):
        if not _intact(folder, recipe):  # another set-up may have finished while we waited
            _make(folder, recipe)
    return folder


def class_path(folder: Path) -> str:
    return str(folder / "*")  # java expands it


def pin(recipe: Recipe = KAFKA) -> int:
    """Write the manifest anew from what Maven gives now; how many jars it holds."""
    with tempfile.TemporaryDirectory() as work:
        _fetch(recipe.pom, Path(work))
        jars = sorted(Path(work).glob("*.jar"))
        recipe.manifest.write_text("".join(f"{_sha256(jar)}  {jar.name}\n" for jar in jars), encoding="utf-8")
    return len(jars)


def _intact(folder: Path, recipe: Recipe) -> bool:
    """A look at names and sizes; all 54 MB were hashed when the folder was made."""
    try:
        sizes: dict[str, int] = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        return sizes.keys() == recipe.digests().keys() and all(
            (folder / name).stat().st_size == size for name, size in sizes.items()
        )
    except (OSError, json.JSONDecodeError):
        return False


@contextlib.contextmanager
def _locked(cache: Path) -> Iterator[None]:
    """One set-up at a time on this machine; it covers Maven's own folder too, which Maven does not guard."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / "jars.lock").open("w")
    except OSError as error:
        raise ConfigError(
            f"cannot write to the cache {cache}: {error.strerror}; set CAUCE_CACHE to a folder of yours"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another set-up is fetching jars; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(folder: Path, recipe: Recipe) -> None:
    for left in folder.parent.glob("making-*"):  # of a set-up that was killed: we hold the lock, so nobody works there
        shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix="making-", dir=folder.parent))
    try:
        _say(f"fetching {recipe.what} through Maven into {folder}")
        _fetch(recipe.pom, work)
        _verify(work, recipe)
        sizes = {jar.name: jar.stat().st_size for jar in work.glob("*.jar")}
        (work / STAMP).write_text(json.dumps(sizes), encoding="utf-8")
        work.chmod(0o755)  # mkdtemp gives 0700
        if folder.exists():  # damaged since: out of the way in one step, so nobody sees a mixture
            os.rename(folder, Path(tempfile.mkdtemp(prefix="making-", dir=folder.parent)) / "damaged")  # noqa: PTH104
        os.rename(work, folder)  # noqa: PTH104  (the one atomic step; named so that nobody mistakes it)
    finally:
        for left in folder.parent.glob("making-*"):
            shutil.rmtree(left, ignore_errors=True)


def _fetch(pom: Path, into: Path) -> None:
    """Maven with strict checksums (-C). It ends with us: nothing may write after the lock is free."""
    java, maven = find_java(), find_maven()
    command = [maven, "-B", "-q", "-C", "-f", str(pom), PLUGIN, "-DincludeScope=runtime", f"-DoutputDirectory={into}"]
    ran = subprocess.run(leashed(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ran.returncode:
        errors = [line.removeprefix("[ERROR]").strip() for line in ran.stdout.splitlines() if "[ERROR]" in line]
        reason = errors[0] if errors else (ran.stderr.strip() or f"exit code {ran.returncode}")
        raise ConfigError(
            f"Maven could not fetch Kafka's jars (java is {java}): {reason}; "
            "check the network and Maven's settings, then run it again"
        )


def _verify(folder: Path, recipe: Recipe) -> None:
    expected, found = recipe.digests(), {jar.name: _sha256(jar) for jar in sorted(folder.glob("*.jar"))}
    if expected == found:
        return
    wrong = sorted(name for name in expected.keys() & found.keys() if expected[name] != found[name])
    missing, extra = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    told = [f"{what} {', '.join(names)}" for what, names in
            (("wrong digest:", wrong), ("missing:", missing), ("not in it:", extra)) if names]  # fmt: skip
    raise ConfigError(
        f"the jars Maven gave do not match {recipe.manifest.name} ({'; '.join(told)}) and were thrown away; "
        "if you changed the pom on purpose run `python -m infra.jars pin`, otherwise clear Maven's local repository"
    )


def _sha256(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    try:
        settings = Settings.load()
        if arguments == ["pin"]:
            _say(f"pinned {pin()} jars in {KAFKA.manifest.name}")
        elif arguments:
            _say("usage: python -m infra.jars [pin]")
            return 2
        else:
            find_java()
            ensure_jars(settings.cache)
    except CauceError as error:
        _say(str(error))
        return 2 if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
