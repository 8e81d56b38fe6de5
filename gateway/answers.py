"""Answers to clients: the CSV of a query streamed from its topic, and events when something of a session changes.

Invariant: memory does not grow with an answer; one part is held at a time.
"""

import asyncio
import contextlib
import json
import re
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from cauce.messages import Answer, ClientId, from_json
from cauce.topics import ANSWERS
from gateway.follow import read_at
from gateway.limits import AtOnce
from gateway.problems import Problem, later
from gateway.sessions import describe, find_query, query_state
from gateway.shared import Shared, dataset_of, session_of
from gateway.view import AnswerPlaces

COMMENT_SECONDS: Final = 10.0
STREAMS: Final = 32  # answers read at once; each has a consumer of its own
STREAMS_OF_ONE: Final = 8  # of these, for one session: a browser has six connections to a host
LISTENERS: Final = 16  # event streams of one session
POLL_AGAIN_SECONDS: Final = 1
RANGE: Final = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")

Parts = dict[tuple[str, str], str]  # event and which one → its JSON


@dataclass(frozen=True, slots=True)
class Download:
    """Bytes `start` to before `end` of an answer of `size` bytes."""

    stream: AsyncIterator[bytes]
    start: int
    end: int
    size: int
    held: contextlib.AsyncExitStack  # to be closed by whoever sends it, whatever happens

    @property
    def is_whole(self) -> bool:
        return self.end - self.start == self.size

    def headers(self) -> dict[str, str]:
        headers = {"Accept-Ranges": "bytes", "Content-Length": str(self.end - self.start)}
        return (
            headers if self.is_whole else headers | {"Content-Range": f"bytes {self.start}-{self.end - 1}/{self.size}"}
        )


class Stream(StreamingResponse):
    """Gives back what is held for it, also where nobody takes even its first byte: its generator does not run then."""

    def __init__(self, content: AsyncIterator[bytes], held: contextlib.AsyncExitStack, **options: Any) -> None:
        super().__init__(content, **options)
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._held:
            await super().__call__(scope, receive, send)


class InTurns(Iterator[bytes]):
    """A generator for several threads. A client that is gone is told to nobody who reads for it: whoever closes this
    waits for that one."""

    def __init__(self, parts: Generator[bytes]) -> None:
        self._parts = parts
        self._lock = threading.Lock()

    def __next__(self) -> bytes:
        with self._lock:
            return next(self._parts)

    def close(self) -> None:
        with self._lock:
            self._parts.close()


def byte_range(wanted: str, size: int) -> tuple[int, int]:
    """`bytes=5-`, `bytes=5-9` or `bytes=-5`; what is not understood is the whole, as HTTP has it."""
    match = RANGE.fullmatch(wanted)
    if match is None or not (match[1] or match[2]):
        return 0, size
    first, last = match[1], match[2]
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if start >= size or end <= start:
        raise Problem(416, "bad-range", f"the answer has {size} bytes", {"Content-Range": f"bytes */{size}"})
    return start, end


class Answers:
    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._streams = asyncio.Semaphore(STREAMS)
        self._downloads = AtOnce(STREAMS_OF_ONE, "downloads of a session")
        self._listeners = AtOnce(LISTENERS, "event streams of a session")
        most = max(1, shared.settings.gateway_connections // 2)
        self._all_listeners = AtOnce(most, "event streams of this gateway (half of CAUCE_GATEWAY_CONNECTIONS)")

    async def find(self, client_id: ClientId, name: str) -> AnswerPlaces:
        """Returns where the answer is, or raises why there is none."""
        client = await self._shared.client(client_id)
        query = find_query(dataset_of(session_of(client)), name)
        state, reason = query_state(query, client)
        if state == "waiting":  # another replica may know more
            await self._shared.view.catch_up(client_id, ANSWERS.name)
            state, reason = query_state(query, client)
        if state == "failed":
            raise Problem(422, "no-answer", f"{name} failed: {reason}")
        if state == "waiting":
            raise later(409, "not-ready", f"{name} waits for its files or is at work; ask again", POLL_AGAIN_SECONDS)
        return client.answers[name]

    async def csv(self, client_id: ClientId, places: AnswerPlaces, wanted: str) -> Download:
        """Returns the answer, or what the header `Range` wants of it. Errors are raised before the first byte."""
        start, end = byte_range(wanted, places.size_bytes)
        parts = InTurns(self._read(places, start, end))
        async with contextlib.AsyncExitStack() as held:
            held.enter_context(self._downloads.one(client_id))
            await held.enter_async_context(self._streams)
            held.push_async_callback(asyncio.to_thread, parts.close)
            first = await asyncio.to_thread(next, parts, b"")
            return Download(stream(first, parts), start, end, places.size_bytes, held.pop_all())

    def _read(self, places: AnswerPlaces, start: int, end: int) -> Generator[bytes]:
        """The bytes from `start` to before `end`. Only the parts that hold them are read."""
        begins = list(accumulate((places.sizes[part] for part in range(places.parts)), initial=0))
        wanted = [part for part in range(places.parts) if begins[part] < end and begins[part + 1] > start]
        if not wanted:
            return
        settings = self._shared.settings
        topic, offsets = settings.topic_prefix + ANSWERS.name, [places.offsets[part] for part in wanted]
        values = read_at(settings.kafka_client(), topic, places.partition, offsets)
        with contextlib.closing(values):
            for part, value in zip(wanted, values, strict=True):
                text = from_json(Answer, value).csv.encode()
                yield text[max(start - begins[part], 0) : end - begins[part]]

    async def events(self, client_id: ClientId) -> Stream:
        """What is, then every change; ends with the session or the gateway."""
        await self._shared.client(client_id)
        async with contextlib.AsyncExitStack() as holding:
            holding.enter_context(self._listeners.one(client_id))
            holding.enter_context(self._all_listeners.one("all"))
            held = holding.pop_all()
        no_store = {"Cache-Control": "no-store"}
        return Stream(self._events(client_id), held, media_type="text/event-stream", headers=no_store)

    async def _events(self, client_id: ClientId) -> AsyncIterator[bytes]:
        told: Parts = {}
        with self._shared.view.listen(client_id) as changed:
            while not self._shared.stopping.is_set():
                changed.clear()
                now = self._parts(client_id)
                if now is None:
                    return
                for (event, _), text in [(key, now[key]) for key in now if told.get(key) != now[key]]:
                    yield f"event: {event}\ndata: {text}\n\n".encode()
                told = now
                if not await happened(changed, self._shared.stopping):
                    yield b": still here\n\n"

    def _parts(self, client_id: ClientId) -> Parts | None:
        client = self._shared.view.client(client_id)
        if client is None:
            return None
        whole = describe(client, self._shared.view.expires_at(client))
        uploads, files, queries = whole.pop("uploads"), whole.pop("files"), whole.pop("queries")
        return (
            {("session", ""): dumped(whole)}
            | {("file", file["kind"]): dumped(file) for file in files}
            | {("upload", upload["id"]): dumped(upload) for upload in uploads}
            | {("query", query["query"]): dumped(query) for query in queries}
        )


async def stream(first: bytes, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    part: bytes | None = first
    while part is not None:
        yield part
        part = await asyncio.to_thread(next, parts, None)


async def happened(*events: asyncio.Event) -> bool:
    """Whether one of them is set before the next comment is due."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(waits, timeout=COMMENT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return bool(done)


def dumped(part: dict[str, Any]) -> str:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))
