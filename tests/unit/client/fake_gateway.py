"""Gateways that speak docs/http.md and keep everything in memory, on real sockets; they misbehave when told to.

Invariant: like the real ones they lie about nothing. The offset is what was kept, whatever broke; several gateways of
one cluster share what they know. An answer depends on every byte of every file.
"""

import base64
import hashlib
import json
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any

FILES = {"movies": "movies_metadata.csv", "ratings": "ratings.csv", "credits": "credits.csv"}
COLUMNS = {"movies": ["id", "title"], "ratings": ["userId", "rating"], "credits": ["id", "cast"]}
KINDS = [{"kind": kind, "filename": name, "columns": COLUMNS[kind], "separator": ","} for kind, name in FILES.items()]
NEEDS = {  # of each query: answered once these have ended
    "movies-q1": {"movies"},
    "movies-q2": {"movies"},
    "movies-q3": {"movies", "ratings"},
    "movies-q4": {"movies", "credits"},
    "movies-q5": {"movies"},
}
READ_BYTES = 64 * 1024


@dataclass
class Upload:
    id: str
    kind: str
    name: str
    length: int | None  # None: not told yet
    metadata: dict[str, str]
    offset: int = 0
    reason: str = ""
    owner: object = None  # the PATCH that may write
    digest: Any = field(default_factory=hashlib.sha256)

    def is_of(self, metadata: dict[str, str], length: int | None) -> bool:
        """Whether a creation asks for this file again: by its checksum, else its time, else its name and length."""
        for names in (("size", "fingerprint"), ("mtime",)):
            if all(name in metadata and name in self.metadata for name in names):
                return all(metadata[name] == self.metadata[name] for name in names)
        return self.name == metadata["filename"] and length in (None, self.length)

    @property
    def state(self) -> str:
        return "failed" if self.reason else "complete" if self.offset == self.length else "open"

    def stage(self) -> dict[str, Any]:
        row = self.row()
        sent = row["rows"] - sum(row["rejected"].values()) - row["unused"]
        counts = {"sent": sent, "batches": 1, "folded": sent}
        return {"kind": self.kind, "rows": row["rows"], "rejected": row["rejected"], "unused": row["unused"], **counts}

    def row(self) -> dict[str, Any]:
        names = ("id", "kind", "name", "length", "offset", "state", "reason")
        return {
            **{name: getattr(self, name) for name in names},
            "rows": self.offset // 10,
            "rejected": {"no rating": 3},
            "unused": 12,
        }


@dataclass
class KeptSession:
    client_id: str
    token: str
    options: dict[str, Any]
    queries: list[str] = field(default_factory=lambda: list(NEEDS))
    uploads: dict[str, Upload] = field(default_factory=dict)

    def query(self, name: str, failed: dict[str, str]) -> dict[str, str]:
        ended = {upload.kind for upload in self.uploads.values() if upload.state == "complete"}
        for upload in self.uploads.values():
            if upload.reason and upload.kind in NEEDS[name]:
                failed = {**failed, name: f"{upload.reason}; this query needs {upload.kind}"}
        state = "failed" if name in failed else "done" if ended >= NEEDS[name] else "waiting"
        return {
            "query": name,
            "state": state,
            "reason": failed.get(name, ""),
            "href": f"/sessions/{self.client_id}/answers/{name}",
        }

    def answer(self, name: str) -> bytes:
        lines = [
            f"{up.kind},{up.length},{up.digest.hexdigest()}\n" for up in self.uploads.values() if up.kind in NEEDS[name]
        ]
        return "".join(["kind,bytes,sha256\n", *sorted(lines)]).encode()


class FakeCluster:
    """What all gateways know, and every request they saw."""

    def __init__(self) -> None:
        self.sessions: dict[str, KeptSession] = {}
        self.failed_queries: dict[str, str] = {}
        self.bad_content: bytes | None = None  # a file with these bytes in it is refused
        self.keeps_bad_pieces = True  # else nothing is taken of the piece that these bytes are in
        self.seen: list[tuple[int, str, str]] = []  # port, method, path
        self.patches: list[int] = []  # how many bytes each wanted to send
        self.downloads: dict[str, list[int]] = {}  # by query: how many bytes each was to get
        self.deleted: list[str] = []
        self.hold_at = -1  # a PATCH waits here, with everything before it kept, until `release`
        self.held, self.release = threading.Event(), threading.Event()
        self.lock = threading.Lock()

    def count(self, method: str, ending: str = "") -> int:
        return sum(1 for _, seen, path in self.seen if seen == method and path.endswith(ending))


class Gateway:
    """One of them, on a port of its own."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.drops: list[int] = []  # the next PATCH loses its connection after so many bytes
        self.statuses: list[tuple[str, int, dict[str, str]]] = []  # the next request of that method gets this
        self.cut_answers = 0  # the next downloads break in the middle
        self.knows_ranges = True  # else a download always starts at the first byte
        self.cut_events = 0  # the next event streams break after the first event
        self.only_changes = False  # events say nothing of what was before them, and no comment comes
        self.mute_events = False  # 503 for every event stream
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        if not self._server.stopping:
            self._server.stopping = True
            self._server.shutdown()
            self._server.server_close()
            self._server.cut_all()
            self._thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.gateway, self.stopping = gateway, False
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what these tests are about."""

    def cut_all(self) -> None:
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Refusal(Exception):
    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None, **fields: object) -> None:
        super().__init__(detail)
        self.status, self.headers = status, headers or {}
        self.problem = {"type": "about:blank", "title": "no", "status": status, "detail": detail, **fields}


class _Body:
    """The body of a request: of a length that was announced, or in chunks."""

    def __init__(self, file: BufferedIOBase, headers: Message) -> None:
        self._file, self._is_chunked = file, headers["Transfer-Encoding"] == "chunked"
        self.left = -1 if self._is_chunked else int(headers["Content-Length"])
        self._left, self.is_whole = max(0, self.left), self.left == 0

    def read(self, most: int) -> bytes:
        """So many bytes; fewer at the end only, or where the client is gone."""
        piece = b""
        while len(piece) < most and not self.is_whole:
            if self._is_chunked and not self._left:
                self._left = int(self._file.readline() or b"-1", 16)
                if self._left <= 0:
                    self.is_whole = self._left == 0 and bool(self._file.readline())
                    break
            more = self._file.read(min(self._left, most - len(piece)))
            if not more:
                break
            piece, self._left = piece + more, self._left - len(more)
            if self._is_chunked and not self._left:
                self._file.readline()
            self.is_whole = not self._is_chunked and not self._left
        return piece


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (named by the base class)
        pass

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_HEAD = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def _serve(self) -> None:
        gateway, cluster = self.server.gateway, self.server.gateway.cluster
        cluster.seen.append((self.server.server_address[1], self.command, self.path))
        try:
            self._misbehave(gateway)
            self._route(gateway, cluster)
        except Refusal as refusal:
            body = b"" if self.command == "HEAD" else json.dumps(refusal.problem).encode()
            self.close_connection = True
            self._send(refusal.status, body, {"Content-Type": "application/problem+json", **refusal.headers})

    def _misbehave(self, gateway: Gateway) -> None:
        for index, (method, status, headers) in enumerate(gateway.statuses):
            if method == self.command:
                del gateway.statuses[index]
                raise Refusal(status, f"told to answer {status}", headers)

    def _route(self, gateway: Gateway, cluster: FakeCluster) -> None:
        match self.command, self.path.strip("/").split("/"):
            case "GET", ["datasets"]:
                queries = [{"query": query, "files": sorted(kinds)} for query, kinds in NEEDS.items()]
                self._json(200, {"datasets": [{"name": "movies", "files": KINDS, "queries": queries}]})
            case "POST", ["sessions"]:
                self._open(cluster)
            case method, ["sessions", client_id, *rest]:
                if method == "DELETE" and not rest:
                    cluster.sessions.pop(client_id, None)
                    cluster.deleted.append(client_id)
                    self._send(204)
                    return
                session = cluster.sessions.get(client_id)
                if session is None:
                    raise Refusal(404, f"there is no session {client_id}; open one with POST /sessions")
                if self.headers["Authorization"] != f"Bearer {session.token}":
                    raise Refusal(401, "the token is not that of the session")
                self._in_session(gateway, cluster, session, method, rest)
            case _:
                raise Refusal(404, "no such page")

    def _open(self, cluster: FakeCluster) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked["dataset"] != "movies":
            raise Refusal(404, f"there is no dataset {asked['dataset']}; there are movies")
        options = {"scope": asked.get("scope", "us"), "model": asked.get("model", "tiny-sentiment")}
        queries = list(NEEDS)
        if "queries" in asked:
            queries = [f"movies-{name.removeprefix('movies-')}" for name in asked["queries"]]
            if unknown := [name for name in queries if name not in NEEDS]:
                raise Refusal(422, f"queries: {unknown[0]} is no query of movies")
            options["queries"] = queries
        needed = set().union(*(NEEDS[name] for name in queries))
        session = KeptSession(uuid.uuid4().hex, uuid.uuid4().hex, options, queries)
        cluster.sessions[session.client_id] = session
        not_read = [file for file in KINDS if file["kind"] not in needed]
        self._json(
            201,
            {
                "client_id": session.client_id,
                "token": session.token,
                "expires_at": "2099-01-01T00:00:00Z",
                "dataset": "movies",
                "options": options,
                "files": [file for file in KINDS if file not in not_read],
                "not_read": not_read,
                "queries": queries,
                "uploads": f"/sessions/{session.client_id}/uploads",
                "events": f"/sessions/{session.client_id}/events",
            },
        )

    def _in_session(
        self, gateway: Gateway, cluster: FakeCluster, session: KeptSession, method: str, rest: list[str]
    ) -> None:
        match method, rest:
            case "GET", []:
                self._json(200, self._state(cluster, session))
            case "GET", ["events"]:
                self._events(gateway, cluster, session)
            case "GET", ["answers", name]:
                self._answer(gateway, cluster, session, name)
            case "POST", ["uploads"]:
                self._create(cluster, session)
            case "HEAD", ["uploads", upload_id]:
                upload = session.uploads[upload_id]
                length = (
                    {"Upload-Defer-Length": "1"} if upload.length is None else {"Upload-Length": str(upload.length)}
                )
                self._send(200, b"", {"Upload-Offset": str(upload.offset), **length})
            case "PATCH", ["uploads", upload_id]:
                self._patch(gateway, cluster, session.uploads[upload_id])
            case "POST", ["folders", _, complete] if complete.startswith("complete?"):
                self._send(204)
            case "DELETE", ["uploads", upload_id]:
                self._delete(session, upload_id)
            case _:
                raise Refusal(404, "no such page")

    def _state(self, cluster: FakeCluster, session: KeptSession) -> dict[str, object]:
        return {
            "client_id": session.client_id,
            "dataset": "movies",
            "options": session.options,
            "expires_at": "2099-01-01T00:00:00Z",
            "uploads": [upload.row() for upload in session.uploads.values()],
            "files": [upload.stage() for upload in session.uploads.values()],
            "queries": [session.query(name, cluster.failed_queries) for name in session.queries],
        }

    def _create(self, cluster: FakeCluster, session: KeptSession) -> None:
        pairs = (pair.split(" ") for pair in self.headers["Upload-Metadata"].split(","))
        metadata = {key: base64.b64decode(value).decode() for key, value in pairs}
        length = None if self.headers["Upload-Defer-Length"] == "1" else int(self.headers["Upload-Length"])
        kind = metadata["kind"]
        with cluster.lock:
            upload = session.uploads.get(kind)
            if upload and upload.offset and not upload.is_of(metadata, length):
                raise Refusal(409, f"{upload.name} was begun with {upload.length} bytes, not {length}")
            if upload is None or not upload.is_of(metadata, length):
                upload = session.uploads[kind] = Upload(kind, kind, metadata["filename"], length, metadata)
        self._send(201, b"", {"Location": f"/sessions/{session.client_id}/uploads/{upload.id}"})

    def _patch(self, gateway: Gateway, cluster: FakeCluster, upload: Upload) -> None:
        if upload.reason:
            raise Refusal(422, upload.reason, file=upload.name, line=7)
        with cluster.lock:
            if int(self.headers["Upload-Offset"]) != upload.offset:
                raise Refusal(409, "wrong offset", {"Upload-Offset": str(upload.offset)}, offset=upload.offset)
            me = upload.owner = object()  # whoever wrote before is fenced
            self._take_length(upload)
        body = _Body(self.rfile, self.headers)
        cluster.patches.append(body.left)
        drop_after = gateway.drops.pop(0) if gateway.drops else 1 << 40
        while drop_after > 0:
            room = min(READ_BYTES, drop_after)
            if upload.offset < cluster.hold_at:
                room = min(room, cluster.hold_at - upload.offset)
            piece = body.read(room)
            drop_after -= len(piece)
            is_bad = cluster.bad_content is not None and cluster.bad_content in piece
            with cluster.lock:
                if upload.owner is not me or self.server.stopping:
                    self._cut()
                    return
                if not is_bad or cluster.keeps_bad_pieces:
                    upload.digest.update(piece)
                    upload.offset += len(piece)
            if is_bad:
                upload.reason = (
                    f"{upload.name}, line 7: a quoted field is never closed; close it and send the file again"
                )
                raise Refusal(422, upload.reason, file=upload.name, line=7)
            if upload.offset == cluster.hold_at:
                cluster.held.set()
                cluster.release.wait(30)
            if not piece:
                drop_after = drop_after if body.is_whole else 0
                break
        if drop_after == 0:
            self._cut()
        else:
            self._send(204, b"", {"Upload-Offset": str(upload.offset)})

    def _delete(self, session: KeptSession, upload_id: str) -> None:
        if session.uploads[upload_id].offset:
            session.uploads[upload_id].reason = "it was deleted"
        else:
            del session.uploads[upload_id]
        self._send(204)

    def _take_length(self, upload: Upload) -> None:
        if "Upload-Length" in self.headers:
            if upload.length is not None:
                raise Refusal(400, "the length was told before")
            upload.length = int(self.headers["Upload-Length"])

    def _answer(self, gateway: Gateway, cluster: FakeCluster, session: KeptSession, name: str) -> None:
        query = session.query(name, cluster.failed_queries)
        if query["state"] == "failed":
            raise Refusal(422, query["reason"])
        if query["state"] == "waiting":
            raise Refusal(409, f"{name} is not ready", {"Retry-After": "1"})
        body, status = session.answer(name), 200
        if gateway.knows_ranges and "Range" in self.headers:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            body, status = body[start:], 206
        cluster.downloads.setdefault(name, []).append(len(body))
        if gateway.cut_answers > 0:
            gateway.cut_answers -= 1
            self._head(status, {"Content-Type": "text/csv", "Content-Length": str(len(body))})
            self.wfile.write(body[: len(body) // 2])
            self._cut()
            return
        self._send(status, body, {"Content-Type": "text/csv"})

    def _events(self, gateway: Gateway, cluster: FakeCluster, session: KeptSession) -> None:
        if gateway.mute_events:
            raise Refusal(503, "no events here")
        self._head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
        self.close_connection = True
        told = set(NEEDS) if gateway.only_changes else set()
        with suppress(OSError):
            if not gateway.only_changes:
                self.wfile.write(b": hello\n\n")
            while not self.server.stopping:
                for name in NEEDS:
                    query = session.query(name, cluster.failed_queries)
                    if query["state"] != "waiting" and name not in told:
                        told.add(name)
                        text = f"event: query\r\ndata: {json.dumps(query)}\r\n\r\n".encode()
                        if gateway.cut_events > 0:
                            gateway.cut_events -= 1
                            self.wfile.write(text[:-9])
                            self._cut()
                            return
                        self.wfile.write(text)
                time.sleep(0.01)

    def _cut(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _json(self, status: int, value: object) -> None:
        self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        length = {} if status == 204 else {"Content-Length": str(len(body))}
        self._head(status, {**length, **(headers or {})})
        self.wfile.write(body)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


@contextmanager
def gateways(cluster: FakeCluster, count: int) -> Iterator[list[Gateway]]:
    started = [Gateway(cluster) for _ in range(count)]
    try:
        yield started
    finally:
        cluster.release.set()
        for gateway in started:
            gateway.stop()


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.01)
