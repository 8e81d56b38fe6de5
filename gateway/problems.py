"""Every error as application/problem+json (RFC 9457): what happened, where, and what to do.

Invariant: no answer of ours with a status of 400 or more has another form, and none shows a traceback.
"""

import logging
import math
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from cauce.errors import BadUpload, BrokerUnavailable, CauceError, CommitUncertain, Fenced

log = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
RETRY_SECONDS: Final = 1  # a broker that comes back, or another replica, takes about so long
METHODS: Final = ("GET", "POST", "PATCH", "DELETE", "OPTIONS")

TITLES: Final = {
    "bad-request": "The request cannot be understood",
    "no-token": "A valid token is needed",
    "not-yours": "This token is for another session",
    "origin": "Pages of this origin may not ask",
    "not-found": "There is no such thing here",
    "gone": "This upload was taken away, or replaced",
    "method": "This path knows other methods",
    "too-slow": "The bytes came too slowly",
    "wrong-offset": "The upload is at another offset",
    "taken": "This kind of file has its upload already",
    "too-early": "Another file has to be there first",
    "not-read": "No query of this session reads this file",
    "closed": "Nothing is added to a folder that is complete",
    "incomplete": "The folder is not complete",
    "bad-range": "The answer has no such bytes",
    "not-ready": "The answer is not ready yet",
    "tus-version": "Another version of tus",
    "too-big": "More bytes than are taken",
    "too-many": "More of them than are taken",
    "too-often": "Too many requests",
    "media-type": "Another content type is wanted",
    "bad-file": "The file cannot be used",
    "bad-value": "A value is not allowed",
    "no-answer": "The query failed",
    "moved": "Another request goes on with this upload",
    "wrong-checksum": "The bytes are not those of the checksum",
    "unexpected": "Something went wrong here",
    "busy": "Too much at once",
    "no-kafka": "Kafka does not answer",
    "stopping": "This gateway is stopping",
}


class Problem(Exception):
    """An answer that says no. `fields` are file, line or offset where they apply: all are in cauce/http_models.py."""

    def __init__(
        self, status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None, **fields: Any
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.fields = fields

    def body(self) -> dict[str, Any]:
        return {
            "type": f"/docs#{self.kind}",
            "title": TITLES[self.kind],
            "status": self.status,
            "detail": self.detail,
            **self.fields,
        }


def later(status: int, kind: str, detail: str, seconds: float = RETRY_SECONDS, **fields: Any) -> Problem:
    """A problem that goes away by itself."""
    return Problem(status, kind, detail, {"Retry-After": str(max(1, math.ceil(seconds)))}, **fields)


def from_error(error: CauceError, client_id: str | None = None) -> Problem:
    match error:
        case BadUpload():
            fields = {name: getattr(error, name, None) for name in ("file", "line")}
            return Problem(422, "bad-file", str(error), **{name: value for name, value in fields.items() if value})
        case Fenced():
            return later(423, "moved", "another request took this upload over; HEAD says how far it is, resume there")
        case BrokerUnavailable() | CommitUncertain():
            log.warning("request put off", extra={"client_id": client_id, "reason": str(error)})
            return later(503, "no-kafka", f"{error}; HEAD says what was kept, resume there")
        case _:
            log.error("unexpected error", exc_info=error, extra={"client_id": client_id})
            return Problem(500, "unexpected", "this is a fault of the gateway and was logged; try again later")


def install(app: FastAPI) -> None:
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(CauceError, _cauce)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def answer(problem: Problem) -> Response:
    return JSONResponse(problem.body(), problem.status, problem.headers, MEDIA_TYPE)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return answer(error)


async def _cauce(request: Request, error: Exception) -> Response:
    assert isinstance(error, CauceError)
    return answer(from_error(error, request.path_params.get("client_id")))


async def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:]) or "the body"
    if first["type"] == "json_invalid":
        return answer(Problem(400, "bad-request", f"the body is not JSON: {first['ctx']['error']}"))
    return answer(Problem(422, "bad-value", f"{where}: {first['msg']}; see /docs for what it may be"))


async def _http(request: Request, error: Exception) -> Response:
    """What Starlette itself refuses: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    match error.status_code:
        case 404:
            problem = Problem(404, "not-found", f"{path}: there is no such path; /docs lists them")
        case 405:
            allowed = ", ".join(allowed_methods(request))
            detail = f"{request.method} {path}: allowed are {allowed}"
            problem = Problem(405, "method", detail, {"Allow": allowed}, method=request.method)
        case status:
            problem = Problem(status, "bad-request", str(error.detail), error.headers)
    return answer(problem)


def allowed_methods(request: Request) -> list[str]:
    """Returns what this path knows, of all of its routes; HEAD wherever there is GET."""

    def knows(method: str) -> bool:
        scope = {"type": "http", "method": method, "path": request.scope["path"], "headers": []}
        return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)

    known = [method for method in METHODS if knows(method)]
    return sorted({*known, "HEAD"}) if "GET" in known or knows("HEAD") else known


async def _unexpected(request: Request, error: Exception) -> Response:
    about = {"client_id": request.path_params.get("client_id"), "method": request.method, "path": request.url.path}
    log.error("request failed", exc_info=error, extra=about)
    return answer(Problem(500, "unexpected", "this is a fault of the gateway and was logged; try again later"))
