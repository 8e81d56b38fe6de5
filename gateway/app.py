"""The app: what is asked at which path, and what every request needs to be answered. No decision is made here."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from cauce import http_models
from cauce.errors import ConfigError
from cauce.provision import ensure_our_topics
from cauce.settings import Settings
from cauce.tokens import Tokens
from cauce.topics import ANSWERS, SESSIONS, UPLOADS
from gateway import overview, pages, problems, schema, site, tus
from gateway.answers import Answers, Stream
from gateway.callers import FOR_THE_OPERATOR, Caller, Reader, SessionInPath, TusCaller
from gateway.clock import SharedTime, Ticks, keep_time
from gateway.conditions import is_at_hand, range_wanted
from gateway.connections import OpenConnections
from gateway.cors import Cors
from gateway.hazards import Hazards
from gateway.limits import Rates
from gateway.lookout import Lookout
from gateway.metrics import Metrics
from gateway.overview import Overview
from gateway.problems import Problem
from gateway.publish import Notes
from gateway.seats import Seats
from gateway.sessions import Sessions, describe, find_query, summarise
from gateway.shared import Shared, dataset_of, session_of
from gateway.shim import HeadAsGet, Shim
from gateway.site import Site
from gateway.uploads import Uploads, address_of
from gateway.view import View
from queries.datasets import DATASETS
from queries.model import DEFAULT_MODEL, Options

router = APIRouter()


class Wish(BaseModel):
    """What a session is to be about."""

    model_config = ConfigDict(extra="forbid")

    dataset: str = Field(examples=["movies"], json_schema_extra={"enum": list(DATASETS)})
    scope: Literal["us", "all"] = "us"
    model: str = Field(DEFAULT_MODEL, max_length=200, pattern=r"^[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?$")
    queries: list[str] | None = Field(
        None,
        max_length=100,
        description="only these, by long or short names; left out: all of the dataset",
        examples=[["movies-q1", "q2"]],
    )


@router.post(
    "/sessions",
    status_code=201,
    summary="open a session",
    response_model=None,
    responses={201: {"model": http_models.OpenedSession}, **schema.refusals(400, 408, 413, 422, 429, 503)},
)
async def open_session(request: Request, wish: Wish) -> dict[str, Any]:
    sessions: Sessions = request.app.state.sessions
    address = request.app.state.shared.address(request)
    return await sessions.open(wish.dataset, Options(wish.scope, wish.model), wish.queries, address)


@router.get(
    "/sessions",
    summary="for the operator: all sessions, and where their rows are",
    dependencies=[FOR_THE_OPERATOR],
    response_model=None,
    responses={200: {"model": http_models.SessionList}, **schema.refusals(401, 403)},
)
async def list_sessions(request: Request) -> dict[str, Any]:
    shared: Shared = request.app.state.shared
    return {"sessions": [summarise(client) for client in shared.view.open_clients()]}


@router.get(
    "/sessions/{client_id}",
    summary="how far uploads and queries are",
    response_model=None,
    responses={200: {"model": http_models.SessionState}, **schema.refusals(*schema.OF_A_SESSION)},
)
async def show_session(request: Request, client_id: Caller) -> dict[str, Any]:
    shared: Shared = request.app.state.shared
    await shared.view.catch_up(client_id, SESSIONS.name, UPLOADS.name, ANSWERS.name)
    client = await shared.client(client_id)
    return describe(client, shared.view.expires_at(client))


@router.delete(
    "/sessions/{client_id}",
    status_code=204,
    summary="end the session; all of it is deleted",
    responses=schema.refusals(*set(schema.OF_A_SESSION) - {404}),
)
async def end_session(request: Request, client_id: Caller) -> Response:
    sessions: Sessions = request.app.state.sessions
    await sessions.end(client_id)
    return Response(status_code=204)


@router.get(
    "/sessions/{client_id}/events",
    summary="server-sent events: upload, file, query, session",
    response_class=Response,
    responses={200: schema.event_stream("upload", "file", "query", "session"), **schema.refusals(*schema.OF_A_SESSION)},
)
async def events(request: Request, client_id: Caller) -> Stream:
    answers: Answers = request.app.state.answers
    return await answers.events(client_id)


@router.get(
    "/sessions/{client_id}/answers/{query}",
    summary="the answer of a query, as CSV",
    response_class=Response,
    responses={
        200: {**schema.body("text/csv", "all of it"), "headers": schema.ETAG},
        206: {**schema.body("text/csv", "what Range wants of it"), "headers": schema.ETAG},
        **schema.NOT_MODIFIED,
        **schema.refusals(*schema.OF_A_SESSION, 409, 416, 422),
    },
    openapi_extra=schema.parameters(schema.RANGE, schema.IF_RANGE, schema.IF_NONE_MATCH),
)
async def show_answer(request: Request, client_id: Reader, query: str) -> Response:
    answers: Answers = request.app.state.answers
    places = await answers.find(client_id, query)
    told = {"ETag": places.tag, "Cache-Control": "private, no-cache"}
    if is_at_hand(request.headers.get("if-none-match", ""), places.tag):
        return Response(status_code=304, headers=told)
    download = await answers.csv(client_id, places, range_wanted(request.headers, places.tag))
    status = 200 if download.is_whole else 206
    headers = {**told, **download.headers(), "Content-Disposition": f'attachment; filename="{query}.csv"'}
    return Stream(download.stream, download.held, status_code=status, headers=headers, media_type="text/csv")


@router.post(
    "/sessions/{client_id}/answers/{query}/ticket",
    summary="an address for one download, good for a minute",
    response_model=None,
    responses={200: {"model": http_models.Ticket}, **schema.refusals(*schema.OF_A_SESSION)},
)
async def issue_ticket(request: Request, client_id: Caller, query: str) -> dict[str, Any]:
    shared: Shared = request.app.state.shared
    find_query(dataset_of(session_of(await shared.client(client_id))), query)
    return {"href": f"/sessions/{client_id}/answers/{query}?ticket={shared.ticket(client_id, query)}"}


@router.post(
    "/sessions/{client_id}/folders/{kind}/complete",
    summary="say that all files of a folder were sent",
    response_model=None,
    responses={200: {"model": http_models.CompletedFolder}, **schema.refusals(*schema.OF_A_SESSION, 409, 422, 423)},
)
async def complete_folder(request: Request, client_id: Caller, kind: str, files: int | None = None) -> dict[str, Any]:
    uploads: Uploads = request.app.state.uploads
    folder = await uploads.close_folder(client_id, kind, files)
    return {"kind": kind, "files": folder.files, "rows": folder.rows, "rejected": dict(folder.rejected)}


@router.options(
    "/sessions/{client_id}/uploads", status_code=204, summary="what of tus is spoken here", responses=schema.TUS_SPOKEN
)
async def tus_options(request: Request, client_id: SessionInPath) -> Response:
    """Wants no token and tells nothing of the session: clients ask this before they send headers of their own."""
    shared: Shared = request.app.state.shared
    headers = {
        "Tus-Version": tus.VERSION,
        "Tus-Extension": tus.EXTENSIONS,
        "Tus-Max-Size": str(shared.settings.max_upload_bytes),
        "Tus-Checksum-Algorithm": ",".join(tus.ALGORITHMS),
    }
    return Response(status_code=204, headers=headers)


@router.options(
    "/sessions/{client_id}/uploads/{upload_id}",
    status_code=204,
    summary="the same, of an upload",
    responses=schema.TUS_SPOKEN,
)
async def tus_options_of_upload(request: Request, client_id: SessionInPath, upload_id: str) -> Response:
    return await tus_options(request, client_id)


@router.post(
    "/sessions/{client_id}/uploads",
    status_code=201,
    summary="tus: create an upload, or find it again",
    response_class=Response,
    responses={
        201: {
            "headers": {
                **schema.OFFSET_ANSWER,
                **schema.EXPIRES_ANSWER,
                "Location": schema.header("of the upload", schema.TEXT),
            }
        },
        **schema.refusals(*schema.OF_AN_UPLOAD, 400, 409, 413, 415, 422, 423),
    },
    openapi_extra=schema.parameters(
        schema.TUS_RESUMABLE, schema.UPLOAD_LENGTH, schema.UPLOAD_DEFER_LENGTH, schema.UPLOAD_METADATA
    ),
)
async def create_upload(request: Request, client_id: TusCaller) -> Response:
    shared: Shared = request.app.state.shared
    uploads: Uploads = request.app.state.uploads
    tus.refuse_encoded(request.headers)
    tus.refuse_concatenation(request.headers)
    length = tus.length(request.headers, shared.settings.max_upload_bytes)
    upload = await uploads.create(client_id, length, tus.metadata(request.headers))
    expires = shared.expires(await shared.client(client_id))
    location = f"/sessions/{client_id}/uploads/{address_of(upload)}"
    headers = {"Location": location, "Upload-Offset": str(upload.offset), "Upload-Expires": expires}
    return Response(status_code=201, headers=headers)


@router.head(
    "/sessions/{client_id}/uploads/{upload_id}",
    summary="tus: how far an upload is",
    response_class=Response,
    responses={
        200: {
            "headers": {
                **schema.OFFSET_ANSWER,
                **schema.EXPIRES_ANSWER,
                "Upload-Length": schema.header("bytes of the file, if they are known", schema.NUMBER),
                "Upload-Defer-Length": schema.header("1 until the length is known", {"const": "1"}),
                "Upload-Metadata": schema.header("as it came with the creation", schema.TEXT),
            }
        },
        **schema.refusals(*schema.OF_AN_UPLOAD, 410, 423),
    },
    openapi_extra=schema.parameters(schema.TUS_RESUMABLE),
)
async def head_upload(request: Request, client_id: TusCaller, upload_id: str) -> Response:
    shared: Shared = request.app.state.shared
    uploads: Uploads = request.app.state.uploads
    upload = await uploads.find(client_id, upload_id)
    headers = {
        "Upload-Offset": str(upload.offset),
        **({"Upload-Defer-Length": "1"} if upload.length is None else {"Upload-Length": str(upload.length)}),
        "Upload-Expires": shared.expires(await shared.client(client_id)),
        "Cache-Control": "no-store",
    }
    if upload.metadata:
        headers["Upload-Metadata"] = upload.metadata
    return Response(status_code=200, headers=headers)


@router.patch(
    "/sessions/{client_id}/uploads/{upload_id}",
    status_code=204,
    summary="tus: more bytes of an upload",
    responses={
        204: {"headers": {**schema.OFFSET_ANSWER, **schema.EXPIRES_ANSWER}},
        **schema.refusals(*schema.OF_AN_UPLOAD, 400, 408, 409, 410, 413, 415, 422, 423, 460),
    },
    openapi_extra={
        **schema.parameters(schema.TUS_RESUMABLE, schema.UPLOAD_OFFSET, schema.UPLOAD_CHECKSUM, schema.LATER_LENGTH),
        "requestBody": schema.BYTES_OF_A_FILE,
    },
)
async def patch_upload(request: Request, client_id: TusCaller, upload_id: str) -> Response:
    shared: Shared = request.app.state.shared
    uploads: Uploads = request.app.state.uploads
    tus.require_content_type(request.headers)
    tus.refuse_encoded(request.headers)
    offset = tus.number(request.headers, "Upload-Offset")
    size = tus.number(request.headers, "Content-Length") if "content-length" in request.headers else None
    tus.refuse_trailers(request.headers)
    checksum = tus.checksum(request.headers)
    if checksum is not None and size is not None and size > tus.CHECKSUMMED_BYTES:
        raise Problem(413, "too-big", f"with a checksum at most {tus.CHECKSUMMED_BYTES} bytes are taken at once")
    most = shared.settings.max_upload_bytes
    length = tus.known_length(request.headers, most) if "upload-length" in request.headers else None
    upload = await uploads.write(client_id, upload_id, offset, size, length, checksum, request.receive)
    client = shared.view.client(client_id)
    expires = {"Upload-Expires": shared.expires(client)} if client else {}
    return Response(status_code=204, headers={"Upload-Offset": str(upload.offset), **expires})


@router.delete(
    "/sessions/{client_id}/uploads/{upload_id}",
    status_code=204,
    summary="tus: take an upload away",
    responses=schema.refusals(*schema.OF_AN_UPLOAD, 423),
    openapi_extra=schema.parameters(schema.TUS_RESUMABLE),
)
async def delete_upload(request: Request, client_id: TusCaller, upload_id: str) -> Response:
    uploads: Uploads = request.app.state.uploads
    await uploads.remove(client_id, upload_id)
    return Response(status_code=204)


def build(settings: Settings) -> FastAPI:
    """The app of one replica. It is alive between start-up and shut-down of the server that runs it."""
    if settings.secret is None:
        raise ConfigError(
            "CAUCE_SECRET is not set: every gateway needs the same one, 16 characters or more, to sign tokens"
        )
    tokens = Tokens(settings.secret.get_secret_value().encode())
    metrics = Metrics()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # a blocking call of Kafka's per live upload and a few more; the default of 6 would let one outage stop all
        pool = ThreadPoolExecutor(2 * settings.live_uploads + 32, thread_name_prefix="gateway")
        asyncio.get_running_loop().set_default_executor(pool)
        await asyncio.to_thread(ensure_our_topics, settings)
        hazards = Hazards(settings.gateway_folder, f"gateway {settings.gateway_port}")
        hazards.catch_crashes()
        clock = SharedTime()
        shared = Shared(
            settings,
            clock,
            View(settings, clock.now),
            Seats(settings.live_uploads, settings.upload_idle_seconds),
            tokens,
            Notes(settings.kafka_client()),
            metrics,
            hazards,
            app.state.stopping,
            Rates(settings.session_requests_per_second, "requests of this session (CAUCE_SESSION_REQUESTS_PER_SECOND)"),
        )
        async with running(app, shared):
            yield

    app = schema.App(
        title="Cauce",
        description=schema.DESCRIPTION,
        version=version("cauce"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # see Shim
    )
    app.state.stopping = asyncio.Event()
    app.state.site = Site(settings)
    for each in (router, pages.health, pages.router, site.router, overview.router):
        app.include_router(each)
    problems.install(app)
    app.add_middleware(HeadAsGet)
    app.add_middleware(Shim, metrics=metrics)
    # A page of any gateway goes on here when that one is lost.
    app.add_middleware(Cors, origins=(*settings.gateways, *settings.cors_origins))
    return app


def build_health(app: FastAPI) -> FastAPI:
    """Returns the pages that supervisors ask, for a port of their own: it answers when all connections are taken."""
    health = FastAPI(title="Cauce health", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    health.state = app.state
    health.include_router(pages.health)
    problems.install(health)
    health.add_middleware(HeadAsGet)
    return health


@contextlib.asynccontextmanager
async def running(app: FastAPI, shared: Shared) -> AsyncIterator[None]:
    app.state.shared = shared
    app.state.uploads = Uploads(shared)
    app.state.sessions = Sessions(shared)
    app.state.answers = Answers(shared)
    lookout = Lookout(shared.settings)
    app.state.overview = Overview(shared, lookout)
    shared.metrics.now("cauce_lso_stalls", "partitions where a transaction hangs", lambda: len(lookout.seen.stalls))
    shared.metrics.now("cauce_lso_stall_seconds", "the longest of them", lookout.longest_stall)
    connections = OpenConnections(shared.settings.gateway_port)
    shared.metrics.now("cauce_gateway_connections", "of clients, open now", connections)
    shared.metrics.now("cauce_gateway_sessions", "known here", lambda: shared.view.sessions)
    shared.metrics.now("cauce_gateway_live_uploads", "with a producer here", lambda: shared.seats.live)
    shared.metrics.now("cauce_gateway_ready", "1 when /readyz says so", lambda: not shared.why_not_ready())
    clock = shared.clock
    shared.metrics.now("cauce_gateway_clock_ahead_seconds", "of the brokers' clocks", lambda: clock.off_seconds)
    shared.metrics.now("cauce_brokers_clocks_apart_seconds", "the most", lambda: clock.apart_seconds)
    shared.metrics.now("cauce_gateway_sweeps", "1 unless clocks speak against it", lambda: not clock.why_not_sweep())
    shared.view.start()
    ticks = Ticks(shared.settings)
    chores = [
        keep_time(clock, ticks),
        shared.view.probe(),
        shared.seats.reap(),
        app.state.sessions.sweep(),
        lookout.watch(),
    ]
    tasks = [asyncio.create_task(chore) for chore in chores]
    try:
        yield
    finally:
        shared.stopping.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await shared.seats.close()
        await asyncio.to_thread(shared.notes.close)
        await asyncio.to_thread(ticks.close)
        await shared.view.stop()
