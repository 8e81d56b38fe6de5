"""The operator's view: what the supervisors tell of the processes, what Kafka tells, and the sessions known here.

Invariant: only for the operator's token; it shows everything and changes nothing. Many who look cost as much as one.
"""

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from cauce import http_models
from cauce.tokens import OPERATOR, OPERATOR_SECONDS
from gateway import schema
from gateway.callers import FOR_THE_OPERATOR
from gateway.lookout import Lookout
from gateway.sessions import summarise
from gateway.shared import Shared

FRESH_SECONDS: Final = 1.0
ASK_SECONDS: Final = 5.0  # a supervisor waits two for a process that hangs
MOST_SESSIONS: Final = 200  # shown; the newest

router = APIRouter()
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # supervisors are on our own network


@router.get(
    "/operator",
    summary="for the operator: processes, Kafka, sessions, what happened last",
    dependencies=[FOR_THE_OPERATOR],
    response_model=None,
    responses={200: {"model": http_models.Overview}, **schema.refusals(401, 403)},
)
async def show_overview(request: Request) -> dict[str, Any]:
    overview: Overview = request.app.state.overview
    return await overview.now()


@router.get(
    "/operator/events",
    summary="for the operator: the same as server-sent events, about once a second",
    dependencies=[FOR_THE_OPERATOR],
    response_class=StreamingResponse,
    responses={200: schema.event_stream("overview"), **schema.refusals(401, 403)},
)
async def overview_events(request: Request) -> StreamingResponse:
    overview: Overview = request.app.state.overview
    return StreamingResponse(overview.events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


class Overview:
    def __init__(self, shared: Shared, lookout: Lookout) -> None:
        self._shared = shared
        self._lookout = lookout
        self._lock = asyncio.Lock()
        self._now: dict[str, Any] = {}
        self._looked_at = 0.0

    async def events(self) -> AsyncIterator[bytes]:
        """Ends with the gateway."""
        while not self._shared.stopping.is_set():
            yield f"event: overview\ndata: {json.dumps(await self.now(), separators=(',', ':'))}\n\n".encode()
            try:
                async with asyncio.timeout(FRESH_SECONDS):
                    await self._shared.stopping.wait()
            except TimeoutError:
                pass

    async def now(self) -> dict[str, Any]:
        async with self._lock:
            if time.monotonic() - self._looked_at > FRESH_SECONDS / 2:
                self._now, self._looked_at = await self._look(), time.monotonic()
            return self._now

    async def _look(self) -> dict[str, Any]:
        cluster, why = await asyncio.to_thread(self._ask_supervisors)
        view = self._shared.view
        clients = sorted(view.open_clients(), key=lambda client: client.active_at, reverse=True)
        return {
            "at": self._shared.clock.now(),
            "cluster": cluster,
            "why_no_cluster": why,
            "kafka": self._lookout.as_json(),
            "clocks": self._shared.clock.trouble(),
            "sessions": [summarise(client) for client in clients[:MOST_SESSIONS]],
            "sessions_open": len(clients),
        }

    def _ask_supervisors(self) -> tuple[dict[str, Any] | None, str]:
        """The first that answers; each of them knows all. Blocks."""
        why = "this gateway knows no supervisor (CAUCE_SUPERVISORS); Prometheus has what processes tell of themselves"
        token = self._shared.tokens.issue(OPERATOR, max(self._shared.clock.now(), time.time()) + OPERATOR_SECONDS)
        for address in self._shared.settings.supervisors:
            ask = urllib.request.Request(f"{address}/overview", headers={"Authorization": f"Bearer {token}"})  # noqa: S310 the operator's own setting
            try:
                with direct.open(ask, timeout=ASK_SECONDS) as answer:
                    found: dict[str, Any] = json.load(answer)
                    return found, ""
            except (OSError, ValueError) as error:
                why = f"no supervisor answers; the last one asked was {address}: {error}"
        return None, why
