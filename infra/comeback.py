"""Starts a broker that died, once the cluster has given its former self up: `comeback FOLDER COMMAND ARGS...`.

A broker that starts takes itself for the leader that it was, until it has registered and heard of its own end (Kafka
4.3.1 publishes what it finds on disk before that). For such a moment it is the coordinator of transactions again, with
what it had noted and nobody else had: seen once, it sent COMMIT to some partitions of a transaction, and the new
coordinator, which knew of no commit, ABORT to the others. Offsets went on, and a table stayed behind.

Where too many controllers died with it for the cluster to give anybody up, this one comes back as a controller first.

Invariant: the broker runs as this very process, and nothing of this file is left then; whoever kills us kills that.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from infra.cluster import members
from infra.layout import Node, read_layout, write_properties
from infra.processes import POLL_SECONDS, accepts, leashed

PATIENCE_SECONDS: Final = 60.0  # then it starts all the same, and says so
NOBODY_SECONDS: Final = 10.0  # to elect a controller, which gives up who is silent for 3 s, where no broker can say so
STOP_SECONDS: Final = 5.0


def main() -> None:
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    layout = read_layout(folder.parent)
    nodes = {node.id: node for node in layout.nodes} if layout else {}
    own = nodes.pop(int(folder.name), None)
    if own is not None and nodes:
        wait_given_up(own, list(nodes.values()), folder, command)
    os.execvp(command[0], command)  # noqa: S606  (no shell is what we want)


def wait_given_up(own: Node, others: list[Node], folder: Path, command: list[str]) -> None:
    """Without us, the other controllers may be too few to do so; two of three are enough. One that is paused accepts
    connections, too, and has no vote: after a while we join them whatever it looks like."""
    began = time.monotonic()
    until = began + PATIENCE_SECONDS
    while time.monotonic() < until:
        if is_given_up(own, others):
            return
        look_enough = all(accepts(node.controller_port) for node in others)
        if not look_enough or time.monotonic() - began > NOBODY_SECONDS:
            with a_controller(folder, command):
                wait_given_up_by_us(own, others, until)
            return
        time.sleep(POLL_SECONDS)
    say(own, "nobody gave its former self up")


def wait_given_up_by_us(own: Node, others: list[Node], until: float) -> None:
    enough_since = None
    while time.monotonic() < until:
        if is_given_up(own, others):
            return
        are_enough = accepts(own.controller_port) and any(accepts(node.controller_port) for node in others)
        if not are_enough or any(accepts(node.port) for node in others):  # who is there will say so
            enough_since = None
        elif enough_since is None:
            enough_since = time.monotonic()
        elif time.monotonic() - enough_since > NOBODY_SECONDS:
            return
        time.sleep(POLL_SECONDS)
    say(own, "the others are away")


def is_given_up(own: Node, others: list[Node]) -> bool:
    """Whether a broker that is there counts on others, and not on us."""
    for node in others:
        if accepts(node.port) and (counted_on := members(f"127.0.0.1:{node.port}")):
            return own.id not in counted_on
    return False


@contextmanager
def a_controller(folder: Path, command: list[str]) -> Iterator[None]:
    """This node with no broker in it, on the same data."""
    broker = dict(line.split("=", 1) for line in (folder / "server.properties").read_text("utf-8").splitlines())
    listeners = [each for each in broker["listeners"].split(",") if each.startswith("CONTROLLER:")]
    of_brokers = {"advertised.listeners", "inter.broker.listener.name"}
    properties = {name: value for name, value in broker.items() if name not in of_brokers}
    properties |= {"process.roles": "controller", "listeners": ",".join(listeners)}
    write_properties(folder / "controller.properties", properties)
    child = subprocess.Popen(leashed([*command[:-1], "controller.properties"]), stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:  # what it has acknowledged is on disk
            child.kill()
            child.wait()


def say(own: Node, why: str) -> None:
    print(f"broker {own.id} starts although {why} in {PATIENCE_SECONDS:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
