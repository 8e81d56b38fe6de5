"""Does a test notice when one step of the commit is wrong? Each mutant is a copy of the tree with one such mistake.

    .venv/bin/python -m bench.mutants            all of them, about a minute each
    .venv/bin/python -m bench.mutants gate       those with this in their name

Ends with 0 if at least one test fails for every mutant, and none without a mutation.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TESTS: Final = "tests/kill/test_core_worker.py"
LEFT_OUT: Final = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")
SECONDS: Final = 900

SEAL: Final = "        await self._seal()  # 1."
PRODUCE: Final = "        await self._produce_changelog()  # 2."
FLUSH: Final = "        await self._flush()  # 3."
COMMIT: Final = "        await self._commit_transaction()  # 4."
STORE: Final = "        await self._write_store()  # 5."
FLUSH_CALL: Final = "        await self._threaded(self._transaction.flush)\n"
OFFSETS_CALL: Final = (
    "        await self._threaded(lambda: self._transaction.send_offsets(self._offsets, self._member))\n"
)
COMMIT_CALL: Final = "        await self._threaded(self._transaction.commit)\n"
STORE_CALL: Final = "        await self._threaded(self._work.write_stores)\n"


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` becomes `new` in a file; `old` must be there exactly once."""

    name: str
    edits: tuple[tuple[str, str], ...]
    file: str = "streams/checkpoint.py"


def swap(first: str, second: str) -> tuple[tuple[str, str], ...]:
    return ((first, "FIRST"), (second, first), ("FIRST", second))


MUTANTS: Final = (
    Mutant("no mutation", ()),
    Mutant("steps 1 and 2 swapped: changelog, then event boundary", swap(SEAL, PRODUCE)),
    Mutant("steps 2 and 3 swapped: flush, then changelog", swap(PRODUCE, FLUSH)),
    Mutant("steps 3 and 4 swapped: commit, then flush", swap(FLUSH, COMMIT)),
    Mutant("steps 4 and 5 swapped: store, then commit", swap(COMMIT, STORE)),
    Mutant("flush skipped", ((FLUSH_CALL, ""),)),
    Mutant("offsets left out", ((OFFSETS_CALL, ""),)),
    Mutant("store written before commit", ((STORE_CALL, ""), (COMMIT_CALL, STORE_CALL + COMMIT_CALL))),
    Mutant("gate left open", (("    async def reach_event_boundary(self) -> None:\n        self.gate.close()\n",
                               "    async def reach_event_boundary(self) -> None:\n"),), "streams/engine.py"),
)  # fmt: skip


def main(wanted: Iterable[str]) -> int:
    patterns = list(wanted)
    chosen = [m for m in MUTANTS if not patterns or any(pattern in m.name for pattern in patterns)]
    wrong = 0
    for mutant in chosen:
        started = time.monotonic()
        failed = run(mutant)
        as_it_should = bool(failed) == bool(mutant.edits)
        wrong += not as_it_should
        verdict = "as it should" if as_it_should else "WRONG"
        print(f"{mutant.name:55} {verdict:13} {time.monotonic() - started:4.0f} s  {failed or 'all pass'}", flush=True)
    return min(wrong, 1)


def run(mutant: Mutant) -> str:
    """The first test that fails on it, or nothing."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        mutate(copy / mutant.file, mutant)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", TESTS]
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        ran = subprocess.run(
            [*command, f"--basetemp={Path(folder) / 'scratch'}"],
            cwd=copy, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    found = re.search(r"^(?:FAILED|ERROR) (?:.*::)?(\S+)", ran.stdout, re.MULTILINE)
    if ran.returncode not in (0, 1) or bool(found) != bool(ran.returncode):
        raise RuntimeError(
            f"{mutant.name}: pytest ended with {ran.returncode}\n{ran.stdout[-4000:]}{ran.stderr[-2000:]}"
        )
    return found[1] if found else ""


def mutate(file: Path, mutant: Mutant) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in mutant.edits:
        if text.count(old) != 1:
            raise RuntimeError(f"{mutant.name}: {file.name} has {text.count(old)} times {old!r}; mend the mutant")
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
