"""Workers and gateways on a cluster, and somebody who starts again what falls: what `cauce up` does, for tests."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cauce.process import EXIT_FAILED
from cauce.settings import Settings
from infra.cluster import Cluster
from infra.ports import Ports
from infra.processes import wait_until
from infra.service import GatewayProcess, ServiceProcess, WorkerProcess
from producer_client.api import Client
from producer_client.gateways import Timing

LOOK_SECONDS = 0.05
READY_SECONDS = 120.0  # a busy machine
MAY_RETURN = (-signal.SIGKILL, EXIT_FAILED)


class Stack:
    """Leaving the `with` block ends all of it; a service that ended in a way it may not is a failure."""

    def __init__(
        self,
        kafka: Cluster,
        prefix: str,
        folder: Path,
        *,
        workers: int = 2,
        gateways: int = 2,
        partitions: int = 4,
        app: str = "streams",
        of_workers: Mapping[str, str] = MappingProxyType({}),
        may_return: Sequence[int] = MAY_RETURN,
    ) -> None:
        self._ports = Ports(Settings.load().cache / "ports")  # the locks are for all runs on this machine
        self._folder = folder
        variables = {
            "CAUCE_BOOTSTRAP": kafka.bootstrap,
            "CAUCE_HOME": str(folder),
            "CAUCE_TOPIC_PREFIX": prefix,
            "CAUCE_PARTITIONS": str(partitions),
            "CAUCE_SECRET": "a secret for tests only",
        }
        self.workers = [
            WorkerProcess(f"w{index}", self._ports.take(), folder / f"w{index}.log", {**variables, **of_workers}, app)
            for index in range(workers)
        ]
        self.gateways = [
            GatewayProcess(f"g{index}", self._ports.take(), folder / f"g{index}.log", variables)
            for index in range(gateways)
        ]
        self.restarts = 0
        self._may_return = may_return
        self._ended_wrongly: list[str] = []
        self._leaving = threading.Event()
        self._tender = threading.Thread(target=self._tend, name="tender", daemon=True)

    def __enter__(self) -> "Stack":
        for service in self.all:
            service.start()
        self._tender.start()
        try:
            wait_until(self._all_ready, seconds=READY_SECONDS, otherwise="not all of them got ready")
        except BaseException as error:
            self.__exit__(type(error))
            raise
        self.restarts = 0
        return self

    def _all_ready(self) -> bool:
        return bool(self._ended_wrongly) or all(service.ready for service in self.all)

    def __exit__(self, *reason: object) -> None:
        self._leaving.set()
        if self._tender.is_alive():
            self._tender.join()
        for service in self.all:
            service.kill()
        self._ports.release()
        for service in self.all:
            tail = service.log_file.read_text(errors="replace").splitlines()[-8:]
            print(f"---- {service.log_file.name}: ended with {service.exit_code()}", *tail, sep="\n")
        if reason[0] is None:
            assert not self._ended_wrongly, self._ended_wrongly

    @property
    def all(self) -> list[ServiceProcess]:
        return [*self.workers, *self.gateways]

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{gateway.port}" for gateway in self.gateways]

    def _tend(self) -> None:
        while not self._leaving.wait(LOOK_SECONDS):
            for service in self.all:
                code = service.exit_code()
                if code in self._may_return:
                    self.restarts += 1
                    service.start()
                elif code is not None:
                    self._ended_wrongly.append(f"{service.name} ended with {code}")
                    return


@dataclass
class At:
    """A watcher of an upload that does something once, when a file has got so far."""

    name: str
    offset: int
    act: Callable[[], None]
    done: bool = False
    troubles: list[str] = field(default_factory=list)

    def begin(self, name: str, length: int) -> None: ...

    def at(self, name: str, offset: int) -> None:
        if name == self.name and offset >= self.offset and not self.done:
            self.done = True
            self.act()

    def trouble(self, name: str, what: str) -> None:
        self.troubles.append(f"{name}: {what}")


@contextmanager
def session(
    stack: Stack, dataset: str = "movies", watcher: At | None = None, timing: Timing | None = None, **wishes: Any
) -> Iterator[Any]:
    with Client(stack.urls, watcher=watcher, timing=timing) as client, client.open(dataset, **wishes) as opened:
        yield opened


def answers(opened: Any, into: Path) -> dict[str, bytes]:
    """Every answer file, once all are there."""
    into.mkdir(parents=True, exist_ok=True)
    return {path.name: path.read_bytes() for _, path in opened.answers(into)}
