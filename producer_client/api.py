"""A client in Python, for programs and notebooks.

Invariant: whichever gateway dies, a call here goes on with another one, and its outcome is the same. Only Unreachable
(nobody answered for long enough) and the gateways' own refusals come out as exceptions.
"""

import json
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Self, overload

from cauce import tracing
from cauce.query_names import full_name
from producer_client import events, formats
from producer_client.errors import QueryFailed, Refused, SessionGone, WrongUsage
from producer_client.files import replacing
from producer_client.folder import Choice, FileKind, Source, find, source
from producer_client.gateways import Gateways, Route, Timing, Trouble
from producer_client.state import QueryState, SessionState
from producer_client.transfer import TUS, Transfer, Watcher, run_all

if TYPE_CHECKING:
    import pandas as pd

LONG_BYTES = 4 * 1024 * 1024  # of an answer, from which on its progress is shown
PARTIAL = 206


class Silent:
    """A watcher that tells nobody."""

    def begin(self, name: str, length: int) -> None: ...
    def at(self, name: str, offset: int) -> None: ...
    def trouble(self, name: str, what: str) -> None: ...


class Client:
    """Knows the gateways; opens sessions."""

    def __init__(
        self,
        gateways: Sequence[str] | str,
        *,
        timing: Timing | None = None,
        watcher: Watcher | None = None,
        ca: Path | str | None = None,
    ) -> None:
        """`ca`: PEM file of the authority of the gateways' certificates, where the machine does not trust it."""
        urls = [gateways] if isinstance(gateways, str) else gateways
        self._gateways = Gateways(urls, timing or Timing(), Path(ca) if ca else None)
        self._watcher = watcher or Silent()

    def kinds(self, dataset: str, queries: Sequence[str] | None = None) -> tuple[FileKind, ...]:
        """Returns the kinds of files that these queries of a dataset read; no session is opened for that. A query that
        there is not reads none: `open` refuses it by name."""
        route = self._gateways.route(give_up=min(self._gateways.timing.open, self._gateways.timing.give_up))
        datasets = self._gateways.ask("GET", "/datasets", route=route).json()["datasets"]
        described = {each["name"]: each for each in datasets}
        if dataset not in described:
            raise WrongUsage(f"there is no dataset {dataset}; there are {', '.join(described)}")
        kinds = tuple(FileKind.from_json(fields) for fields in described[dataset]["files"])
        if queries is None:
            return kinds
        names = {full_name(dataset, name) for name in queries}
        read = {kind for each in described[dataset]["queries"] if each["query"] in names for kind in each["files"]}
        return tuple(kind for kind in kinds if kind.kind in read)

    def open(
        self,
        dataset: str,
        *,
        queries: Sequence[str] | None = None,
        scope: Literal["us", "all"] | None = None,
        model: str | None = None,
    ) -> "Session":
        """Opens a session. `queries` are those that it is about, by long or short names; left out, all
        of the dataset. What else is left out is the gateway's default. Open it when the files are at
        hand: one that nothing is uploaded to ends after some minutes."""
        names = None if queries is None else [queries] if isinstance(queries, str) else list(queries)
        wanted = {"dataset": dataset, "queries": names, "scope": scope, "model": model}
        body = {name: value for name, value in wanted.items() if value is not None}
        route = self._gateways.route(give_up=min(self._gateways.timing.open, self._gateways.timing.give_up))
        with tracing.span("open session", dataset=dataset):
            trace = tracing.headers()
            response = self._gateways.ask("POST", "/sessions", route=route, json=body, headers=trace)
        return Session(self._gateways, self._watcher, response.json(), trace)

    def resume(self, ticket: dict[str, Any]) -> "Session":
        """The session of a ticket that was kept: `Session.ticket`, of another process or an earlier day."""
        try:
            session = Session(self._gateways, self._watcher, ticket)
        except (KeyError, TypeError, ValueError) as error:
            lacking = f" lacks {error}" if isinstance(error, KeyError) else " is of another form"
            raise WrongUsage(
                f"this ticket{lacking}; give the whole of Session.ticket, as it was when the session was opened"
            ) from None
        session.state()
        return session

    def close(self) -> None:
        self._gateways.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Session:
    """One client's files and answers. As a context manager it is deleted from the cluster at the end."""

    def __init__(
        self, gateways: Gateways, watcher: Watcher, ticket: dict[str, Any], trace: Mapping[str, str] | None = None
    ) -> None:
        self._gateways, self._watcher = gateways, watcher
        self.ticket = ticket  # what POST /sessions answered; holds the token, so keep it to yourself
        self.client_id: str = ticket["client_id"]
        self.dataset: str = ticket["dataset"]
        self.options: dict[str, Any] = dict(ticket["options"])
        self.files = tuple(FileKind.from_json(fields) for fields in ticket["files"])
        # Of the dataset, but read by none of the queries that this session asked for.
        self.files_not_read = tuple(FileKind.from_json(fields) for fields in ticket.get("not_read", ()))
        self.queries: tuple[str, ...] = tuple(map(_harmless, ticket["queries"]))
        self._path = f"/sessions/{self.client_id}"
        self._headers = {"Authorization": f"Bearer {ticket['token']}", **(trace or {})}  # all requests are of one trace

    @property
    def gateways_used(self) -> tuple[str, ...]:
        return tuple(self._gateways.used)

    def upload(self, folder: Path | str, *, separator: str | None = None) -> None:
        """Send every file of the dataset; returns when all have ended, raises the first refusal if there is one.
        A file that was refused before any of it was taken may be put right and sent again."""
        choice = Choice(separators={} if separator is None else {"": separator})
        for error in self.upload_sources(find(Path(folder), self.files, choice)).values():
            raise error

    def upload_file(self, path: Path | str, kind: str | None = None, *, separator: str | None = None) -> None:
        """Send one file, plain or as .csv.gz or .csv.zst; its kind is told by its name unless given. A folder of
        them is ended with `complete`. After a BadFile, one that was put right takes the place of the refused one."""
        path = Path(path)
        for unread in self.files_not_read:
            if kind == unread.kind or (kind is None and formats.without_suffix(path.name) == unread.filename):
                raise WrongUsage(f"{path.name}: {self.why_not_read(unread)}")
        for wanted in self.files:
            if kind == wanted.kind or (kind is None and formats.without_suffix(path.name) == wanted.filename):
                for error in self._transfer([source(wanted, path, separator)]).values():
                    raise error
                return
        known = ", ".join(f"{wanted.kind} ({wanted.filename})" for wanted in self.files)
        raise WrongUsage(f"{kind or path.name} is no file of {self.dataset}; give one of the kinds {known}")

    def remove(self, name: str) -> None:
        """Take an upload away, named as `state` names it. One of which nothing was taken leaves no trace; of any other
        the queries that read it fail, and the rest of the session goes on."""
        uploads = {upload.name: upload.id for upload in self.state().uploads}
        if name not in uploads:
            raise WrongUsage(f"there is no upload {name!r} in this session; there are {', '.join(uploads) or 'none'}")
        headers = {**self._headers, **TUS}
        self._gateways.ask("DELETE", f"{self._path}/uploads/{uploads[name]}", route=self._route(name), headers=headers)

    def why_not_read(self, kind: FileKind) -> str:
        """Says why a kind of file is not sent."""
        return f"none of the queries of this session ({', '.join(self.queries)}) reads {kind.kind}"

    def complete(self, kind: str, files: int | None = None) -> None:
        """Say that all files of a folder were sent: nothing is answered before that."""
        folders = [wanted.kind for wanted in self.files if wanted.is_folder]
        if kind not in folders:
            known = f"the folders of {self.dataset} are {', '.join(folders)}" if folders else f"{self.dataset} has none"
            raise WrongUsage(f"{kind!r} is no folder, and only a folder is completed; {known}")
        wanted = "" if files is None else f"?files={files}"
        self._ask("POST", f"{self._path}/folders/{kind}/complete{wanted}")

    def upload_sources(self, sources: Sequence[Source]) -> dict[str, Refused]:
        """Send all files: those that others need first, the rest side by side; then say which folders are complete.
        Gives the refused ones by name."""
        needed = {kind for file in self.files for kind in file.after}
        first = [one for one in sources if one.kind.kind in needed]
        refused = self._transfer(first) | self._transfer([one for one in sources if one not in first])
        counts = Counter(one.kind.kind for one in sources if one.kind.is_folder)
        lacking = {one.kind.kind for one in sources if one.name in refused}
        for kind, count in counts.items():
            if kind not in lacking:
                self.complete(kind, count)
        return refused

    def _transfer(self, sources: Sequence[Source]) -> dict[str, Refused]:
        """Side by side, each beginning with another gateway. One creates them all: it holds the folders then."""
        stop = threading.Event()

        def transfer(index: int, one: Source) -> Transfer:
            route, creation = (self._route(one.name, start=start, stop=stop) for start in (index, 0))
            return Transfer(self._gateways, f"{self._path}/uploads", self._headers, one, route, creation, self._watcher)

        return run_all([transfer(index, one) for index, one in enumerate(sources)], stop)

    def state(self) -> SessionState:
        """Where uploads and queries are, now."""
        return SessionState.from_json(self._ask("GET", self._path).json())

    @overload
    def answers(self, into: None = None) -> Iterator[tuple[str, "pd.DataFrame"]]: ...
    @overload
    def answers(self, into: Path | str) -> Iterator[tuple[str, Path]]: ...
    def answers(self, into: Path | str | None = None) -> Iterator[tuple[str, Any]]:
        """Each query with its answer as soon as it is ready; as a CSV file where a folder is given.

        Queries that failed raise one QueryFailed, after the others.
        """
        failed = []
        for ended in self.watch():
            if ended.state == "failed":
                failed.append(ended)
            elif into is None:
                yield ended.query, self._frame(ended.query)
            else:
                yield ended.query, self.save_answer(ended.query, Path(into) / f"{ended.query}.csv")
        if failed:
            raise QueryFailed("; ".join(f"{each.query} failed: {each.reason}" for each in failed), 422)

    def answer(self, query: str) -> "pd.DataFrame":
        """One answer; waits until it is ready."""
        if query not in self.queries:
            raise WrongUsage(f"{query} is no query of {self.dataset}; there are {', '.join(self.queries)}")
        for ended in self.watch():
            if ended.query == query:
                break
        return self._frame(query)  # of a query that failed, the gateway says why

    def watch(self, settle_seconds: float | None = None) -> Iterator[QueryState]:
        """Each query once, when it is done or has failed. With `settle_seconds`, only while that goes on."""
        waiting = set(self.queries)
        for news in self._news() if settle_seconds is None else self._looks(settle_seconds):
            for query in news:
                if query.query in waiting and query.state != "waiting":
                    waiting.remove(query.query)
                    yield query
            if not waiting:
                return

    def save_answer(self, query: str, path: Path | str) -> Path:
        """The answer's very bytes as a file, which is there whole or not at all. A cut download goes on where it was,
        with whichever gateway is there."""
        path, route = Path(path), self._route(query)
        gone = 0
        with replacing(path) as file:
            while True:
                try:
                    self._download(query, file, route)
                except SessionGone as error:
                    gone += 1
                    if gone >= len(self._gateways.urls):
                        raise
                    route.failed(Trouble(route.gateway, str(error)))
                except Trouble as trouble:
                    route.failed(trouble)
                else:
                    break
        return path

    def _download(self, query: str, file: BinaryIO, route: Route) -> None:
        at, name = file.tell(), f"{query}.csv"
        headers = {**self._headers, "Accept-Encoding": "identity", **({"Range": f"bytes={at}-"} if at else {})}
        with self._gateways.once(
            "GET", f"{self._path}/answers/{query}", route=route, headers=headers, refused=QueryFailed
        ) as response:
            if at and response.status_code != PARTIAL:  # from the start again
                at = file.seek(0)
                file.truncate()
            total = at + int(response.headers.get("Content-Length", 0))
            is_long = total >= LONG_BYTES
            if is_long:
                self._watcher.begin(name, total)
            for piece in response.iter_bytes():  # as they come: a cut must not cost what is gathered
                file.write(piece)
                at += len(piece)
                route.progressed()
                if is_long:
                    self._watcher.at(name, at)

    def close(self) -> None:
        """Delete everything of the session in the cluster. A second time, too."""
        route = self._gateways.route(give_up=self._gateways.timing.open)
        try:
            self._gateways.ask("DELETE", self._path, route=route, headers=self._headers)
        except SessionGone:
            return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _ask(self, method: str, path: str) -> Any:
        return self._gateways.ask(method, path, route=self._route("session"), headers=self._headers)

    def _route(self, name: str, start: int = 0, stop: threading.Event | None = None) -> Route:
        return self._gateways.route(start=start, stop=stop, tell=lambda what: self._watcher.trouble(name, what))

    def _news(self) -> Iterator[Sequence[QueryState]]:
        """What may have changed: events while there are some, a look of our own before and between."""
        route = self._route("answers")
        while True:
            try:
                yield from self._events(route)
            except (Trouble, SessionGone) as error:
                yield self.state().queries  # somebody answers, or Unreachable or SessionGone ends this
                route.progressed()
                route.failed(error if isinstance(error, Trouble) else Trouble(route.gateway, str(error)))
            route.stop.wait(self._gateways.timing.poll)

    def _events(self, route: Route) -> Iterator[Sequence[QueryState]]:
        headers = {**self._headers, "Accept": "text/event-stream"}
        with self._gateways.once(
            "GET", f"{self._path}/events", route=route, headers=headers, timeout=self._gateways.timing.events
        ) as response:
            yield self.state().queries  # events from here on are ours already: between the two nothing is missed
            for event in events.parse(response.iter_bytes()):
                match event.name:
                    case "query":
                        yield [QueryState.from_json(json.loads(event.data))]
                    case "":  # a comment every 10 s is our cue to look, in case that an event was lost
                        yield self.state().queries
                    case _:
                        pass
        yield self.state().queries

    def _looks(self, seconds: float) -> Iterator[Sequence[QueryState]]:
        """A look every second, until nothing has changed for so long."""
        timing, seen, quiet = self._gateways.timing, None, 0.0
        while quiet <= seconds:
            now = self.state().queries
            yield now
            quiet = quiet + timing.poll if now == seen else 0.0
            seen = now
            threading.Event().wait(timing.poll)

    def _frame(self, query: str) -> "pd.DataFrame":
        import pandas as pd  # noqa: PLC0415  (0.6 s that `cauce upload` does not need)

        with tempfile.TemporaryDirectory(prefix="cauce-") as folder:
            path = self.save_answer(query, Path(folder) / f"{query}.csv")
            # A film may be called NA: only an empty field is missing.
            return pd.read_csv(path, keep_default_na=False, na_values=[""])


def _harmless(query: str) -> str:
    """A query's name becomes that of a file here: no gateway may choose another folder by it."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", query):
        raise Refused(
            f"the gateway names a query {query[:80]!r}, which is no name for a file; is it a Cauce gateway?", 502
        )
    return query
