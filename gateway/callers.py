"""Who is asking, as FastAPI's dependencies: so the tokens that an endpoint wants are in openapi.json, too."""

from typing import Annotated

from fastapi import Depends, Path, Request, Security
from fastapi.security import APIKeyQuery, HTTPBearer

from cauce.messages import ClientId
from gateway import tus
from gateway.shared import Shared

# None of them refuses by itself: `Shared` does, in our own words.
session_token = HTTPBearer(scheme_name="session", description="what POST /sessions gave", auto_error=False)
operator_token = HTTPBearer(scheme_name="operator", description="what `cauce page` gives", auto_error=False)
ticket_in_query = APIKeyQuery(
    name="ticket", scheme_name="ticket", description="opens one answer for a minute", auto_error=False
)

SessionInPath = Annotated[str, Path(description="the client_id that POST /sessions gave")]


async def caller(request: Request, client_id: SessionInPath, _: Annotated[object, Security(session_token)]) -> ClientId:
    shared: Shared = request.app.state.shared
    return shared.caller(request)


async def tus_caller(request: Request, client_id: Annotated[ClientId, Depends(caller)]) -> ClientId:
    tus.require_version(request.headers)
    return client_id


async def reader(
    request: Request,
    client_id: SessionInPath,
    query: str,
    _: Annotated[object, Security(session_token)],
    ticket: Annotated[str | None, Security(ticket_in_query)],
) -> ClientId:
    """Lets in who has the session's token, or a ticket for this answer."""
    shared: Shared = request.app.state.shared
    return shared.ticket_holder(request, query, ticket) if ticket else shared.caller(request)


async def operator(request: Request, _: Annotated[object, Security(operator_token)]) -> None:
    shared: Shared = request.app.state.shared
    shared.operator(request)


Caller = Annotated[ClientId, Depends(caller)]
TusCaller = Annotated[ClientId, Depends(tus_caller)]
Reader = Annotated[ClientId, Depends(reader)]
FOR_THE_OPERATOR = Depends(operator)
