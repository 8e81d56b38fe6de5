"""What one worker process of a kill test is to do, handed over as JSON on its command line."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, Self

Point = Literal["sealed", "produced", "offsets", "committed", "stored", "event", "key"]
Action = Literal["kill", "stop", "wait", "raise", "lose-answer", "deafen"]  # the answer to a commit that does happen
Switch = Literal["no-predecessors", "no-generation", "own-offsets", "unaware", "learns", "early-group-by"]

# The states of the checkpoint, and `offsets`: they are in the transaction, the commit is not sent yet.
COMMIT_PATH: Final[tuple[Point, ...]] = ("sealed", "produced", "offsets", "committed", "stored")


@dataclass(frozen=True, slots=True)
class Fault:
    """Do `action` the `nth` time that `at` is reached; checkpoints count only if an event of ours is in them."""

    at: Point
    action: Action = "kill"
    nth: int = 1  # a finite load may be done in one checkpoint


@dataclass(frozen=True, slots=True)
class Plan:
    worker: str
    prefix: str
    bootstrap: str
    data: Path  # of all workers; each has its own folder inside
    partitions: int = 4
    keys: int = 40
    checkpoint_ms: int = 80
    session_timeout_ms: int = 5_000  # 2 s were over now and then while other work had both cores
    transaction_timeout_ms: int = 20_000
    keep_unowned_seconds: float = 1800.0
    tidy_seconds: float = 60.0
    stale_seconds: int | None = None  # how far a store may be behind; None: as it is
    fault: Fault | None = None
    off: tuple[Switch, ...] = field(default=())  # handling switched off, for control runs
    vanilla: bool = False  # Faust's own exactly_once, for the control in bench/

    @property
    def app_id(self) -> str:
        return f"{self.prefix}count"

    @property
    def changelog(self) -> str:
        return f"{self.app_id}-counts-changelog"

    @property
    def reached(self) -> Path:
        """Written when the fault happens, with the offsets of the checkpoint: without it there is no verdict."""
        return self.data / f"{self.worker}.reached"

    @property
    def go_on(self) -> Path:
        """What a worker that waits is waiting for."""
        return self.data / f"{self.worker}.go-on"

    @property
    def known(self) -> Path:
        """The offsets that a worker knows to be committed: it was told so."""
        return self.data / f"{self.worker}.known"

    def topic(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def of(self, worker: str, fault: Fault | None = None) -> Self:
        return replace(self, worker=worker, fault=fault)

    def with_transaction_timeout(self, milliseconds: int) -> Self:
        return replace(self, transaction_timeout_ms=milliseconds)

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields: dict[str, Any] = json.loads(text)
        fields["data"] = Path(fields["data"])
        fields["off"] = tuple(fields["off"])
        if fields["fault"] is not None:
            fields["fault"] = Fault(**fields["fault"])
        return cls(**fields)


def first_key(number: int) -> bytes:
    """Of the input: says nothing about where the record is counted."""
    return b"a%d" % (number % 23)


def second_key(number: int) -> bytes:
    return b"b%d" % (number % 17)


def count_key(number: int, keys: int) -> bytes:
    """Spreads neighbours over all partitions, so every worker feeds every other one."""
    return b"c%d" % ((number * 2654435761 >> 7) % keys)
