"""Around every request, below FastAPI: small bodies stay small, tus's headers are on every answer, answers are counted.

Invariant: only a PATCH may carry more than SMALL_BYTES, and its body is never read here.
"""

import re
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway import problems, tus
from gateway.metrics import Metrics
from gateway.problems import Problem

SMALL_BYTES: Final = 64 << 10  # a session's options in JSON are a hundred
UPLOADS_PATH: Final = re.compile(r"/sessions/[^/]+/uploads(/[^/]*)?")
OVERRIDE: Final = ("PATCH", "DELETE", "HEAD")


class Shim:
    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_tus = UPLOADS_PATH.fullmatch(scope["path"]) is not None
        wanted = Headers(scope=scope).get("x-http-method-override", "").upper()
        if is_tus and scope["method"] == "POST" and wanted in OVERRIDE:  # tus: for proxies that let only POST through
            scope["method"] = wanted

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.answered(scope["method"], message["status"])
                if is_tus:
                    MutableHeaders(scope=message)["Tus-Resumable"] = tus.VERSION
            await send(message)

        limited = receive if scope["method"] == "PATCH" else _limited(receive)
        try:
            await self._app(scope, limited, counted)
        except _TooMuch:
            problem = Problem(413, "too-big", f"the body may have {SMALL_BYTES} bytes here")
            await problems.answer(problem)(scope, receive, counted)


class _TooMuch(BaseException):
    """Not an Exception: nothing on the way may take it for a fault of ours."""


def _limited(receive: Receive) -> Receive:
    got = 0

    async def limited() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > SMALL_BYTES:
            raise _TooMuch
        return message

    return limited
