"""What gateways answer as JSON, said once: openapi.json is made of it, and tests hold real answers against it.

Invariant: a model names every field of its answer and no other. Gateways write plain dictionaries and do not check each
answer at run time: a field that is missing here fails a test, never a client.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """Forbids fields that it does not name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FileKind(Model):
    kind: str = Field(examples=["ratings"])
    filename: str = Field(examples=["ratings.csv"])
    columns: list[str]
    separator: str = Field(description="of the columns, unless an upload names another")
    folder: bool = Field(description="any number of files, each with a name of its own")
    after: list[str] = Field(description="kinds that have to be there first")


class SessionOptions(Model):
    scope: Literal["us", "all"]
    model: str
    queries: list[str] | None = Field(None, description="left out where all of the dataset are asked for")


class OpenedSession(Model):
    client_id: str
    token: str = Field(description="for the header Authorization: Bearer TOKEN")
    expires_at: float = Field(description="seconds since 1970; every upload puts it off")
    dataset: str
    options: SessionOptions
    files: list[FileKind]
    not_read: list[FileKind] = Field(description="files of the dataset that none of the queries reads")
    queries: list[str]
    uploads: str = Field(description="where uploads are created")
    events: str = Field(description="where server-sent events come from")


class UploadState(Model):
    id: str
    kind: str
    name: str
    length: int | None = Field(description="null until its client has said it")
    offset: int = Field(description="bytes that committed transactions hold")
    rows: int
    rejected: dict[str, int] = Field(description="rows that cannot be used, by reason")
    unused: int = Field(description="rows that no query of the session uses")
    state: Literal["open", "complete", "failed"]
    reason: str = Field(description="why it failed")


class FileState(Model):
    kind: str
    ended: bool
    rows: int
    rejected: dict[str, int]
    unused: int
    sent: int
    batches: int | None
    folded: int | None


class QueryState(Model):
    query: str
    state: Literal["waiting", "done", "failed"]
    reason: str
    href: str | None = Field(description="where its answer is, once it is done")


class SessionState(Model):
    client_id: str
    dataset: str
    options: SessionOptions
    expires_at: float
    uploads: list[UploadState]
    files: list[FileState]
    queries: list[QueryState]


class Ticket(Model):
    href: str = Field(description="an address that needs no header, for this answer and a minute")


class CompletedFolder(Model):
    kind: str
    files: int
    rows: int
    rejected: dict[str, int]


class DatasetQuery(Model):
    query: str
    header: list[str]
    files: list[str]


class Dataset(Model):
    name: str
    files: list[FileKind]
    queries: list[DatasetQuery]


class Datasets(Model):
    datasets: list[Dataset]
    gateways: list[str]


class SessionSummary(Model):
    client_id: str
    dataset: str
    queries: list[str]
    state: Literal["uploading", "answering", "done", "failed"]
    files: list[FileState]


class SessionList(Model):
    sessions: list[SessionSummary]


class Broker(Model):
    id: int
    address: str
    leads: int
    copies: int


class Stall(Model):
    topic: str
    partition: int
    last_stable_offset: int
    high_watermark: int
    seconds: float


class KafkaState(Model):
    brokers: list[Broker]
    partitions: int
    short_of_copies: int
    stalls: list[Stall]
    trouble: str


class Overview(Model):
    at: float
    cluster: dict[str, Any] | None = Field(description="as a supervisor tells it")
    why_no_cluster: str
    kafka: KafkaState
    clocks: str = Field(description="whose clock is wrong; empty where all are right")
    sessions: list[SessionSummary]
    sessions_open: int


class ProblemDetails(BaseModel):
    """A refusal, as RFC 9457 has it: what happened, where, and what to do."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str = Field(pattern="^/docs#", description="which of the problems that /docs lists")
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    file: str | None = None
    line: int | None = None
    column: str | None = None
    offset: int | None = Field(None, description="where the upload is")
    missing: str | None = Field(None, description="a kind of file that has to be there first")
    method: str | None = None
