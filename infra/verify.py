"""Answers that were written, against the oracle's, byte by byte.

Invariant: an empty list of differences means that every answer file is there and holds the oracle's bytes, no more.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from cauce.errors import ConfigError
from cauce.query_names import full_name
from infra.oracle.datasets import ORACLES, Oracle
from infra.oracle.movies import Scope
from infra.oracle.rows import Counts
from infra.oracle.sentiment import DEFAULT_MODEL, Sentiment

REPORT = "report.json"
NOTHING = "(nothing: it is not there)"


@dataclass(frozen=True, slots=True)
class Difference:
    """The first line where a file is not the oracle's; None stands for a file or a line that is not there."""

    file: str
    line: int | None
    expected: str | None
    found: str | None


@dataclass(frozen=True, slots=True)
class Options:
    """What the answers were asked for with."""

    scope: Scope
    model: str
    answers: tuple[str, ...]  # the files of the queries that were asked for


def verify(
    dataset: str, folder: Path, results: Path, scope: str | None = None, queries: Sequence[str] = ()
) -> list[Difference]:
    """Compares the answers in `results` with those of a fresh pass over `folder`. `scope` and `queries` win over
    what report.json says; where neither names queries, all answers have to be there."""
    if dataset not in ORACLES:
        raise ConfigError(f"there is no dataset {dataset}; there are {', '.join(ORACLES)}")
    oracle = ORACLES[dataset]
    for place in (folder, results):
        if not place.is_dir():
            raise ConfigError(f"{place} is not a folder; give the folder of the files, then the one of the answers")
    report = read_report(results / REPORT)
    if report.get("dataset", dataset) != dataset:
        raise ConfigError(f"{results} holds answers for {report['dataset']}, not {dataset}; name that dataset instead")
    options = read_options(dataset, report, scope, queries)
    for name in oracle.missing(folder, options.answers):  # said now, not after a minute of reading the others
        raise ConfigError(f"{folder / name} is missing; give the folder of the uploaded files")
    truth = oracle.answer(folder, options.scope, Sentiment(options.model), options.answers)
    return [
        *compare_files(results, truth.files),
        *(() if queries else not_asked_for(results, oracle, options.answers)),
        *compare_counts(report, oracle, truth.counts),
    ]


def compare_files(results: Path, expected: dict[str, bytes]) -> Iterator[Difference]:
    for name, content in expected.items():
        path = results / name
        if not path.is_file():
            yield Difference(name, None, f"a file of {len(content)} bytes", None)
        elif difference := first_difference(name, content, path.read_bytes()):
            yield difference


def not_asked_for(results: Path, oracle: Oracle, asked: Sequence[str]) -> Iterator[Difference]:
    """Finds answers to queries that the report does not name: they are left from another run, or a fault."""
    for name in oracle.answers:
        if name not in asked and (results / name).exists():
            found = f"a file of {(results / name).stat().st_size} bytes"
            yield Difference(name, None, "no file, for the query was not asked for", found)


def first_difference(name: str, expected: bytes, found: bytes) -> Difference | None:
    pairs = itertools.zip_longest(as_lines(expected), as_lines(found))
    for number, (ours, theirs) in enumerate(pairs, start=1):
        if ours != theirs:
            return Difference(name, number, as_line(ours), as_line(theirs))
    return None


def as_lines(content: bytes) -> list[bytes]:
    """Lines with their end, so that a missing or another line end is a difference; split at `\\n` alone."""
    parts = content.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def as_line(line: bytes | None) -> str | None:
    """A line for people: the end that every line should have is left out, another one shows."""
    if line is None:
        return None
    if not line.endswith(b"\n"):
        return line.decode(errors="backslashreplace") + " (no line end)"
    return line[:-1].decode(errors="backslashreplace").replace("\r", "\\r")


def compare_counts(report: dict[str, Any], oracle: Oracle, counts: dict[str, Counts]) -> Iterator[Difference]:
    """Rows read, rejected and folded of each kind of file; by which reasons is the product's own matter."""
    for stage in report.get("stages") or []:
        try:
            kind, rows, rejected = stage["kind"], stage["rows"], sum(stage["rejected"].values())
            sent, folded = stage["sent"], stage["folded"]
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{REPORT}: a stage lacks something; remove it to verify without") from error
        # Stages between the workers have no file, and files that no query reads are not read here either.
        if oracle.files.get(kind) not in counts:
            continue
        count = counts[oracle.files[kind]]
        if (count.rows, count.rejected) != (rows, rejected):
            expected = f"{kind}: {count.rows} rows, {count.rejected} rejected"
            yield Difference(REPORT, None, expected, f"{kind}: {rows} rows, {rejected} rejected")
        if sent != folded:
            yield Difference(REPORT, None, f"{kind}: {sent} rows sent and folded", f"{kind}: {folded} rows folded")


def compared(dataset: str, results: Path, queries: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns the answer files that `verify` compares there."""
    return read_options(dataset, read_report(results / REPORT), None, queries).answers


def describe(dataset: str, differences: list[Difference], answers: Sequence[str] = ()) -> str:
    """Writes for people: a line for each file that is the same, three for a difference."""
    lines = []
    same = answers or ORACLES[dataset].answers
    for name in (*ORACLES[dataset].answers, REPORT):
        here = [difference for difference in differences if difference.file == name]
        if not here and name in same:
            lines.append(f"{name}  same")
        for difference in here:
            lines.append(f"{name}  differs" + (f", line {difference.line}" if difference.line else ""))
            lines.append(f"    expected  {NOTHING if difference.expected is None else difference.expected}")
            lines.append(f"    found     {NOTHING if difference.found is None else difference.found}")
    return "\n".join(lines)


def as_json(dataset: str, differences: list[Difference], answers: Sequence[str]) -> str:
    """Writes for programs: which answers are the same, and every difference."""
    differing = {difference.file for difference in differences}
    same = {name.removesuffix(".csv"): name not in differing for name in answers}
    found = [asdict(difference) for difference in differences]
    return json.dumps({"dataset": dataset, "same": not found, "queries": same, "differences": found})


def read_report(path: Path) -> dict[str, Any]:
    """report.json, or nothing where there is none: answers may be verified without."""
    if not path.is_file():
        return {}
    try:
        report = json.loads(path.read_bytes())
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}; remove it to verify without it") from error
    if not isinstance(report, dict):
        raise ConfigError(f"{path} is not a JSON object; remove it to verify without it")
    return report


def read_options(dataset: str, report: dict[str, Any], scope: str | None, queries: Sequence[str]) -> Options:
    given = report.get("options") or {}
    scope = scope or given.get("scope") or "us"
    answers = answers_of(dataset, queries or given.get("queries") or ())
    for known in get_args(Scope):
        if known == scope:
            return Options(known, given.get("model") or DEFAULT_MODEL, answers)
    raise ConfigError(f"scope {scope} is unknown; use us or all")


def answers_of(dataset: str, queries: Sequence[str]) -> tuple[str, ...]:
    """Returns the answer files of these queries, by their long or short names; without any, all of the dataset."""
    known = ORACLES[dataset].answers
    wanted = {f"{full_name(dataset, query)}.csv" for query in queries}
    if unknown := sorted(wanted.difference(known)):
        names = ", ".join(name.removesuffix(".csv") for name in known)
        raise ConfigError(f"{unknown[0].removesuffix('.csv')} is no query of {dataset}; there are {names}")
    return tuple(name for name in known if name in wanted) or known
