"""`cauce clients spawn`, `list` and `kill`."""

# ruff: noqa: PLC0415  (imports inside commands, as in infra/cli.py)

import json
from pathlib import Path
from typing import Annotated

import typer

from cauce.errors import ConfigError
from infra.options import Home, home_of

clients = typer.Typer(
    no_args_is_help=True,
    help="""Many clients of the running cluster, each a process with files and answers of its own.

    \b
    cauce clients spawn all --clients 9 --stagger 0.5     here, until the last has ended
    cauce clients list                                from another terminal
    cauce clients kill 3                              its session ends by its time to live
    """,
)


@clients.command()
def spawn(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="movies, flights, coffee; all: in turn")],
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Files of all clients; each has its own unless given.")
    ] = None,
    count: Annotated[int, typer.Option("--clients", min=1, help="How many.")] = 3,
    stagger: Annotated[float, typer.Option(min=0, help="Seconds between two of them.")] = 1.0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="For the answers: DIR/NUMBER; in the home unless given.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Of the files that are generated for each.")] = 2_000,
    queries: Annotated[
        list[str] | None,
        typer.Option(metavar="Q,Q…", help="What each asks for: q1,q2; all unless given.", show_default=False),
    ] = None,
    check: Annotated[bool, typer.Option("--verify/--no-verify", help="Compare with a second opinion.")] = True,
    home: Home = None,
) -> int:
    """Start clients one after the other and stay until all have ended. Exit code 1 if one got no, or wrong, answers.

    \b
    cauce clients spawn all --clients 9 --stagger 0.5
    cauce clients spawn movies data/movies --clients 20 --stagger 0
    cauce clients spawn all --clients 9 --queries q1,q3
    """
    from cauce.query_names import split
    from infra import keeper
    from infra.clients import Spawning, Wish

    at = home_of(home)
    asked = tuple(split(queries) or ())
    wish = Wish(dataset, folder, count, stagger, (rows, rows), check, out, queries=asked)
    spawning = Spawning(at, keeper.status(at)["gateways"], wish, lambda line: print(line, flush=True))
    return 0 if spawning.run() else 1


@clients.command("list")
def list_clients(
    home: Home = None, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False
) -> None:
    """Show every client that was spawned in this home: number, dataset, pid, state, seconds."""
    from infra.clients import known

    rows = [client.row() for client in known(home_of(home))]
    if as_json:
        print(json.dumps(rows))
        return
    print(f"{'CLIENT':>6}  {'DATASET':9}{'PID':>9}  {'STATE':12}SECONDS")
    for row in rows:
        seconds = "" if row["seconds"] is None else f"{row['seconds']:.1f}"
        print(f"{row['number']:>6}  {row['dataset']:9}{row['pid']:>9}  {row['state']:12}{seconds}")


@clients.command("kill")
def kill_clients(
    numbers: Annotated[list[int] | None, typer.Argument(metavar="NUMBER...", help="Which.", show_default=False)] = None,
    at_random: Annotated[int, typer.Option("--random", min=0, help="So many others that run.")] = 0,
    seed: Annotated[int | None, typer.Option(help="For the same choice again.", show_default=False)] = None,
    home: Home = None,
) -> None:
    """SIGKILL clients. What they began is cleaned up when their sessions' time to live is over.

    \b
    cauce clients kill 3 5
    cauce clients kill --random 2
    """
    import random

    from infra.clients import kill

    if not numbers and not at_random:
        raise ConfigError("say which: cauce clients kill 3, or cauce clients kill --random 1")
    for client in kill(home_of(home), numbers or [], at_random, random.Random(seed)):
        print(f"client {client.number}: killed, pid {client.process.pid}")
