"""The app: what is asked at which path, and what every request needs to be answered. No decision is made here."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware.cors import CORSMiddleware

from cauce.errors import ConfigError
from cauce.messages import ClientId, UploadId
from cauce.provision import ensure_our_topics
from cauce.settings import Settings
from cauce.tokens import Tokens
from cauce.topics import ANSWERS, SESSIONS, UPLOADS
from gateway import overview, pages, problems, site, tus
from gateway.answers import Answers, Stream
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
from gateway.shim import Shim
from gateway.site import Site
from gateway.uploads import Uploads
from gateway.view import View
from queries.model import DEFAULT_MODEL, Options

router = APIRouter()


class Wish(BaseModel):
    """What a session is to be about."""

    model_config = ConfigDict(extra="forbid")

    dataset: str = Field(examples=["movies"])
    scope: Literal["us", "all"] = "us"
    model: str = Field(DEFAULT_MODEL, max_length=200, pattern=r"^[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?$")
    queries: list[str] | None = Field(
        None,
        max_length=100,
        description="only these, by long or short names; left out: all of the dataset",
        examples=[["movies-q1", "q2"]],
    )


@router.post("/sessions", status_code=201, summary="open a session")
async def open_session(request: Request, wish: Wish) -> dict[str, Any]:
    sessions: Sessions = request.app.state.sessions
    address = request.app.state.shared.address(request)
    return await sessions.open(wish.dataset, Options(wish.scope, wish.model), wish.queries, address)


@router.get("/sessions", summary="for the operator: all sessions, and where their rows are")
async def list_sessions(request: Request) -> dict[str, Any]:
    shared: Shared = request.app.state.shared
    shared.operator(request)
    return {"sessions": [summarise(client) for client in shared.view.open_clients()]}


@router.get("/sessions/{client_id}", summary="how far uploads and queries are")
async def show_session(request: Request) -> dict[str, Any]:
    shared: Shared = request.app.state.shared
    client_id = shared.caller(request)
    await shared.view.catch_up(client_id, SESSIONS.name, UPLOADS.name, ANSWERS.name)
    client = await shared.client(client_id)
    return describe(client, shared.view.expires_at(client))


@router.delete("/sessions/{client_id}", status_code=204, summary="end the session; all of it is deleted")
async def end_session(request: Request) -> Response:
    sessions: Sessions = request.app.state.sessions
    await sessions.end(request.app.state.shared.caller(request))
    return Response(status_code=204)


@router.get("/sessions/{client_id}/events", summary="server-sent events: upload, query, session")
async def events(request: Request) -> Stream:
    answers: Answers = request.app.state.answers
    return await answers.events(request.app.state.shared.caller(request))


@router.get("/sessions/{client_id}/answers/{query}", summary="the answer of a query, as CSV")
async def show_answer(request: Request, query: str, ticket: str = "") -> Stream:
    answers: Answers = request.app.state.answers
    shared: Shared = request.app.state.shared
    client_id = shared.ticket_holder(request, query, ticket) if ticket else shared.caller(request)
    download = await answers.csv(client_id, query, request.headers.get("range", ""))
    status = 200 if download.is_whole else 206
    headers = {**download.headers(), "Content-Disposition": f'attachment; filename="{query}.csv"'}
    return Stream(download.stream, download.held, status_code=status, headers=headers, media_type="text/csv")


@router.post("/sessions/{client_id}/answers/{query}/ticket", summary="an address for one download, good for a minute")
async def issue_ticket(request: Request, query: str) -> dict[str, Any]:
    shared: Shared = request.app.state.shared
    client_id = shared.caller(request)
    find_query(dataset_of(session_of(await shared.client(client_id))), query)
    return {"href": f"/sessions/{client_id}/answers/{query}?ticket={shared.ticket(client_id, query)}"}


@router.post("/sessions/{client_id}/folders/{kind}/complete", summary="say that all files of a folder were sent")
async def complete_folder(request: Request, kind: str, files: int | None = None) -> dict[str, Any]:
    uploads: Uploads = request.app.state.uploads
    folder = await uploads.close_folder(request.app.state.shared.caller(request), kind, files)
    return {"kind": kind, "files": folder.files, "rows": folder.rows, "rejected": dict(folder.rejected)}


@router.options("/sessions/{client_id}/uploads", status_code=204, summary="what of tus is spoken here")
async def tus_options(request: Request) -> Response:
    shared: Shared = request.app.state.shared
    shared.caller(request)
    headers = {
        "Tus-Version": tus.VERSION,
        "Tus-Extension": tus.EXTENSIONS,
        "Tus-Max-Size": str(shared.settings.max_upload_bytes),
        "Tus-Checksum-Algorithm": ",".join(tus.ALGORITHMS),
    }
    return Response(status_code=204, headers=headers)


def tus_call(request: Request) -> tuple[Shared, Uploads, ClientId]:
    """Who calls, once token and protocol are right."""
    shared: Shared = request.app.state.shared
    client_id = shared.caller(request)
    tus.require_version(request.headers)
    return shared, request.app.state.uploads, client_id


@router.post("/sessions/{client_id}/uploads", status_code=201, summary="tus: create an upload, or find it again")
async def create_upload(request: Request) -> Response:
    shared, uploads, client_id = tus_call(request)
    tus.refuse_encoded(request.headers)
    length = tus.length(request.headers, shared.settings.max_upload_bytes)
    upload = await uploads.create(client_id, length, tus.metadata(request.headers))
    expires = shared.expires(await shared.client(client_id))
    location = f"/sessions/{client_id}/uploads/{upload.upload_id}"
    headers = {"Location": location, "Upload-Offset": str(upload.offset), "Upload-Expires": expires}
    return Response(status_code=201, headers=headers)


@router.head("/sessions/{client_id}/uploads/{upload_id}", summary="tus: how far an upload is")
async def head_upload(request: Request, upload_id: str) -> Response:
    shared, uploads, client_id = tus_call(request)
    upload = await uploads.find(client_id, UploadId(upload_id))
    headers = {
        "Upload-Offset": str(upload.offset),
        **({"Upload-Defer-Length": "1"} if upload.length is None else {"Upload-Length": str(upload.length)}),
        "Upload-Expires": shared.expires(await shared.client(client_id)),
        "Cache-Control": "no-store",
    }
    return Response(status_code=200, headers=headers)


@router.patch("/sessions/{client_id}/uploads/{upload_id}", status_code=204, summary="tus: more bytes of an upload")
async def patch_upload(request: Request, upload_id: str) -> Response:
    shared, uploads, client_id = tus_call(request)
    if request.headers.get("content-type", "").partition(";")[0].strip() != tus.CONTENT_TYPE:
        raise Problem(415, "media-type", f"send the header Content-Type: {tus.CONTENT_TYPE}")
    tus.refuse_encoded(request.headers)
    offset = tus.number(request.headers, "Upload-Offset")
    size = tus.number(request.headers, "Content-Length") if "content-length" in request.headers else None
    checksum = tus.checksum(request.headers)
    if checksum is not None and size is not None and size > tus.CHECKSUMMED_BYTES:
        raise Problem(413, "too-big", f"with a checksum at most {tus.CHECKSUMMED_BYTES} bytes are taken at once")
    most = shared.settings.max_upload_bytes
    length = tus.known_length(request.headers, most) if "upload-length" in request.headers else None
    upload = await uploads.write(client_id, UploadId(upload_id), offset, size, length, checksum, request.receive)
    client = shared.view.client(client_id)
    expires = {"Upload-Expires": shared.expires(client)} if client else {}
    return Response(status_code=204, headers={"Upload-Offset": str(upload.offset), **expires})


@router.delete("/sessions/{client_id}/uploads/{upload_id}", status_code=204, summary="tus: take an upload away")
async def delete_upload(request: Request, upload_id: str) -> Response:
    _, uploads, client_id = tus_call(request)
    await uploads.remove(client_id, UploadId(upload_id))
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
        shared = Shared(
            settings,
            View(settings),
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

    app = FastAPI(title="Cauce", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.stopping = asyncio.Event()
    app.state.site = Site(settings)
    for each in (router, pages.router, site.router, overview.router):
        app.include_router(each)
    problems.install(app)
    app.add_middleware(Shim, metrics=metrics)
    if settings.gateways:  # a page of any of them goes on here when that one is lost
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.gateways,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["Location", "Retry-After", "Content-Range", *tus.HEADERS],
        )
    return app


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
    shared.metrics.now("cauce_gateway_sessions", "known here", lambda: shared.view.sessions)
    shared.metrics.now("cauce_gateway_live_uploads", "with a producer here", lambda: shared.seats.live)
    shared.metrics.now("cauce_gateway_ready", "1 when /readyz says so", lambda: not shared.view.why_not_ready())
    shared.view.start()
    chores = [shared.view.probe(), shared.seats.reap(), app.state.sessions.sweep(), lookout.watch()]
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
        await shared.view.stop()
