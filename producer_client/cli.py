"""The command `cauce upload`, also `python -m producer_client`.

Invariant: standard output holds tables or JSON, standard error everything else; an error we know is one sentence.
Exit codes: 0 all answers written; 1 a query failed or a file was refused; 2 wrong usage; 3 no gateway reachable;
130 and 143 stopped by Ctrl-C and SIGTERM, to be resumed.
"""

import errno
import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final, Literal

import typer
from rich.console import Console

from cauce import tracing
from cauce.errors import CauceError
from cauce.query_names import split
from cauce.version import version_line
from producer_client import formats, notes, report
from producer_client.errors import ClientError, Unreachable, WrongUsage
from producer_client.folder import Choice, csv_files
from producer_client.gateways import Timing
from producer_client.progress import show_on
from producer_client.run import Order, carry_out

STATUS_SECONDS: Final = 30
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True)
class Caller:
    """Says who runs this command: `cauce upload`, or one that starts a cluster for it."""

    cluster_stays: bool = True  # else nothing can be gone on with
    options: tuple[str, ...] = ()  # of the caller's own, which belong into a command that is shown


def _show_version(wanted: bool) -> None:
    if wanted:
        print(version_line())
        raise typer.Exit


app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def upload(
    context: typer.Context,
    dataset: Annotated[str, typer.Argument(help="movies, flights or coffee.", show_default=False)],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the CSV files are.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where answers and report.json go.", show_default=False)],
    gateway: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="Again for each one there is.", show_default=False)
    ] = None,
    home: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Cluster whose gateways to use; CAUCE_HOME, or .cauce.", show_default=False),
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Authority of the gateways' certificates, as PEM.", show_default=False),
    ] = None,
    queries: Annotated[
        list[str] | None,
        typer.Option(
            metavar="Q,Q…",
            help="Ask for these only: movies-q1, or q1. Files that none of them reads stay here.",
            show_default=False,
        ),
    ] = None,
    scope: Annotated[
        Literal["us", "all"] | None, typer.Option(help="Films of movies-q5; us unless given.", show_default=False)
    ] = None,
    model: Annotated[str | None, typer.Option(help="Sentiment model of movies-q5.", show_default=False)] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=PATH",
            help="Where that kind of file is, if not in DIR; - is standard input.",
            show_default=False,
        ),
    ] = None,
    separator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[KIND=]SIGN",
            help="What separates fields: ',', ';', '|' or tab. Of all files, or of a kind.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the upload that OUT holds.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Give that upload up and begin again.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the session in the cluster until it expires.")] = False,
    patience: Annotated[float, typer.Option(min=0, help="Seconds without progress before giving up.")] = 300,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report instead of the answers.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> int:
    """Send the files of a folder, wait, write the answers. Exit code 0 when every answer is written.

    \b
    cauce upload movies data/movies --out answers            gateways of the cluster in .cauce
    cauce upload movies data/movies --out answers --scope all
    cauce upload movies data/movies --out answers --queries q1,q2        no ratings, no casts, no model
    cauce upload flights data/flights --out answers \\
        --gateway http://10.0.0.1:8080 --gateway http://10.0.0.2:8080
    cauce upload movies data/movies --out answers --gateway https://cauce.example --ca authority.pem
    cauce upload movies data/movies --out answers --resume   after Ctrl-C or a crash
    cauce upload movies data/movies --out answers --json | jq .seconds

    A gateway that dies is replaced by the next one; nothing is sent twice.

    \b
    Files: DIR/ratings.csv, or a folder DIR/ratings/ of them where the dataset has one; or the same packed, as
    ratings.csv.gz or ratings.csv.zst (where the plain one is there too, that is sent). Elsewhere, or otherwise:
    cauce upload movies data --out answers --file ratings=/big/votes.csv.zst
    zcat votes-*.csv.gz | cauce upload movies data --out answers --file ratings=-
    cauce upload movies data --out answers --separator ';'
    cauce upload movies data --out answers --separator ratings=tab
    What is piped in outlives a gateway (the last 64 MiB are kept), but not this command: --resume cannot go on with it.

    A file that was refused: put it right, then --resume sends that one. Where a part of it was taken already, begin
    again. A file must not change while it is sent; that is noticed by its size, its time of change and its ends.

    \b
    Exit codes: 0 all answers written      1 a query failed or a file was refused
                2 something to put right   3 no gateway reachable, go on with --resume
                130 Ctrl-C, 143 SIGTERM: go on with --resume
    """
    _check_folders(folder, out)
    caller: Caller = context.obj
    choice = Choice(_paths(file or []), _separators(separator or []))
    noted = notes.read(out) if resume else None
    gateways = tuple(gateway or (noted.gateways if noted else _gateways_of(home)))
    names = split(queries)
    asked = tuple(names) if names else None
    order = Order(dataset, folder, out, gateways, scope, model, asked, resume=resume, fresh=fresh, keep=keep, ca=ca)
    order = replace(order, choice=choice, cluster_stays=caller.cluster_stays)
    again = shlex.join(
        [
            *context.command_path.split(),
            dataset,
            str(folder),
            "--out",
            str(out),
            *caller.options,
            *(["--ca", str(ca)] if ca else []),
            *(word for given in file or [] for word in ("--file", given)),
            *(word for given in separator or [] for word in ("--separator", given)),
            "--resume",
        ]
    )
    try:
        with show_on(sys.stderr, quiet=quiet) as show:
            done = carry_out(order, Timing(give_up=patience), show)
    except (KeyboardInterrupt, Terminated, Unreachable) as stop:
        note = _note_of(order)
        what = str(stop) if isinstance(stop, Unreachable) else "stopped"
        if note:
            kept = "; what was sent is kept" if what == "stopped" and note.can_go_on else ""
            what = f"{what}{kept}\n{_advice(note, again)}"
        print(what, file=sys.stderr)
        return _code(stop)
    except OSError as error:
        note = _note_of(order)
        if error.errno not in NO_ROOM or note is None:
            raise
        print(f"{_told(error)}\nmake room, then {_advice(note, again)}", file=sys.stderr)
        return 1
    if as_json:
        print(done.to_json())
    elif not quiet:
        report.show(done, out, Console())
    failed = _say_failures(done)
    note = _note_of(order) if failed else None
    if note:
        print(f"put it right, then {_advice(note, again)}", file=sys.stderr)
    return 1 if failed else 0


def _note_of(order: Order) -> notes.Note | None:
    """What is left of the upload."""
    return notes.read(order.out) if order.cluster_stays else None


def _advice(note: notes.Note, again: str) -> str:
    """How the upload is gone on with."""
    if note.can_go_on:
        return f"go on with: {again}"
    return "begin again with --fresh: what was piped in came once, and --resume cannot go on with it"


class Terminated(BaseException):
    """SIGTERM came. Not an Exception: nothing on the way may take it for an error of its own."""


def run(arguments: Sequence[str], program: str = "cauce upload", caller: Caller | None = None) -> int:
    """The command with its arguments; gives the exit code."""
    try:
        tracing.start_from_environment("client")
        with _terminable():
            obj = caller or Caller()
            return int(app(args=list(arguments), prog_name=program, standalone_mode=False, obj=obj) or 0)
    except (KeyboardInterrupt, Terminated, CauceError) as error:
        if isinstance(error, CauceError):
            print(error, file=sys.stderr)
        return _code(error)
    except OSError as error:
        advice = "make room" if error.errno in NO_ROOM else "make it writable"
        print(f"{_told(error)}; {advice}, or choose another --out", file=sys.stderr)
        return 1
    except Exception as error:
        if not hasattr(error, "format_message"):  # what typer raises for options it does not know
            raise
        print(f"{error.format_message().rstrip('.')}; see `{program} --help`", file=sys.stderr)
        return 2


def _told(error: OSError) -> str:
    return f"{error.filename or 'output'}: {error.strerror}"


def _code(error: BaseException) -> int:
    match error:
        case KeyboardInterrupt():
            return 128 + signal.SIGINT
        case Terminated():
            return 128 + signal.SIGTERM
        case ClientError():
            return error.exit_code
        case _:
            return 2


@contextmanager
def _terminable() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_folders(folder: Path, out: Path) -> None:
    if not folder.is_dir():
        raise WrongUsage(f"{folder} is no folder; give the one that holds the CSV files")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongUsage(f"{out}: {error.strerror}; choose another --out") from None


def _paths(given: Sequence[str]) -> dict[str, list[Path]]:
    """KIND=PATH, again for each file; a folder is all CSV files that are in it."""
    paths: dict[str, list[Path]] = {}
    for text in given:
        kind, equals, path = text.partition("=")
        if not (kind and equals and path):
            raise WrongUsage(f"--file {text}: give it as KIND=PATH, for example --file ratings=votes.csv.gz")
        found = csv_files(Path(path)) if Path(path).is_dir() else [Path(path)]
        if not found:
            raise WrongUsage(f"--file {text}: there is no CSV file in that folder; give another")
        paths.setdefault(kind, []).extend(found)
    return paths


def _separators(given: Sequence[str]) -> dict[str, str]:
    """[KIND=]SIGN."""
    separators = {}
    for text in given:
        kind, _, sign = text.rpartition("=")
        separators[kind] = {"tab": "\t", "\\t": "\t"}.get(sign, sign)
        if separators[kind] not in formats.SEPARATORS:
            raise WrongUsage(f"--separator {text}: give one of {', '.join(formats.SEPARATORS.values())}")
    return separators


def _gateways_of(home: Path | None) -> list[str]:
    """What `cauce status --json` says of that home; another process, so that no Kafka code is loaded here."""
    command = [sys.executable, "-m", "infra", "status", "--json", *(["--home", str(home)] if home else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=STATUS_SECONDS, check=False)
    try:
        status: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise WrongUsage(done.stderr.strip() or "cauce status says nothing; give --gateway URL") from None
    gateways = [str(url) for url in status.get("gateways") or []]
    if not gateways:
        where = home or "this home (.cauce, or CAUCE_HOME)"
        raise WrongUsage(f"no gateway runs in {where}; start some with `cauce up`, or give --gateway URL")
    return gateways


def _say_failures(done: report.Report) -> bool:
    bad = [f"{file.name}: {file.reason}" for file in done.files if file.state == "failed"]
    bad += [f"{query.query} has no answer: {query.reason}" for query in done.queries if query.state != "done"]
    for line in bad:
        print(line, file=sys.stderr)
    return bool(bad)
