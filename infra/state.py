"""What is written in a home for others to read: a wish (HOME/wish.json), and what became of it (HOME/cluster.json).

Invariants: both are replaced as a whole. The wish is written by who asks (`cauce up`, `cauce down`), the other file by
the leader only. Neither says who lives: that is asked of the system, slot by slot.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

from cauce.errors import ConfigError
from infra.layout import write_atomically
from infra.processes import Process, State
from infra.scrape import gauges
from infra.service import page
from infra.services import Shape
from infra.slots import FOLDER, Slot
from infra.tending import Record

WISH_FILE: Final = "wish.json"
STATE_FILE: Final = "cluster.json"
WORK: Final = {"partitions": "cauce_partitions", "lag": "cauce_lag_records", "commits": "cauce_commits_total"}


class Phase(StrEnum):
    """starting → ready; starting → failed. A new leader goes on where the last one was."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the operator wants. With an owner the cluster ends when that process does, however it ends."""

    shape: Shape
    is_up: bool
    owner: Process | None = None

    @classmethod
    def read(cls, home: Path) -> Self | None:
        kept = _read(home / WISH_FILE)
        try:
            owner = kept and kept["owner"]
            return cls(Shape(**kept["shape"]), kept["is_up"], Process(**owner) if owner else None) if kept else None
        except (KeyError, TypeError):
            raise _spoilt(home / WISH_FILE) from None

    def write(self, home: Path) -> None:
        write_atomically(home / WISH_FILE, json.dumps(asdict(self), indent=2) + "\n")


@dataclass(frozen=True, slots=True)
class Member:
    """One process of the cluster."""

    home: Path
    record: Record

    @property
    def role(self) -> str:
        return self.record.role

    @property
    def index(self) -> int:
        return self.record.index

    @property
    def port(self) -> int:
        return self.record.port

    @property
    def asked_port(self) -> int:
        return self.record.asked_port

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def slot(self) -> Slot:
        return Slot(self.home, self.role, self.index, self.asked_port)

    @property
    def process(self) -> Process | None:
        return self.slot.process

    @property
    def state(self) -> State:
        """A broker or a supervisor is ready when its port answers; the others say so themselves."""
        state = self.slot.state
        if state is not State.READY or self.role not in {"worker", "gateway"}:
            return state
        return state if page(self.asked_port, "/readyz")[0] == 200 else State.STARTING

    def told(self) -> dict[str, float]:
        """What it tells Prometheus; nothing of a broker or a supervisor."""
        return gauges(self.asked_port) if self.role in {"worker", "gateway"} else {}

    def row(self, told: Mapping[str, float] | None = None) -> dict[str, Any]:
        """What it tells Prometheus is asked for here, unless somebody has."""
        process = self.process
        told = told if told is not None else self.told() if self.role == "worker" else {}
        work = {name: int(told[gauge]) if gauge in told else None for name, gauge in WORK.items()}
        return {
            "role": self.role,
            "index": self.index,
            "pid": process.pid if process else None,
            "state": self.state.value,
            "address": self.address,
            "restarts": self.record.restarts,
            "note": self.record.note,
            **(work if self.role == "worker" else {}),
        }


@dataclass(frozen=True, slots=True)
class Running:
    """What HOME/cluster.json says. `reason` and `code`: of a start that failed."""

    phase: Phase
    bootstrap: str | None
    members: tuple[Member, ...]
    is_open: bool = False  # the brokers have been ready once: workers and gateways may start
    reason: str | None = None
    code: int = 1

    @classmethod
    def read(cls, home: Path) -> Self | None:
        kept = _read(home / STATE_FILE)
        if kept is None:
            return None
        try:
            members = tuple(Member(home, Record(**record)) for record in kept.pop("members"))
            return cls(**{**kept, "phase": Phase(kept["phase"]), "members": members})
        except (KeyError, TypeError, ValueError):
            raise _spoilt(home / STATE_FILE) from None

    def write(self, home: Path) -> None:
        records = [asdict(member.record) for member in self.members]
        kept = {"phase": self.phase, "bootstrap": self.bootstrap, "is_open": self.is_open, "reason": self.reason,
                "code": self.code, "members": records}  # fmt: skip
        write_atomically(home / STATE_FILE, json.dumps(kept, indent=2) + "\n")

    def of_role(self, *roles: str) -> list[Member]:
        return [member for member in self.members if member.role in roles]


def is_supervised(home: Path) -> bool:
    """Whether a supervisor lives here, also one that has written nothing yet."""
    return any(slot.is_held for slot in held_or_not(home) if slot.role == "supervisor")


def held_or_not(home: Path) -> list[Slot]:
    """Every slot that ever had a holder; to look at and to signal only."""
    names = [file.name.rpartition("-") for file in (home / FOLDER).glob("*-*")]
    return [Slot(home, role, int(index), port=0) for role, _, index in names]


def _read(file: Path) -> dict[str, Any] | None:
    try:
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise _spoilt(file) from None
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}; choose another --home") from None
    return kept


def _spoilt(file: Path) -> ConfigError:
    return ConfigError(f"{file} is not what Cauce wrote; remove it and run `cauce up` again")
