"""What a worker answers over HTTP: /livez (the loop turns), /readyz (and why not), /metrics.

Invariant: connections are few and short, whoever opens them. aiohttp would keep any number for ever, and their
descriptors are those that stores and Kafka's clients need.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from faust.web import Request, Response, View

if TYPE_CHECKING:
    from streams.exactly_once import ExactlyOnceApp


MOST_CONNECTIONS: Final = 128
CONNECTION_SECONDS: Final = 10.0  # every page is there at once, and whoever comes again opens another
LOOK_SECONDS: Final = 0.25


def add_pages(app: "ExactlyOnceApp") -> None:
    @app.page("/livez", name="livez")
    async def livez(view: View, request: Request) -> Response:
        return view.text("alive")

    @app.page("/readyz", name="readyz")
    async def readyz(view: View, request: Request) -> Response:
        reason = app.engine.why_not_ready()
        return view.text(reason or "ready", status=503 if reason else 200)

    @app.page("/metrics", name="metrics")
    async def metrics(view: View, request: Request) -> Response:
        return view.bytes(app.engine.metrics.text(), content_type="text/plain")

    _keep(livez, readyz, metrics)
    aiohttp: Any = app.web  # of Faust's drivers the only one
    aiohttp.web_app.cleanup_ctx.append(short_connections(lambda: aiohttp._runner.server))


def short_connections(server: Callable[[], web.Server | None]) -> Callable[[web.Application], AsyncIterator[None]]:
    """Returns what aiohttp runs around an application: it ends connections that are too old, or too many."""

    async def end_old_ones() -> None:
        since: dict[Any, float] = {}  # oldest first
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now, running = time.monotonic(), server()
            connections = running.connections if running is not None else []
            since = {each: since.get(each, now) for each in connections}
            too_many = len(connections) - MOST_CONNECTIONS
            for place, (each, began) in enumerate(since.items()):
                if place < too_many or now - began > CONNECTION_SECONDS:
                    each.force_close()

    async def around(application: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(end_old_ones())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    return around


def _keep(*pages: Any) -> None:
    """The decorator has registered them; a name that is only assigned would look unused."""
