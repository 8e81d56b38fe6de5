"""What a gateway says of a session (GET /sessions/ID), as values."""

from dataclasses import dataclass, field
from typing import Any, Literal, Self


@dataclass(frozen=True, slots=True)
class UploadState:
    id: str
    name: str
    kind: str
    length: int | None  # None: the client has not said it yet
    offset: int
    rows: int
    rejected: dict[str, int] = field(default_factory=dict)
    unused: int = 0  # rows that no query uses
    state: Literal["open", "complete", "failed"] = "open"
    reason: str | None = None

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        return cls(
            id=fields["id"],
            name=fields["name"],
            kind=fields["kind"],
            length=fields["length"],
            offset=fields["offset"],
            rows=fields.get("rows") or 0,
            rejected=dict(fields.get("rejected") or {}),
            unused=fields.get("unused") or 0,
            state=fields["state"],
            reason=fields.get("reason") or None,
        )


@dataclass(frozen=True, slots=True)
class StageState:
    """Where the rows of a kind of file are."""

    kind: str
    rows: int
    rejected: dict[str, int]
    unused: int  # rows that no query uses: rows = rejected + unused + sent
    sent: int
    batches: int | None  # None: it has not ended
    folded: int | None

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        return cls(
            kind=fields["kind"],
            rows=fields["rows"],
            rejected=dict(fields["rejected"]),
            unused=fields["unused"],
            sent=fields["sent"],
            batches=fields["batches"],
            folded=fields["folded"],
        )


@dataclass(frozen=True, slots=True)
class QueryState:
    query: str
    state: Literal["waiting", "done", "failed"] = "waiting"
    reason: str | None = None

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        return cls(fields["query"], fields["state"], fields.get("reason") or None)


@dataclass(frozen=True, slots=True)
class SessionState:
    uploads: tuple[UploadState, ...]
    queries: tuple[QueryState, ...]
    files: tuple[StageState, ...] = ()

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        return cls(
            tuple(UploadState.from_json(upload) for upload in fields["uploads"]),
            tuple(QueryState.from_json(query) for query in fields["queries"]),
            tuple(StageState.from_json(file) for file in fields.get("files", ())),
        )
