"""Which pages of other sites may ask us: those of the other gateways, and of CAUCE_CORS_ORIGINS.

There are no cookies, so a page of any site can do here only what the token allows that it holds.
"""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from gateway import problems, tus
from gateway.problems import Problem

SEEN_BY_SCRIPTS = ("Location", "Retry-After", "Content-Range", "ETag", *tus.HEADERS)


class Cors(CORSMiddleware):
    """Answers the question that a browser asks ahead; a refusal is a problem that says which setting it is."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        super().__init__(
            app, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=SEEN_BY_SCRIPTS
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        origin = request_headers["origin"]
        if self.is_allowed_origin(origin):
            return super().preflight_response(request_headers)
        detail = f"pages of {tus.shown(origin)} may not ask this gateway; CAUCE_CORS_ORIGINS names those that may"
        return problems.answer(Problem(403, "origin", detail, {"Vary": self.preflight_headers["Vary"]}))
