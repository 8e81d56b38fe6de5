"""What a worker answers over HTTP: /livez (the loop turns), /readyz (and why not), /metrics."""

from typing import TYPE_CHECKING, Any

from faust.web import Request, Response, View

if TYPE_CHECKING:
    from streams.exactly_once import ExactlyOnceApp


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


def _keep(*pages: Any) -> None:
    """The decorator has registered them; a name that is only assigned would look unused."""
