"""Around every request, below FastAPI: small bodies stay small and come soon, answers are taken away in time, tus's
headers are on every answer, answers are counted, a slash at the end of a path makes no other path of it, and HEAD is
answered wherever GET is.

Invariant: only a PATCH may carry more than SMALL_BYTES or take longer than SMALL_SECONDS; its body is never read here.
No answer waits longer than TAKE_SECONDS for its client to take the next piece of it.
"""

import asyncio
import contextlib
import logging
import re
from contextlib import AbstractContextManager
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cauce import tracing
from gateway import problems, tus
from gateway.connections import KEEP_ALIVE_SECONDS
from gateway.metrics import Metrics
from gateway.problems import Problem

log = logging.getLogger(__name__)

SMALL_BYTES: Final = 64 << 10  # a session's options in JSON are a hundred
SMALL_SECONDS: Final = 30.0
TAKE_SECONDS: Final = 60.0  # a piece has a megabyte at most: whoever is slower than a modem comes again with Range
HEADERS_BYTES: Final = 64 << 10  # the server itself takes 400 KiB, and refuses more without a word of ours
UPLOADS_PATH: Final = re.compile(r"/sessions/[^/]+/uploads(/[^/]*)?")


class Shim:
    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # A redirect would have to name this server, and only its client knows by which name it is reached.
        scope["path"] = scope["path"].removesuffix("/") or "/"
        is_tus = UPLOADS_PATH.fullmatch(scope["path"]) is not None
        if is_tus:
            scope["method"] = tus.method(scope["method"], Headers(scope=scope))

        is_answered = False

        async def counted(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                is_answered = True
                self._metrics.answered(scope["method"], message["status"])
                headers = MutableHeaders(scope=message)
                headers["Keep-Alive"] = f"timeout={KEEP_ALIVE_SECONDS}"
                if is_tus:
                    headers["Tus-Resumable"] = tus.VERSION
            try:
                async with asyncio.timeout(TAKE_SECONDS):
                    await send(message)
            except TimeoutError:
                raise _TooSlow from None

        if size_of(scope) > HEADERS_BYTES:
            problem = Problem(431, "too-big", f"path and headers may have {HEADERS_BYTES} bytes together")
            await problems.answer(problem)(scope, receive, counted)
            return
        limited = receive if scope["method"] == "PATCH" else _limited(receive)
        try:
            with traced(scope):
                await self._app(scope, limited, counted)
        except _TooMuch:
            problem = Problem(413, "too-big", f"the body may have {SMALL_BYTES} bytes here")
            await problems.answer(problem)(scope, receive, counted)
        except _TooSlow:
            log.info("a client took too long", extra={"method": scope["method"], "path": scope["path"]})
            if not is_answered:
                problem = Problem(408, "too-slow", f"the body did not come in {SMALL_SECONDS:.0f} s; send it at once")
                await problems.answer(problem)(scope, receive, counted)


def size_of(scope: Scope) -> int:
    address = len(scope.get("raw_path") or scope["path"]) + len(scope.get("query_string", b""))
    return address + sum(len(name) + len(value) for name, value in scope["headers"])


def traced(scope: Scope) -> AbstractContextManager[object]:
    """The request as a span, a child of the client's: named by what is asked, not by whose it is. Not what probes and
    Prometheus ask every few seconds."""
    _, *words = scope["path"].split("/")
    if words[0] != "sessions":
        return tracing.NOTHING
    name = "/".join(word if word.isalpha() else "…" for word in words[:4])
    carrier = {tracing.PARENT: Headers(scope=scope).get(tracing.PARENT, "")}
    return tracing.span(f"{scope['method']} /{name}", carrier, client_id=words[1] if len(words) > 1 else "")


class _TooMuch(BaseException):
    """Not an Exception: nothing on the way may take it for a fault of ours."""


class _TooSlow(BaseException):
    """The same."""


class HeadAsGet:
    """Answers HEAD with the headers of GET. tus has a HEAD of its own for uploads."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or UPLOADS_PATH.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
            else:
                await send({"type": "http.response.body"})
                raise _HeadIsOver

        with contextlib.suppress(_HeadIsOver):
            await self._app({**scope, "method": "GET"}, receive, without_body)


class _HeadIsOver(BaseException):
    """Ends what would go on to make a body, or events, for nobody. Not an Exception, like the others."""


def _limited(receive: Receive) -> Receive:
    got, deadline = 0, asyncio.get_running_loop().time() + SMALL_SECONDS
    is_whole = False

    async def limited() -> Message:
        nonlocal got, is_whole
        try:
            async with asyncio.timeout_at(None if is_whole else deadline):
                message = await receive()
        except TimeoutError:
            raise _TooSlow from None
        is_whole = is_whole or not message.get("more_body", False)  # what comes then is the end of the connection
        got += len(message.get("body", b""))
        if got > SMALL_BYTES:
            raise _TooMuch
        return message

    return limited
