"""The life of a session: opened, described, ended by its client or by time.

Invariant: a session ends in three steps, and each is harmless when done twice or by two replicas: say that it is ending
(nobody takes an upload over any more), fence the uploads (nobody writes any more), then in one transaction tell every
partition to forget it and remove what is known of it. A replica that dies in between leaves an expired session behind,
which the next sweep ends.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from cauce.errors import CauceError, Fenced
from cauce.messages import ClientId, Session, Upload, UploadId, to_json
from cauce.tokens import new_client_id
from cauce.topics import ANSWERS, KEPT_MS, SESSIONS, UPLOADS
from gateway.admission import Candidates, OpenSession
from gateway.batches import home_partition
from gateway.limits import Rates
from gateway.problems import Problem, later
from gateway.publish import Publisher, Record
from gateway.query_choice import chosen, files_not_read
from gateway.shared import Shared, dataset_of, session_of
from gateway.uploads import upload_transactional_id
from gateway.view import ENDING, Client, Total
from queries.datasets import DATASETS
from queries.model import Dataset, File, Options, Query

log = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 10.0
AT_ONCE: Final = 8  # producers that a fence makes: a folder may have many files
# Sessions that are ended at once: each takes a transaction and a few producers for a moment.
ENDS_AT_ONCE: Final = 4
# Another gateway may have ended the same one, or an upload of it was just created.
TRIES: Final = 3


class Sessions:
    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._view = shared.view
        settings = shared.settings
        self._rates = Rates(settings.new_sessions_per_second, "new sessions (CAUCE_NEW_SESSIONS_PER_SECOND)")
        self._rates_of_address = Rates(
            settings.address_sessions_per_second,
            "new sessions of one address (CAUCE_ADDRESS_SESSIONS_PER_SECOND)",
        )
        self._opening = 0  # sessions that the view does not know yet
        self._giving_way: set[ClientId] = set()  # one for each of these at most
        self._ends = asyncio.Semaphore(ENDS_AT_ONCE)

    async def open(
        self, dataset: str, options: Options, queries: Sequence[str] | None = None, address: str = ""
    ) -> dict[str, Any]:
        """Opens a session; `queries` are the names that its client gave, None for all of them. `address` is a
        fingerprint of who asks; empty for this machine, which is not counted."""
        if dataset not in DATASETS:
            raise Problem(422, "bad-value", f"dataset {dataset!r} is not known; known are {', '.join(DATASETS)}")
        allowed = [model.strip() for model in self._shared.settings.allowed_models.split(",")]
        if options.model not in allowed:
            detail = f"model {options.model!r} is not one of {', '.join(allowed)} (CAUCE_ALLOWED_MODELS)"
            raise Problem(422, "bad-value", detail)
        options = replace(options, queries=chosen(DATASETS[dataset], queries))
        if address:
            self._rates_of_address.take(address)
        self._rates.take("all")
        session = await self._publish_new(dataset, options, address)
        asked = dataset_of(session)
        log.info("session opened", extra={"client_id": session.client_id, "dataset": dataset})
        return {
            "client_id": session.client_id,
            "token": self._shared.tokens.issue(session.client_id, session.created_at + KEPT_MS / 1000),
            "expires_at": min(session.expires_at, session.created_at + self._shared.settings.empty_session_seconds),
            "dataset": dataset,
            "options": dict(session.options),
            "files": [describe_kind(file) for file in asked.files],
            "not_read": [describe_kind(file) for file in files_not_read(asked)],
            "queries": [query.name for query in asked.queries],
            "uploads": f"/sessions/{session.client_id}/uploads",
            "events": f"/sessions/{session.client_id}/events",
        }

    async def _publish_new(self, dataset: str, options: Options, address: str) -> Session:
        """Writes a new session down as soon as there is a place for it."""
        self._opening += 1
        try:
            await self._make_room(address)
            now = self._view.now()
            expires_at = now + self._shared.settings.session_ttl_seconds
            session = Session(ClientId(new_client_id()), dataset, options.to_dict(), now, expires_at, address)
            await asyncio.to_thread(self._shared.notes.send, self._record(session.client_id, session))
            return session
        finally:
            self._opening -= 1

    async def _make_room(self, address: str) -> None:
        """Ends an empty session where all places are taken, or refuses and says when it can get better."""
        settings = self._shared.settings
        young, most = settings.young_session_seconds, settings.max_sessions
        for _ in range(TRIES):
            staying = [each for each in self._view.open_sessions() if each.client_id not in self._giving_way]
            if len(staying) + self._opening <= most:
                return
            candidates, now = Candidates(staying, address, young), self._view.now()
            full = f"{most} sessions are open, which is the limit (CAUCE_MAX_SESSIONS)"
            if why := self._shared.clock.why_not_sweep():
                detail = f"{full}, and none gives way while clocks disagree or are not known: {why}"
                raise later(503, "busy", detail, candidates.first_end() - now)
            found = candidates.first(now)
            if found is None:
                raise later(503, "busy", f"{full}; wait a little", candidates.better_at() - now)
            if await self._end_idle(found):
                return
        raise later(503, "busy", "others open sessions at the same moment; try again")

    async def _end_idle(self, found: OpenSession) -> bool:
        """Whether its place is free now: another gateway may have given it away, or its client did something."""
        self._giving_way.add(found.client_id)
        try:
            async with self._ends:
                if not await self.end(found.client_id, lambda: found in self._view.open_sessions()):
                    return False
                await self._view.catch_up(found.client_id, SESSIONS.name)
        finally:
            self._giving_way.discard(found.client_id)
        log.info("empty session gave way", extra={"client_id": found.client_id})
        return True

    async def end(self, client_id: ClientId, is_due: Callable[[], bool] = lambda: True) -> bool:
        """Everything of the session goes, if it is due once all is known that was written about it. Whoever is fenced
        here meets another replica that does the same."""
        # Whoever was paused or cut off has not seen what renewed it.
        await self._view.catch_up(client_id, SESSIONS.name, UPLOADS.name, ANSWERS.name)
        session = self._view.session(client_id)
        if session is None or not is_due():
            return False
        try:
            await self._end(session)
        except Fenced:
            return False
        self._shared.metrics.ended.inc()
        log.info("session ended", extra={"client_id": client_id})
        return True

    async def sweep(self) -> None:
        """For ever: end the sessions whose time is over."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS * random.uniform(0.5, 1.5))  # replicas should seldom do it at once
            over = self._due()
            for start in range(0, len(over), ENDS_AT_ONCE):
                await asyncio.gather(*(self._end_if_over(each) for each in over[start : start + ENDS_AT_ONCE]))

    async def _end_if_over(self, client_id: ClientId) -> None:
        try:
            await self.end(client_id, lambda: self._view.client(client_id) is None)
        except CauceError as error:
            log.warning("session not ended yet", extra={"client_id": client_id, "reason": str(error)})

    def _due(self) -> list[ClientId]:
        """An end that was begun is finished whatever the time is; one for its age needs clocks that agree."""
        return self._view.ending() if self._shared.clock.why_not_sweep() else self._view.expired()

    async def _end(self, session: Session) -> None:
        settings, client_id = self._shared.settings, session.client_id
        scribe = self._shared.scribe(session)
        kinds = [UploadId(file.kind) for file in dataset_of(session).files]
        transactional_id = f"{settings.topic_prefix}session.{client_id}"
        publisher = await asyncio.to_thread(Publisher.take_over, settings.kafka_client(), transactional_id)
        try:
            ending = self._record(client_id, replace(session, expires_at=ENDING))
            await asyncio.to_thread(publisher.publish, [], [ending])
            await self._fence_all(client_id, kinds)  # also those that have ended: one may be about to be deleted
            await self._view.catch_up(client_id, UPLOADS.name)  # nobody adds to a folder any more
            known = self._view.uploads(client_id)
            members = [upload for upload in known if upload not in kinds]
            # A file of a folder that has ended needs no fence: it is changed by whoever holds the folder.
            open_ones = [upload for upload in members if not known[upload].complete]
            await self._fence_all(client_id, open_ones)
            if publisher.is_spent:
                spent = publisher
                publisher = await asyncio.to_thread(Publisher.take_over, settings.kafka_client(), transactional_id)
                await asyncio.to_thread(spent.close)
            gone = [*(scribe.forget(upload) for upload in (*kinds, *members)), self._record(client_id, None)]
            await asyncio.to_thread(publisher.publish, scribe.aborts(), gone)
        finally:
            await asyncio.to_thread(publisher.close)

    async def _fence_all(self, client_id: ClientId, uploads: Sequence[UploadId]) -> None:
        for start in range(0, len(uploads), AT_ONCE):
            few = uploads[start : start + AT_ONCE]
            await asyncio.gather(*(asyncio.to_thread(self._fence, client_id, upload) for upload in few))

    def _fence(self, client_id: ClientId, upload_id: UploadId) -> None:
        settings = self._shared.settings
        transactional_id = upload_transactional_id(settings.topic_prefix, client_id, upload_id)
        Publisher.take_over(settings.kafka_client(), transactional_id).close()

    def _record(self, client_id: ClientId, session: Session | None) -> Record:
        settings = self._shared.settings
        partition = home_partition(client_id, settings.partitions)
        value = to_json(session) if session else None
        return Record(settings.topic_prefix + SESSIONS.name, partition, client_id, value)


def describe_kind(file: File) -> dict[str, Any]:
    return {
        "kind": file.kind,
        "filename": file.filename,
        "columns": list(file.columns),
        "separator": file.separator,
        "folder": file.is_folder,
        "after": list(file.after),
    }


def describe(client: Client, expires_at: float) -> dict[str, Any]:
    session = session_of(client)
    return {
        **describe_session(session, expires_at),
        "uploads": [describe_upload(upload) for upload in client.uploads.values() if not upload.files],
        "files": [describe_file(file, client) for file in dataset_of(session).all_files],
        "queries": [describe_query(query, client) for query in dataset_of(session).queries],
    }


def summarise(client: Client) -> dict[str, Any]:
    """For the operator: what a session has come to, and where its rows are."""
    session = session_of(client)
    files = [describe_file(file, client) for file in dataset_of(session).all_files]
    states = {query_state(query, client)[0] for query in dataset_of(session).queries}
    ended = all(file["ended"] for file in files)
    working = "answering" if ended else "uploading"
    state = working if "waiting" in states else "failed" if "failed" in states else "done"
    return {
        "client_id": session.client_id,
        "dataset": session.dataset,
        "queries": [query.name for query in dataset_of(session).queries],
        "state": state,
        "files": files,
    }


def describe_session(session: Session, expires_at: float) -> dict[str, Any]:
    return {
        "client_id": session.client_id,
        "dataset": session.dataset,
        "options": dict(session.options),
        "expires_at": expires_at,
    }


def describe_file(file: File, client: Client) -> dict[str, Any]:
    """Where the rows of a kind of file are. Once it has ended, what was sent is what was folded."""
    total = Total.of(client.members(file.kind))
    batches, folded = client.folded.get(file.kind, (None, None))
    return {
        "kind": file.kind,
        "ended": file.kind in client.folded,
        "rows": total.rows,
        "rejected": total.rejected,
        "unused": total.unused,
        "sent": total.sent,
        "batches": batches,
        "folded": folded,
    }


def describe_upload(upload: Upload) -> dict[str, Any]:
    return {
        "id": upload.upload_id,
        "kind": upload.file,
        "name": upload.name,
        "length": upload.length,
        "offset": upload.offset,
        "rows": upload.rows,
        "rejected": dict(upload.rejected),
        "unused": upload.unused,
        "state": "failed" if upload.failed else "complete" if upload.complete else "open",
        "reason": upload.failed,
    }


def describe_query(query: Query, client: Client) -> dict[str, Any]:
    state, reason = query_state(query, client)
    href = f"/sessions/{session_of(client).client_id}/answers/{query.name}" if state == "done" else None
    return {"query": query.name, "state": state, "reason": reason, "href": href}


def query_state(query: Query, client: Client) -> tuple[str, str]:
    for kind in dataset_of(session_of(client)).uploaded_for(query):
        for upload in client.members(kind):
            if upload.failed and query.name not in upload.answered:  # it would wait for ever
                return "failed", f"{upload.failed}; this query needs {upload.file}"
    places = client.answers.get(query.name)
    if places is not None and places.whole:
        return places.state, places.reason
    return "waiting", ""


def find_query(dataset: Dataset, name: str) -> Query:
    for query in dataset.queries:
        if query.name == name:
            return query
    known = ", ".join(query.name for query in dataset.queries)
    whole = DATASETS[dataset.name]
    if name in {query.name for query in whole.queries}:
        detail = f"this session did not ask for {name}; it asked for {known}"
        raise Problem(404, "not-found", detail)
    raise Problem(404, "not-found", f"dataset {dataset.name} has no query {name}; it has {known}")
