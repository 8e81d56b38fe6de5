"""What a client may meet, each class named for the one reaction it asks for.

CauceError
└── ClientError
    ├── WrongUsage       the caller fixes an option, a path or a folder; exit code 2
    ├── Refused          a gateway said no, and why; asking again would not help; exit code 2
    │   ├── BadFile      the file is wrong: file, line, reason; exit code 1
    │   ├── QueryFailed  this query has no answer, the others may; exit code 1
    │   └── SessionGone  deleted, expired or never there: open another; exit code 1
    ├── Unreachable      no gateway did what was asked, for as long as we were told to try; exit code 3
    └── Stopped          somebody asked us to stop; what was sent is kept
"""

from typing import Any, ClassVar

from cauce.errors import CauceError


class ClientError(CauceError):
    exit_code: ClassVar[int] = 1


class WrongUsage(ClientError):
    """The caller has to change something before this can work."""

    exit_code = 2


class Refused(ClientError):
    """A problem+json answer (RFC 9457); its detail is the message."""

    exit_code = 2

    def __init__(self, detail: str, status: int = 0, **fields: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.title: str | None = fields.get("title")
        self.file: str | None = fields.get("file")
        self.line: int | None = fields.get("line")
        self.column: int | str | None = fields.get("column")
        self.offset: int | None = fields.get("offset")


class BadFile(Refused):
    """A file that has to be put right before it can be sent."""

    exit_code = 1


class QueryFailed(Refused):
    """A query that will never have an answer in this session."""

    exit_code = 1


class SessionGone(Refused):
    """The gateways do not know this session any more."""

    exit_code = 1


class Unreachable(ClientError):
    """Tried for long enough; it may work later."""

    exit_code = 3


class Stopped(ClientError):
    """Asked to stop, from another thread."""
