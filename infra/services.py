"""The workers and gateways beside the brokers: started together, watched, started again when they fall.

Invariant: whatever a signal ended comes back; what asks the operator for a change does not, and says so.
"""

import json
import logging
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from cauce.errors import ConfigError
from cauce.process import EXIT_CONFIG
from infra.ports import Ports
from infra.service import GatewayProcess, ServiceProcess, WorkerProcess

log = logging.getLogger(__name__)

QUICK_SECONDS: Final = 10.0  # who lives shorter than this is not started again at once
LONGEST_PAUSE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Shape:
    """What `cauce up` is asked for."""

    brokers: int = 3
    heap: str = "384m"
    workers: int = 0
    gateways: int = 0
    partitions: int = 8

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


@dataclass(slots=True)
class Kept:
    """A service, and when it may be started again."""

    role: str
    index: int
    service: ServiceProcess
    started_at: float = 0.0
    pause_seconds: float = 0.0
    given_up: bool = False


class Services:
    """All of one home."""

    def __init__(self, home: Path, shape: Shape, bootstrap: str, ports: Ports) -> None:
        self.kept = [*self._workers(home, shape, bootstrap, ports), *self._gateways(home, shape, bootstrap, ports)]

    def _workers(self, home: Path, shape: Shape, bootstrap: str, ports: Ports) -> Iterator[Kept]:
        variables = variables_of(home, shape, bootstrap)
        for index in range(shape.workers):
            log_file = home / "workers" / f"worker-{index}.log"
            log_file.parent.mkdir(exist_ok=True)
            yield Kept("worker", index, WorkerProcess(f"worker-{index}", ports.take(), log_file, variables))

    def _gateways(self, home: Path, shape: Shape, bootstrap: str, ports: Ports) -> Iterator[Kept]:
        variables = {**variables_of(home, shape, bootstrap), "CAUCE_SECRET": secret_of(home)}
        for index in range(shape.gateways):
            log_file = home / "gateways" / f"gateway-{index}.log"
            log_file.parent.mkdir(exist_ok=True)
            wish = 8080 + index
            yield Kept("gateway", index, GatewayProcess(f"gateway-{index}", ports.take(wish), log_file, variables))

    def launch(self) -> None:
        for kept in self.kept:
            self._start(kept)

    def wait_ready(self) -> None:
        for kept in self.kept:
            kept.service.wait_ready()

    def tend(self) -> bool:
        """Start again who has fallen; whether anything changed."""
        return sum(map(self._tend, self.kept)) > 0

    def stop(self) -> None:
        """Gateways and workers at once: each commits what it began."""
        running = [kept.service for kept in self.kept if kept.service.alive]
        for service in running:
            service.send(signal.SIGTERM)
        for service in running:
            try:
                service.stop()
            except subprocess.TimeoutExpired:
                log.error("a service did not stop in time and was killed", extra={"service": service.name})  # noqa: TRY400
                service.kill()

    def _tend(self, kept: Kept) -> bool:
        service = kept.service
        if service.alive or kept.given_up or service.exit_code() is None:
            return False
        if service.exit_code() == EXIT_CONFIG:
            kept.given_up = True
            log.error("a service asks for a change", extra={"service": service.name, "log": str(service.log_file)})
            return True
        lived = time.monotonic() - kept.started_at
        if lived < kept.pause_seconds:
            return False  # it fell again and again: wait a little longer each time
        again = lived < max(QUICK_SECONDS, kept.pause_seconds * 2)
        kept.pause_seconds = min(max(1.0, kept.pause_seconds * 2), LONGEST_PAUSE_SECONDS) if again else 0.0
        log.warning(
            "a service ended and is started again", extra={"service": service.name, "code": service.exit_code()}
        )
        self._start(kept)
        return True

    def _start(self, kept: Kept) -> None:
        kept.started_at = time.monotonic()
        kept.service.start()


def variables_of(home: Path, shape: Shape, bootstrap: str) -> dict[str, str]:
    return {"CAUCE_BOOTSTRAP": bootstrap, "CAUCE_HOME": str(home), "CAUCE_PARTITIONS": str(shape.partitions)}


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
