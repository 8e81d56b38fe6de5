"""What all requests of a replica share, and who is asking."""

import asyncio
import time
from dataclasses import dataclass
from email.utils import formatdate

from fastapi import Request

from cauce.messages import ClientId, Session
from cauce.settings import Settings
from cauce.tokens import OPERATOR, BadToken, Tokens
from cauce.topics import SESSIONS
from gateway.batches import Scribe
from gateway.metrics import Metrics
from gateway.problems import Problem
from gateway.publish import Notes
from gateway.seats import Seats
from gateway.view import Client, View
from queries.datasets import DATASETS
from queries.model import Dataset


@dataclass(frozen=True, slots=True)
class Shared:
    settings: Settings
    view: View
    seats: Seats
    tokens: Tokens
    notes: Notes
    metrics: Metrics
    stopping: asyncio.Event

    def caller(self, request: Request) -> ClientId:
        """The client whose token came along; it must be the one whose session the path names."""
        client_id = self._whose(request)
        if client_id != request.path_params["client_id"] or client_id == OPERATOR:
            raise Problem(403, "not-yours", "the token is valid, but not for the session in this path")
        return ClientId(client_id)

    def _whose(self, request: Request) -> str:
        try:
            return self.tokens.check(request.headers.get("authorization", ""), time.time())
        except BadToken as error:
            raise Problem(401, "no-token", str(error), {"WWW-Authenticate": "Bearer"}) from None

    def operator(self, request: Request) -> None:
        """Only who has the gateways' secret may look at all sessions."""
        if self._whose(request) != OPERATOR:
            raise Problem(403, "not-yours", "the token is for a session; this page is for the operator")

    async def client(self, client_id: ClientId) -> Client:
        """What is known of the session; one that another replica has just opened is waited for."""
        if self.view.client(client_id) is None:
            await self.view.catch_up(client_id, SESSIONS.name)
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
    return DATASETS[session.dataset]


def session_of(client: Client) -> Session:
    if client.session is None:  # ended between two looks
        raise Problem(404, "not-found", "this session has ended")
    return client.session


def gone(client_id: ClientId) -> Problem:
    return Problem(
        404, "not-found", f"session {client_id} was deleted or has expired; open another with POST /sessions"
    )
