"""Every error Cauce raises on purpose, each named for the one reaction it asks for.

CauceError
├── ConfigError        the operator fixes a variable, an option or the machine; exit code 2
├── BadUpload          the client fixes a file; HTTP 422 with file, line, reason
├── BrokerUnavailable  wait, then try again
├── Fenced             another worker owns the partition: end the process, the work is already elsewhere
├── CommitUncertain    Kafka did not say how the commit ended: end the process, trust the committed offsets
├── StoreCorrupt       store and changelog disagree: move the store aside, restore it
├── Unsupported        a Faust feature that cannot be exactly-once here: the message names what to use instead
└── IllegalMove        a bug: let the process die, the supervisor starts it again
"""


class CauceError(Exception):
    """Something Cauce knows about; the message says what happened, where, and what to do."""


class ConfigError(CauceError):
    """The operator has to change something before this can work."""


class BadUpload(CauceError):
    """A file cannot be read as what it claims to be; the client fixes it. Single bad rows are `Rejected` values."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(file, line, reason)  # as they came, so that the error survives a trip between processes
        self.file = file
        self.line = line  # counted from 1, as an editor shows it
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}"


class BrokerUnavailable(CauceError):
    """Kafka does not answer; it may do so later."""


class Fenced(CauceError):
    """A newer owner of this identity or partition exists; whatever we hold is void."""


class CommitUncertain(CauceError):
    """The commit may or may not have happened; only a new producer can tell."""


class StoreCorrupt(CauceError):
    """A local store cannot be trusted; its changelog can."""


class Unsupported(CauceError):
    """A feature that would silently break the promises; refused at start."""


class IllegalMove(CauceError):
    """A state machine was asked for a move it does not know."""
