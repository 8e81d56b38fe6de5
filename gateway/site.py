"""The page at the root, and the files it is made of.

Invariants: nothing is served but the files that were there at start-up, by their names. The browser is told to run no
script, load no style and connect to nowhere but us and the other gateways. There is no cookie: what a page may do, it
may by the token that it holds, so no other site can act in its name.
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cauce import bundle, http_models
from cauce.settings import Settings
from gateway import schema
from gateway.conditions import is_at_hand
from gateway.problems import Problem
from gateway.sessions import describe_kind
from queries.datasets import DATASETS
from queries.model import Dataset

log = logging.getLogger(__name__)
router = APIRouter()

FOLDER: Final = Path(__file__).with_name("page")
KINDS: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Part:
    content: bytes
    media_type: str

    @property
    def tag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'


class Site:
    """All files of the page, in memory."""

    def __init__(self, settings: Settings) -> None:
        self._parts = dict(_found(settings))
        self._headers = headers(settings.gateways)

    def answer(self, name: str, if_none_match: str = "") -> Response:
        part = self._parts.get(name)
        if part is None:
            raise Problem(404, "not-found", f"/page/{name}: the page has no such file")
        told = {**self._headers, "ETag": part.tag, "Cache-Control": "no-cache"}
        if is_at_hand(if_none_match, part.tag):
            return Response(status_code=304, headers=told)
        return Response(part.content, headers=told, media_type=part.media_type)


def _found(settings: Settings) -> Iterator[tuple[str, Part]]:
    for file in sorted(FOLDER.iterdir()):
        if file.suffix in KINDS:
            yield file.name, Part(file.read_bytes(), KINDS[file.suffix])
    library = bundle.read(settings.cache)
    if library is None:
        log.info("tus-js-client is not at hand: the page sends files by its own means")
    else:
        yield bundle.NAME, Part(library, KINDS[".js"])


def headers(gateways: tuple[str, ...]) -> Mapping[str, str]:
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": " ".join(["'self'", *gateways]),
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


@router.get(
    "/",
    summary="the page for people",
    response_class=Response,
    responses={200: {**schema.body("text/html"), "headers": schema.ETAG}, **schema.NOT_MODIFIED},
    openapi_extra=schema.parameters(schema.IF_NONE_MATCH),
)
async def root(request: Request) -> Response:
    return _site(request).answer("index.html", request.headers.get("if-none-match", ""))


@router.get(
    "/page/{name}",
    summary="a file of the page",
    response_class=Response,
    responses={
        200: {"content": {kind: {"schema": schema.TEXT} for kind in KINDS.values()}, "headers": schema.ETAG},
        **schema.NOT_MODIFIED,
        **schema.refusals(404),
    },
    openapi_extra=schema.parameters(schema.IF_NONE_MATCH),
)
async def part_of_page(request: Request, name: str) -> Response:
    return _site(request).answer(name, request.headers.get("if-none-match", ""))


@router.get(
    "/datasets",
    summary="what can be uploaded, what is answered, and which gateways there are",
    response_model=None,
    responses={200: {"model": http_models.Datasets}},
)
async def datasets(request: Request) -> dict[str, Any]:
    gateways: tuple[str, ...] = request.app.state.shared.settings.gateways
    return {"datasets": [describe(dataset) for dataset in DATASETS.values()], "gateways": list(gateways)}


def describe(dataset: Dataset) -> dict[str, Any]:
    files = [describe_kind(file) for file in dataset.files]
    queries = [
        {"query": query.name, "header": list(query.header), "files": list(dataset.uploaded_for(query))}
        for query in dataset.queries
    ]
    return {"name": dataset.name, "files": files, "queries": queries}


def _site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site
