"""What a cluster is asked to be, and how each of its slots is filled: brokers, workers, gateways, supervisors."""

import json
import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from cauce.errors import ConfigError
from cauce.settings import Settings
from infra.broker import Broker
from infra.cluster import Cluster
from infra.ports import Ports
from infra.service import gateway_command, spare_command, worker_command
from infra.slots import SPARE, Order, Slot
from infra.tending import Record

FIRST_GATEWAY_PORT: Final = 8080  # wished for: what a person types


@dataclass(frozen=True, slots=True)
class Shape:
    """What `cauce up` is asked for."""

    brokers: int = 3
    heap: str = "384m"
    workers: int = 0
    gateways: int = 0
    partitions: int = 8
    supervisors: int = 1
    spares: bool = True  # a worker in waiting for each

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


class Plan:
    """The slots of one home. What has a port already keeps it; the leader holds the ports."""

    def __init__(self, home: Path, shape: Shape) -> None:
        self.home = home
        self.shape = shape
        self.cluster = Cluster(home, shape.brokers, shape.heap)
        self._ports = Ports(Settings.load().cache / "ports")
        self._records: list[Record] = []

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    def new_records(self) -> list[Record]:
        """For a cluster that starts: every slot with a port that is free now."""
        if Settings.load().gateway_tls_certificate is not None:
            raise ConfigError(
                "CAUCE_GATEWAY_TLS_CERTIFICATE is set, and `cauce up` speaks HTTP on 127.0.0.1; unset it, or start "
                "gateways by themselves with `python -m gateway`"
            )
        self.cluster.prepare()
        shape, take = self.shape, self._ports.take
        brokers = [Record("broker", broker.id, broker.port) for broker in self.cluster.brokers]
        workers = [Record("worker", index, take()) for index in range(shape.workers)]
        gateways = [
            Record("gateway", index, take(FIRST_GATEWAY_PORT + index), health_port=take())
            for index in range(shape.gateways)
        ]
        supervisors = [Record("supervisor", index, take()) for index in range(shape.supervisors)]
        self._records = [*brokers, *workers, *gateways, *supervisors]
        return self._records

    def adopt(self, records: list[Record]) -> None:
        """For a cluster that runs: hold what the leader before us held."""
        self.cluster.adopt()
        self._records = records
        for record in records:
            if record.role != "broker":
                self._ports.hold(record.port)
            if record.health_port is not None:
                self._ports.hold(record.health_port)

    def slot(self, record: Record) -> Slot:
        return Slot(self.home, record.role, record.index, record.asked_port, self._order(record))

    def spare(self, record: Record) -> Slot:
        """Of a worker: in waiting for its slot."""
        return Slot(self.home, SPARE, record.index, 0, lambda: self._worker(record, self.slot(record).file))

    def _order(self, record: Record) -> Callable[[], Order]:
        match record.role:
            case "broker":
                return lambda: self._broker(self.cluster.broker(record.index))
            case "worker":
                return lambda: self._worker(record)
            case "gateway":
                return lambda: self._gateway(record)
            case _:
                return lambda: supervisor_order(self.home, record.index)

    def _broker(self, broker: Broker) -> Order:
        return Order(broker.command(self.cluster.java()), dict(os.environ), broker.folder, broker.output_file)

    def _worker(self, record: Record, awaited: Path | None = None) -> Order:
        name = f"worker-{record.index}"
        own = {"CAUCE_WORKER_ID": name, "CAUCE_WORKER_PORT": str(record.port)}
        command = worker_command() if awaited is None else spare_command(awaited)
        return Order(command, self.environment(own), Path.cwd(), self.home / "workers" / f"{name}.log")

    def _gateway(self, record: Record) -> Order:
        own = {
            "CAUCE_GATEWAY_PORT": str(record.port),
            "CAUCE_SECRET": secret_of(self.home),
            "CAUCE_GATEWAYS": self._urls("gateway"),
            "CAUCE_SUPERVISORS": self._urls("supervisor"),
        }
        if record.health_port is not None:
            own["CAUCE_GATEWAY_HEALTH_PORT"] = str(record.health_port)
        log_file = self.home / "gateways" / f"gateway-{record.index}.log"
        return Order(gateway_command(), self.environment(own), Path.cwd(), log_file)

    def _urls(self, role: str) -> str:
        """Where these are, as settings are written."""
        return json.dumps([f"http://127.0.0.1:{record.port}" for record in self._records if record.role == role])

    def environment(self, own: dict[str, str]) -> dict[str, str]:
        return {
            "CAUCE_REPLICATION": str(self.shape.brokers),  # not of those that somebody sees at first
            **os.environ,
            "CAUCE_BOOTSTRAP": self.bootstrap,
            "CAUCE_HOME": str(self.home),
            "CAUCE_PARTITIONS": str(self.shape.partitions),
            **own,
        }


def supervisor_order(home: Path, index: int, *more: str) -> Order:
    command = [sys.executable, "-m", "infra.supervisor", str(home), str(index), *more]
    return Order(command, dict(os.environ), Path.cwd(), supervisor_log(home, index))


def supervisor_log(home: Path, index: int) -> Path:
    return home / "supervisors" / f"supervisor-{index}.log"


def secret_of(home: Path) -> str:
    """Made once a home: tokens stay good when gateways, or all of it, start again."""
    file = home / "secret"
    try:
        return file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(32), encoding="ascii")
        return file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}; remove it, and the tokens given so far are void") from None
