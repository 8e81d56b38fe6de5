"""The command `cauce`: starts, shows and ends everything. Rooms are imported by the commands that need them.

Invariant: an error we know is one sentence on standard error, exit code 2 if the operator must change something and 1
otherwise; Ctrl-C cleans up and exits 130. A traceback means a bug.
"""

# ruff: noqa: PLC0415  (imports inside commands: `cauce --help` and `cauce status` load no Kafka code)

import json
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from cauce.errors import CauceError, ConfigError
from cauce.version import version_line
from infra import cli_chaos
from infra.cli_clients import clients
from infra.options import DatasetName, Home, home_of, home_option

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="""Exactly-once analytics on Kafka and Faust.

    \b
    try it:
      cauce generate movies data --rows 5000         files with the shape of the real ones
      cauce run movies data --out out                everything at once: start, upload, answers, end
      cauce verify movies data out                   the answers against a second opinion, byte by byte
    look into it:
      cauce up --detach                              brokers, workers and gateways, in the background
      cauce status --watch                           what runs, where, in which state
      cauce page                                     the page: uploads, answers, and what the cluster does
      cauce upload movies data --out out             send files, write the answers; --resume after Ctrl-C
      cauce inspect ratings --last 5                 what is on a topic, decoded
      cauce kafka topics --list                      Kafka's own tools on that cluster
      cauce down                                     end all of it; the data is kept
    break it:
      cauce chaos --every 5 --for 60s                kill what runs, see it come back
      cauce clients spawn all --clients 9            many clients at once, each checked
      cauce soak --for 30m                           clients and kills, every answer checked
      cauce bench flights --rows 2000000             how fast, against DuckDB and vanilla Faust

    `cauce COMMAND --help` has more examples. Programs read `--json`; with NO_COLOR set there are no colours, and with
    the output in a pipe or a file there are neither colours nor bars.
    """,
)
app.add_typer(clients, name="clients")
app.command("chaos")(cli_chaos.chaos)
app.command("soak")(cli_chaos.soak)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(version_line())
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None:
    """Takes what is said before the command; what the command is for, its own help says."""


Brokers = Annotated[int, typer.Option(help="1, or 3 to survive the loss of one.")]
Heap = Annotated[str, typer.Option(help="Memory of each broker, as Java writes it.")]
Workers = Annotated[int, typer.Option(min=0, help="They answer the queries; one that falls is started again.")]
Gateways = Annotated[int, typer.Option(min=0, help="They take uploads; clients go on at another one.")]
Supervisors = Annotated[int, typer.Option(min=1, help="One leads and revives the rest; the others take over from it.")]
Partitions = Annotated[int, typer.Option(min=1, help="Of every topic; once made, a home keeps its number.")]


@app.command()
def up(
    brokers: Brokers = 3,
    workers: Workers = 2,
    gateways: Gateways = 2,
    supervisors: Supervisors = 2,
    partitions: Partitions = 8,
    home: Home = None,
    heap: Heap = "384m",
    spares: Annotated[
        bool, typer.Option(help="For each worker one in waiting, which takes its place at once; 122 MB each.")
    ] = True,
    detach: Annotated[bool, typer.Option("--detach", help="Return once it is ready; `cauce down` ends it.")] = False,
) -> None:
    """Start Kafka, workers and gateways on this machine and stay until Ctrl-C.

    \b
    cauce up                                     three brokers, two each of the others; Ctrl-C ends them
    cauce up --brokers 1 --detach                with one broker, in the background
    cauce up --workers 0 --gateways 0            Kafka alone
    cauce up --home /tmp/other                   a second cluster beside the first

    The same home brings the same data back.
    """
    from infra import keeper
    from infra.services import Shape
    from infra.status_view import show

    folder = home_of(home)
    shape = Shape(brokers, heap, workers, gateways, partitions, supervisors, spares)
    if detach:
        keeper.detach(folder, shape)
        show(keeper.status(folder))
        print(
            f"\nlogs: {folder}/*/*.log    page: cauce page{home_option(home)}    end it: cauce down{home_option(home)}"
        )
        return
    keeper.configure_logs("warning")  # the terminal is for people
    keeper.keep(folder, shape, on_ready=lambda: _announce(folder, home))


@app.command()
def status(
    home: Home = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and show what changes; Ctrl-C ends it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show every process: role, index, pid, state, address; what workers have to do; sessions. Exit code 1: none runs.

    \b
    cauce status
    cauce status --watch
    cauce status --json | jq '.processes[] | select(.state != "ready")'
    """
    from infra import keeper, status_view

    folder = home_of(home)
    now, runs = keeper.status(folder), keeper.runs(folder)
    if as_json:
        print(json.dumps(now))
    elif not runs and not now["processes"]:
        print(f"no cluster runs in {folder}; start one with: cauce up{home_option(home)}")
    elif watch:
        status_view.watch(lambda: keeper.status(folder))
    else:
        status_view.show(now)
    if not runs:
        raise typer.Exit(1)


@app.command()
def page(
    home: Home = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser of this machine.")] = False,
) -> None:
    """Print the address of the page, with the operator's view open for half a day to whoever has it.

    \b
    cauce page
    cauce page --open
    """
    from infra import page_link

    link = page_link.link(home_of(home))
    print(link)
    if show:
        page_link.open_in_browser(link)


@app.command()
def down(home: Home = None) -> None:
    """End the cluster, cleanly; nothing is left running and the data is kept.

    \b
    cauce down
    cauce down --home /tmp/other
    """
    from infra import keeper

    print(keeper.down(home_of(home)))


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}
)
def kafka(
    context: typer.Context,
    home: Home = None,
    arguments: Annotated[list[str] | None, typer.Argument(metavar="TOOL ARGS...", show_default=False)] = None,
) -> None:
    """Run one of Apache Kafka's own tools on the running cluster; alone, list them.

    \b
    cauce kafka topics --list
    cauce kafka console-consumer --topic ratings --from-beginning --isolation-level read_committed
    cauce kafka consumer-groups --describe --all-groups
    """
    from infra import tools

    if not arguments or arguments[0] in {"--help", "-h"}:
        print(f"{context.command_path} [--home DIR] TOOL ARGS...    the tool's own --help says more\n")
        for name, tool in tools.TOOLS.items():
            print(f"  {name:22}{tool.about}")
        return
    tools.run_tool(arguments[0], arguments[1:], home_of(home))


@app.command(add_help_option=False, context_settings={"ignore_unknown_options": True, "help_option_names": []})
def upload(
    context: typer.Context,
    arguments: Annotated[list[str] | None, typer.Argument(metavar="DATASET DIR --out DIR", show_default=False)] = None,
) -> int:
    """Send the files of a folder to the gateways, wait, write the answers; `cauce upload --help` says more."""
    from producer_client.cli import run

    return run(arguments or ["--help"], program=context.command_path)


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    context: typer.Context,
    arguments: Annotated[list[str], typer.Argument(metavar="DATASET DIR --out DIR [as of `upload`]")],
    brokers: Brokers = 3,
    workers: Workers = 2,
    gateways: Gateways = 2,
    supervisors: Supervisors = 1,
    partitions: Partitions = 8,
    home: Home = None,
    heap: Heap = "384m",
) -> int:
    """Start everything, send a folder, write the answers, end everything. Exit codes as of `cauce upload`.

    \b
    cauce run movies data/movies --out out
    cauce run movies data/movies --out out --scope all --brokers 1 --workers 3

    Without --home all that Kafka kept is thrown away at the end.
    """
    from infra.run import run_once
    from infra.services import Shape

    shape = Shape(brokers, heap, workers, gateways, partitions, supervisors, spares=False)  # it does not run for long
    return run_once(arguments, shape, home, _given_options(context))


@app.command()
def inspect(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="ratings, uploads, answers, …", show_default=False)],
    client: Annotated[str | None, typer.Option(metavar="ID", help="Of one client only.", show_default=False)] = None,
    last: Annotated[int, typer.Option(min=0, help="So many offsets before the end of each partition; 0: all.")] = 0,
    follow: Annotated[bool, typer.Option("--follow", help="Stay, and show what comes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: one object a line.")] = False,
    home: Home = None,
) -> None:
    """Show what is on a topic: batches decoded, control records and JSON as they are. Committed records only.

    \b
    cauce inspect answers
    cauce inspect ratings --client 4f0c… --last 20
    cauce inspect uploads --follow
    """
    from cauce.settings import Settings
    from infra.inspect import inspect as look
    from infra.tools import bootstrap

    settings = Settings.load(home=home)
    for seen in look(settings.model_copy(update={"bootstrap": bootstrap(settings)}), topic, client, last, follow):
        print(seen.as_json() if as_json else seen.line(), flush=True)


@app.command()
def verify(
    dataset: DatasetName,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The files that were uploaded.", show_default=False)],
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="The answers.", show_default=False)],
    scope: Annotated[
        str | None, typer.Option(metavar="us|all", help="Of query 5; what report.json says, or us.", show_default=False)
    ] = None,
    queries: Annotated[
        list[str] | None,
        typer.Option(metavar="Q,Q…", help="Only these; what report.json says, or all.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> int:
    """Compare answers, byte by byte, with those of an independent pass over the files. Exit code 1 if any differs.

    \b
    cauce verify movies data/movies out
    cauce verify movies data/movies out --scope all --queries q1,q5
    cauce verify movies data/movies out --json | jq '.differences'
    """
    from cauce.query_names import split
    from infra import verify as checks

    asked = split(queries) or ()
    differences = checks.verify(dataset, folder, results, scope, asked)
    say = checks.as_json if as_json else checks.describe
    print(say(dataset, differences, checks.compared(dataset, results, asked)))
    return 1 if differences else 0


@app.command()
def generate(
    dataset: DatasetName,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files go.", show_default=False)],
    rows: Annotated[int, typer.Option(min=1, help="Rows of the largest file; the others match it.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Another seed, other files; the same seed, the same bytes.")] = 1,
) -> None:
    """Write files with the shape of the real ones, odd rows included; files of the same name are replaced.

    \b
    cauce generate movies data/movies                        100,000 ratings, a second
    cauce generate movies data/movies --rows 26000000        as large as the real dataset, a minute
    cauce generate movies data/other --rows 5000 --seed 7    other films
    """
    from infra.generate.datasets import generate_shown

    generate_shown(dataset, folder, rows, seed)


@app.command()
def bench(
    dataset: DatasetName = "movies",
    rows: Annotated[int, typer.Option(min=1000, help="Of the largest file.")] = 26_000_000,
    folder: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="These files, not generated ones.", show_default=False)
    ] = None,
    workers: Workers = 2,
    gateways: Gateways = 2,
    partitions: Partitions = 8,
    faust: Annotated[bool, typer.Option(help="Also measure vanilla Faust with one record a row.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Measure files to answers against DuckDB and vanilla Faust on the same machine, in one run. Needs the dev extra.

    \b
    cauce bench                                  26 million ratings; minutes, and 3 GB in the temporary folder
    cauce bench flights --rows 2000000
    cauce bench coffee --rows 5000000 --json
    cauce bench movies --data ../shared/data/movies --no-faust
    """
    from rich.console import Console

    from bench import end_to_end
    from infra.services import Shape

    shape = Shape(brokers=1, heap="1g", workers=workers, gateways=gateways, partitions=partitions)
    figures = end_to_end.bench(dataset, rows, shape, folder, faust=faust)
    if as_json:
        print(json.dumps(end_to_end.as_json(figures)))
    else:
        end_to_end.show(figures, Console())


def _given_options(context: typer.Context) -> tuple[str, ...]:
    """The command's own options that were given, as a command that is shown repeats them."""
    given = [
        (parameter.opts[0], str(context.params[parameter.name]))
        for parameter in context.command.params
        if parameter.name
        and parameter.name != "arguments"
        # By name: typer keeps the enumeration of sources to itself.
        and getattr(context.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
    ]
    return tuple(word for pair in given for word in pair)


def _announce(folder: Path, given: Path | None) -> None:
    """What the person at the terminal reads once the cluster is ready."""
    from infra import keeper
    from infra.status_view import show

    now = keeper.status(folder)
    show(now)
    print(
        f"\nCAUCE_BOOTSTRAP={now['bootstrap']}\ncauce page{home_option(given)}\n"
        f"cauce kafka{home_option(given)} topics --list\nCtrl-C ends it",
        flush=True,
    )


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)  # as a shell says it; on the way out everything is cleaned up


def main() -> None:
    signal.signal(signal.SIGTERM, _end)
    try:
        sys.exit(app(standalone_mode=False) or 0)  # what a command returns is its exit code
    except CauceError as error:
        print(error, file=sys.stderr)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)  # of the command that was meant
        where = context.command_path if context else "cauce"
        print(f"{error.format_message().rstrip('.')}; see `{where} --help`", file=sys.stderr)
        sys.exit(2)
