"""What all requests of a replica share, and who is asking."""

import asyncio
import time
from dataclasses import dataclass
from email.utils import formatdate
from typing import Final

from fastapi import Request

from cauce.messages import ClientId, Session
from cauce.settings import Settings
from cauce.tokens import OPERATOR, BadToken, Tokens
from cauce.topics import SESSIONS, UPLOADS
from gateway.addresses import counted_as
from gateway.batches import Scribe
from gateway.clock import SharedTime
from gateway.hazards import Hazards
from gateway.limits import Rates
from gateway.metrics import Metrics
from gateway.problems import Problem
from gateway.publish import Notes
from gateway.seats import Seats
from gateway.view import Client, View
from queries.datasets import DATASETS
from queries.model import Dataset, Options

TICKET_SECONDS: Final = 60.0  # from the click to the first byte


@dataclass(frozen=True, slots=True)
class Shared:
    settings: Settings
    clock: SharedTime
    view: View
    seats: Seats
    tokens: Tokens
    notes: Notes
    metrics: Metrics
    hazards: Hazards
    stopping: asyncio.Event
    rates: Rates

    def why_not_ready(self) -> str:
        return "stopping" if self.stopping.is_set() else self.view.why_not_ready() or self.clock.why_not_ready()

    def caller(self, request: Request) -> ClientId:
        """The client whose token came along; it must be the one whose session the path names, and not ask too often."""
        client_id = self._whose(request, self.clock.now())
        if client_id != request.path_params["client_id"] or client_id == OPERATOR:
            raise Problem(403, "not-yours", "the token is valid, but not for the session in this path")
        self.rates.take(client_id)
        return ClientId(client_id)

    def _whose(self, request: Request, now: float) -> str:
        try:
            return self.tokens.check(request.headers.get("authorization", ""), now)
        except BadToken as error:
            raise Problem(401, "no-token", str(error), {"WWW-Authenticate": "Bearer"}) from None

    def ticket(self, client_id: ClientId, query: str) -> str:
        """For one answer and a minute: it stands in an address, where a token must not."""
        return self.tokens.issue(f"{client_id}/{query}", self.clock.now() + TICKET_SECONDS)

    def ticket_holder(self, request: Request, query: str, ticket: str) -> ClientId:
        try:
            subject = self.tokens.check(f"Bearer {ticket}", self.clock.now())
        except BadToken:
            raise Problem(401, "no-token", "this ticket has expired or was not made here; ask for another") from None
        client_id = request.path_params["client_id"]
        if subject != f"{client_id}/{query}":
            raise Problem(403, "not-yours", "the ticket is valid, but not for the answer in this path")
        self.rates.take(client_id)
        return ClientId(client_id)

    def operator(self, request: Request) -> None:
        """Only who has the gateways' secret may look at all sessions. Who makes that token has no Kafka to ask for the
        time: it has to be good by the shared time, or by the clock of this machine."""
        if self._whose(request, min(self.clock.now(), time.time())) != OPERATOR:
            raise Problem(403, "not-yours", "the token is for a session; this page is for the operator")

    def address(self, request: Request) -> str:
        """Returns who asks, as new sessions are counted; empty for this machine."""
        forwarded = request.headers.getlist("x-forwarded-for")
        peer = request.client.host if request.client else ""
        address = counted_as(peer, forwarded, self.settings.trusted_proxies)
        return self.tokens.fingerprint(address) if address else ""

    async def client(self, client_id: ClientId) -> Client:
        """What is known of the session; one that another replica has just opened, or began to upload to, is waited
        for."""
        if self.view.client(client_id) is None:
            await self.view.catch_up(client_id, SESSIONS.name, UPLOADS.name)
        client = self.view.client(client_id)
        if client is None:
            raise gone(client_id)
        return client

    def scribe(self, session: Session) -> Scribe:
        settings = self.settings
        dataset = dataset_of(session)
        return Scribe(settings.topic_prefix, settings.partitions, session.client_id, dataset, session.options)

    def expires(self, client: Client) -> str:
        """As HTTP writes it."""
        return formatdate(self.view.expires_at(client), usegmt=True)


def dataset_of(session: Session) -> Dataset:
    """Returns what the session is about: of its dataset, the queries that it asked for."""
    return DATASETS[session.dataset].asked_for(Options.from_dict(session.options))


def session_of(client: Client) -> Session:
    if client.session is None:  # ended between two looks
        raise Problem(404, "not-found", "this session has ended")
    return client.session


def gone(client_id: ClientId) -> Problem:
    return Problem(
        404,
        "not-found",
        f"session {client_id} was deleted or has expired, which one without an upload does soon; open another with "
        "POST /sessions when the files are at hand",
    )
