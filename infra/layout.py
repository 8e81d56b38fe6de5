"""What a cluster is on disk: its identity, its brokers' ports, and the settings each broker starts with.

Invariant: identity and broker numbers never change once made; ports may, while nothing runs. Paths in a broker's
settings are relative to its own folder, so a home may be moved, and may have any name.
"""

import base64
import json
import os
import shutil
import subprocess
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from cauce.errors import CauceError, ConfigError
from infra.processes import leashed

SIZES: Final = (1, 3)
MIB: Final = 1 << 20
HOUR_MS: Final = 3_600_000
CORES: Final = os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Node:
    """One broker, which is a controller too."""

    id: int
    port: int
    controller_port: int


@dataclass(frozen=True, slots=True)
class Layout:
    cluster_id: str
    nodes: tuple[Node, ...]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)


def read_layout(folder: Path) -> Layout | None:
    file = folder / "layout.json"
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return Layout(kept["cluster_id"], tuple(Node(**node) for node in kept["nodes"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{file} is not what Cauce wrote; remove the home folder or use another --home") from None


def write_layout(folder: Path, layout: Layout) -> None:
    write_atomically(folder / "layout.json", json.dumps(asdict(layout), indent=2) + "\n")


def write_atomically(file: Path, text: str) -> None:
    """A reader sees the old file or the new one, also when we are killed in between."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


def new_uuid() -> str:
    """As Kafka writes ids: 22 characters of URL-safe base64. A leading dash would look like an option to its tools."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def server_properties(layout: Layout, node: Node) -> dict[str, str]:
    """Everything this broker is told; what is not here is Kafka's default."""
    copies = len(layout.nodes)
    in_sync = min(2, copies)  # of three copies two must have a record: one broker may be lost, and nothing with it
    settings: dict[str, str | int] = {
        "process.roles": "broker,controller",
        "node.id": node.id,
        "controller.quorum.voters": ",".join(f"{n.id}@127.0.0.1:{n.controller_port}" for n in layout.nodes),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"BROKER://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": f"BROKER://127.0.0.1:{node.port}",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "BROKER",
        "log.dirs": "data",
        # 8 and 3 by default, for machines that have nothing but a broker. On two cores those woke each other: over 26
        # million ratings it spent 1.0 s in the kernel, and 0.3 with these
        "num.io.threads": min(8, max(2, CORES)),
        "num.network.threads": min(3, max(1, CORES // 2)),
        "auto.create.topics.enable": "false",  # a misspelt topic is an error, not an empty topic
        "unclean.leader.election.enable": "false",
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        "offsets.topic.num.partitions": 8,  # 50 of each by default, times three brokers: more files than a laptop needs
        "transaction.state.log.num.partitions": 8,
        "broker.session.timeout.ms": 3000,  # 9000 by default: so long the partitions of a dead broker stall
        "broker.heartbeat.interval.ms": 500,
        "group.initial.rebalance.delay.ms": 0,  # 3 s by default, at every start of the first worker
        "group.min.session.timeout.ms": 1000,  # 6000 by default: workers may ask to be missed sooner
        "transactional.id.expiration.ms": 12 * HOUR_MS,  # a week by default; every upload leaves an id behind
        "offsets.retention.minutes": 365 * 24 * 60,  # a week by default; forgotten, all would have to be counted again
        # a dead worker's transaction holds readers back until its timeout; by default it is looked for every 10 s
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        "message.max.bytes": 16 * MIB,  # twice the largest record, so that a batch of records passes too
        "replica.fetch.max.bytes": 16 * MIB,
        "log.cleaner.dedupe.buffer.size": 32 * MIB,  # 128 by default, a third of the heap; 32 hold 1.3 million keys
    }
    return {name: str(value) for name, value in settings.items()}


def write_properties(file: Path, properties: dict[str, str]) -> None:
    """As Java reads them; all our values are plain ASCII without backslashes."""
    write_atomically(file, "".join(f"{name}={value}\n" for name, value in properties.items()))


def format_brokers(brokers: Path, layout: Layout, java: str, jars: str) -> None:
    """Give every broker without data an empty, formatted data folder.

    Kafka's own tool formats one; the others get the same bootstrap records with their own node and directory id, which
    is what the tool would write, and saves two Java starts. A data folder appears by rename: half of one is never seen.
    """
    fresh = [node for node in layout.nodes if not (brokers / str(node.id) / "data").exists()]
    if not fresh:
        return
    first = brokers / str(fresh[0].id) / "formatting"
    for node in fresh:
        shutil.rmtree(brokers / str(node.id) / "formatting", ignore_errors=True)  # of a start that was killed
    first.mkdir()
    config = first / "server.properties"
    write_properties(config, server_properties(layout, fresh[0]))
    command = [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "-cp", jars, "kafka.tools.StorageTool"]
    ran = subprocess.run(
        leashed([*command, "format", "--cluster-id", layout.cluster_id, "--config", config.name]),
        cwd=first, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ran.returncode:
        raise CauceError(f"Kafka could not format {first / 'data'}: {(ran.stderr or ran.stdout).strip()}")
    for node in fresh[1:]:
        copy = brokers / str(node.id) / "formatting" / "data"
        shutil.copytree(first / "data", copy)
        meta = {"version": "1", "cluster.id": layout.cluster_id, "node.id": str(node.id), "directory.id": new_uuid()}
        write_properties(copy / "meta.properties", meta)
    for node in fresh:
        folder = brokers / str(node.id)
        (folder / "formatting" / "data").replace(folder / "data")
        shutil.rmtree(folder / "formatting")
