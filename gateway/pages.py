"""Pages for operators and readers: is it alive, is it ready, how much did it do, what can be asked."""

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from gateway import schema
from gateway.problems import TITLES
from gateway.shared import Shared

router = APIRouter()
health = APIRouter()  # answered on CAUCE_GATEWAY_HEALTH_PORT, too

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Cauce</title>
<style>body{{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}}code{{font-size:.95em}}
td,th{{text-align:left;vertical-align:top;padding:.2rem 1rem .2rem 0}}</style>
<h1>Cauce</h1><p>Machine-readable: <a href="/openapi.json">/openapi.json</a>.</p>
<h2>Requests</h2><table>{paths}</table>
<h2>Problems</h2><table>{problems}</table></html>"""


@health.get("/livez", summary="the event loop turns", response_class=PlainTextResponse)
async def livez() -> PlainTextResponse:
    return PlainTextResponse("alive")


@health.get(
    "/readyz",
    summary="Kafka is there, all sessions are known, our clock is right; 503 says what is missing",
    response_class=PlainTextResponse,
    responses={503: schema.body("text/plain", "what is missing")},
)
async def readyz(request: Request) -> PlainTextResponse:
    shared: Shared = request.app.state.shared
    if reason := shared.why_not_ready():
        return PlainTextResponse(reason, 503)
    trouble = shared.clock.trouble()  # somebody else's clock: this gateway does its work
    return PlainTextResponse(f"ready; {trouble}" if trouble else "ready")


@health.get("/metrics", summary="for Prometheus", response_class=Response, responses={200: schema.body("text/plain")})
async def metrics(request: Request) -> Response:
    shared: Shared = request.app.state.shared
    return Response(shared.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/docs", summary="this page", response_class=HTMLResponse)
async def docs(request: Request) -> HTMLResponse:
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    rows = [
        f"<tr><td><code>{method.upper()} {escape(path)}</code><td>{escape(about.get('summary', ''))}"
        for path, methods in paths.items()
        for method, about in methods.items()
    ]
    problems = [f"<tr id={kind}><td><code>{kind}</code><td>{escape(title)}" for kind, title in TITLES.items()]
    return HTMLResponse(PAGE.format(paths="\n".join(rows), problems="\n".join(problems)))
