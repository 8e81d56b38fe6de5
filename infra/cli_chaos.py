"""`cauce chaos` and `cauce soak`."""

# ruff: noqa: PLC0415  (imports inside commands, as in infra/cli.py)

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cauce.errors import ConfigError
from infra.options import Home, home_of

if TYPE_CHECKING:
    from infra.chaos import Chaos

Kill = Annotated[str, typer.Option("--kill", metavar="ROLES", help="workers, gateways, brokers, supervisors.")]
Seed = Annotated[int, typer.Option(help="The same seed makes the same choices.")]
ALL_ROLES = "workers,gateways,brokers,supervisors"


def chaos(
    kill: Kill = ALL_ROLES,
    sign: Annotated[str, typer.Option("--signal", metavar="KILL|STOP|TERM", help="One or several of them.")] = "KILL",
    every: Annotated[
        str | None, typer.Option(metavar="TIME", help="At random, about so often; else you are asked.")
    ] = None,
    lasting: Annotated[str, typer.Option("--for", metavar="TIME", help="So long.")] = "60s",
    between: Annotated[
        str | None, typer.Option(metavar="HH:MM-HH:MM", help="Only at these hours of the day.", show_default=False)
    ] = None,
    seed: Seed = 1,
    home: Home = None,
) -> None:
    """Kill or pause processes of the running cluster, and see how soon they are back. Alone, it asks whom.

    \b
    cauce chaos                                              a list to choose from
    cauce chaos --every 5 --for 10m                          anything, at random
    cauce chaos --every 2 --for 1m --kill workers --signal KILL,STOP --seed 7

    At most one broker at a time, and only while every partition has all its copies. What was done, and how long each
    recovery took, is in HOME/chaos.jsonl.
    """
    import random
    import threading

    from infra.chaos import Chaos, Window, parse_roles, parse_seconds, parse_signals

    roles, signs = parse_roles(kill), parse_signals(sign)
    at = home_of(home)
    storm = Chaos(at, lambda line: print(line, flush=True))
    storm.targets(roles)  # is there a cluster?
    if every is None:
        if not sys.stdin.isatty():
            raise ConfigError("nobody is here to be asked; say how often: cauce chaos --every 5 --for 60s")
        _ask(storm, roles)
        return
    ending, pause = threading.Event(), parse_seconds(every)
    timer = threading.Timer(parse_seconds(lasting), ending.set)
    timer.daemon = True
    timer.start()
    try:
        storm.run(roles, signs, pause, random.Random(seed), ending, Window.parse(between) if between else None)
    finally:
        timer.cancel()


def _ask(storm: "Chaos", roles: list[str]) -> None:
    """A list, a choice, a blow, and how it came back; until q."""
    import time

    from infra.chaos import LOOK_SECONDS, SIGNALS

    while True:
        found = storm.targets(roles)
        for number, member in enumerate(found):
            pid = member.process.pid if member.process else "?"
            print(f"{number:>3}  {member.role:11}{member.index:>3}  pid {pid:<8}{member.address}")
        word = typer.prompt("which (a number; q ends)", default="q").strip()
        if word == "q":
            return
        if not word.isdigit() or int(word) >= len(found):
            print(f"there is no {word} in the list")
            continue
        how = typer.prompt("kill or pause", default="kill").strip().lower()
        if how not in {"kill", "pause"}:
            print("say kill or pause")
            continue
        storm.strike(found[int(word)], SIGNALS["KILL" if how == "kill" else "STOP"])
        while not storm.is_settled:
            storm.watch()
            time.sleep(LOOK_SECONDS)


def soak(
    lasting: Annotated[str, typer.Option("--for", metavar="TIME", help="So long.")] = "30m",
    seed: Seed = 1,
    every: Annotated[str, typer.Option(metavar="TIME", help="Between two kills, about.")] = "5s",
    kill: Kill = ALL_ROLES,
    at_once: Annotated[int, typer.Option("--clients", min=1, help="At once.")] = 3,
    rows: Annotated[int, typer.Option(min=200, help="Of a client's largest file, at most.")] = 20_000,
    log: Annotated[Path | None, typer.Option(metavar="FILE", help="Every kill and client, a line each.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> int:
    """A cluster of its own, clients on three datasets, kills of everything; every answer is compared by bytes.

    \b
    cauce soak --for 30m --seed 4
    cauce soak --for 5m --every 2s --kill workers,gateways --log soak.log

    Exit code 1 if an answer was wrong, a client failed, a process did not come back, or anything is left at the end.
    """
    from infra import soak as soaking
    from infra.chaos import parse_roles, parse_seconds

    wish = soaking.Wish(parse_seconds(lasting), seed, parse_seconds(every), parse_roles(kill), at_once, (200, rows))
    with (log or Path("/dev/null")).open("w", encoding="utf-8") as file:

        def tell(line: str) -> None:
            file.write(line + "\n")
            file.flush()
            if not as_json and log is None:
                print(line, flush=True)

        outcome = soaking.soak(wish, tell)
    print(json.dumps(outcome.as_json()) if as_json else "\n".join(outcome.lines()))
    return 0 if outcome.is_right else 1
