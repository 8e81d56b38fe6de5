"""The life of an upload: created, written to, looked at, taken away; by any replica, one at a time.

Invariant: whoever writes has taken the upload over, in this order: init_transactions (a former writer is fenced, its
open transaction ended), read `sessions` and `uploads` to their ends, go on from there. A kind of file has one upload,
so the kind is its id, and two replicas that create it at once are one after the other.

A folder is a kind with any number of uploads. Its id is the kind, too, and whoever creates an upload in it, or closes
it, has taken that over: so nothing can be added to a folder that is closed, and its end follows all of its rows.
"""

import asyncio
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

from cauce.errors import CauceError, Fenced
from cauce.messages import ClientId, Upload, UploadId
from cauce.topics import ANSWERS, SESSIONS, UPLOADS
from gateway.body import Body, Ending, Receive
from gateway.intake import Intake, refuse_too_long
from gateway.problems import Problem, later
from gateway.publish import Publisher
from gateway.query_choice import files_not_read, refuse_if_not_read
from gateway.seats import Key, Live, never, while_it_holds
from gateway.shared import Shared, dataset_of, session_of
from gateway.tus import CHECKSUMMED_BYTES, Checksum, Facts, Metadata, which_file
from gateway.view import Client, Total
from queries.datasets import DATASETS
from queries.model import File

log = logging.getLogger(__name__)

IN_FOLDER: Final = re.compile(r"[0-9a-f]{16}")  # as `id_in_folder` makes them
SIGN_OF_LIFE: Final = UploadId("-")  # no kind of file is called that
OPEN_SECONDS: Final = 1.5  # a transaction that is under way ends in a fraction of this


class Uploads:
    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._view = shared.view

    async def create(self, client_id: ClientId, length: int | None, metadata: Metadata) -> Upload:
        """Creates an upload, or finds it again. A client that has to wait for its turn keeps its session."""
        try:
            return await self._create(client_id, length, metadata)
        except Problem as problem:
            if problem.kind == "busy":
                await self._renew(client_id)
            raise

    async def _renew(self, client_id: ClientId) -> None:
        """Says to every gateway that the client of an empty session is still there: a tombstone of an upload that never
        was. It renews the session's age, and brings back none that has ended."""
        client, settings = self._view.client(client_id), self._shared.settings
        brief = min(settings.young_session_seconds, settings.empty_session_seconds) / 2
        if client is not None and client.is_unused and self._view.now() - client.idle_since > brief:
            forget = self._shared.scribe(session_of(client)).forget(SIGN_OF_LIFE)
            await asyncio.to_thread(self._shared.notes.send, forget)

    async def _create(self, client_id: ClientId, length: int | None, metadata: Metadata) -> Upload:
        """Makes an upload, or finds it again. One of another file is replaced where nothing of it was taken yet."""
        client = await self._latest(client_id)
        file, name = self._wanted_file(client, metadata.values)
        upload_id = id_in_folder(file, name) if file.is_folder else UploadId(file.kind)
        if length == 0:
            raise Problem(422, "bad-file", f"{name} is empty: not even a header line is in it", file=name)
        facts = Facts.read(metadata.values, file.separator)
        wanted = Upload(
            client_id,
            upload_id,
            file.kind,
            name,
            length,
            size=facts.size,
            mtime=facts.mtime,
            fingerprint=facts.fingerprint,
            separator=facts.separator,
            metadata=metadata.header,
        )
        refuse_if_early(client, file, name)
        former = client.uploads.get(upload_id)
        if former is None:
            refuse_if_many(client, self._shared.settings.max_files, name)
        elif not may_replace(file, former, wanted):
            return same(former, wanted)
        holder, fresh = UploadId(file.kind), while_it_holds if file.is_folder else never
        async with self._shared.seats.hold((client_id, holder), self._take_over(client_id, holder), fresh) as (live, _):
            if not file.is_folder:
                return await self._made(live, file, wanted)
            if live.progress is not None:
                refuse_if_closed(live.progress, name)
            if upload_id in client.uploads or upload_id in live.created:  # somebody may be writing to it
                key = (client_id, upload_id)
                async with self._shared.seats.hold(key, self._take_over(client_id, upload_id)) as (member, _):
                    return await self._made(member, file, wanted, holder=live)
            await self._note(live, wanted)
            live.created[upload_id] = wanted
            return wanted

    async def _made(self, live: Live, file: File, wanted: Upload, holder: Live | None = None) -> Upload:
        """Returns the upload as it is wanted, or the one that there is; `live` is of this very upload. In a folder the
        `holder` writes it down: whoever has closed the folder meanwhile has fenced that one."""
        former = live.progress
        if former is not None and not may_replace(file, former, wanted):
            return same(former, wanted)
        if former is not None and difference(former, wanted):
            wanted = replace(wanted, tag=tag_of(wanted))
        await self._note(holder or live, wanted)
        if former is not None and difference(former, wanted):
            self._shared.hazards.got_on(former)  # other bytes than those that may have ended this gateway
        live.progress, live.parser = wanted, None
        return wanted

    async def _note(self, live: Live, upload: Upload) -> None:
        scribe = self._shared.scribe(session_of(await self._shared.client(upload.client_id)))
        await asyncio.to_thread(live.publisher.publish, [], [scribe.progress(upload)])

    async def close_folder(self, client_id: ClientId, kind: str, files: int | None) -> Upload:
        """The folder is complete: tell every partition. `files` is how many the client has sent, if it says so."""
        client = await self._latest(client_id)
        asked = dataset_of(session_of(client))
        for file in files_not_read(asked):
            if file.kind == kind:
                refuse_if_not_read(asked, file, f"{kind}/")
        files_of_kind = [each for each in asked.files if each.kind == kind and each.is_folder]
        if not files_of_kind:
            raise Problem(
                404, "not-found", f"{kind} is no folder of this session's dataset; only folders are completed"
            )
        holder = UploadId(kind)
        take_over = self._take_over(client_id, holder)
        async with self._shared.seats.hold((client_id, holder), take_over, while_it_holds) as (live, _):
            if live.progress is not None:
                return live.progress
            # A kept producer was not taken over now: what it has written itself may not be known yet.
            await self._view.catch_up(client_id, UPLOADS.name)
            members = client.members(kind)
            refuse_if_incomplete(members, kind, files)
            folder = folder_of(client_id, kind, members)
            scribe = self._shared.scribe(session_of(client))
            await asyncio.to_thread(
                live.publisher.publish, scribe.ends(files_of_kind[0], folder), [scribe.progress(folder)]
            )
            live.progress = folder
            return folder

    async def find(self, client_id: ClientId, address: str) -> Upload:
        """Returns how far it is, which a later request only can change: whoever asks is about to go on, so an upload
        that has not ended is taken from those who write to it (docs/decisions/0016-a-head-takes-over.md)."""
        upload_id, tag = addressed(address)
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                upload = known(await self._latest(client_id), upload_id)
            refuse_if_gone(upload, tag)
            if upload.complete or upload.failed:
                return upload
        except TimeoutError:  # a dead gateway's transaction is open; to take the upload over ends it
            file_of(await self._shared.client(client_id), upload_id)
        scribe = self._shared.scribe(session_of(await self._shared.client(client_id)))

        async def prove(live: Live) -> None:
            assert live.progress is not None
            began_at = time.monotonic()
            await asyncio.to_thread(live.publisher.publish, [], [scribe.progress(live.progress)])
            live.proved_at = began_at

        key = (client_id, upload_id)
        progress = await self._shared.seats.look(key, self._take_over(client_id, upload_id), prove)
        if progress is None:
            raise no_upload(upload_id)
        refuse_if_gone(progress, tag)
        return progress

    async def write(
        self,
        client_id: ClientId,
        address: str,
        offset: int,
        size: int | None,
        length: int | None,
        checksum: Checksum | None,
        receive: Receive,
    ) -> Upload:
        """Take the bytes of one PATCH. `size` is what the client announced of them, `length` what it says now of the
        whole file, if it does."""
        upload_id, tag = addressed(address)
        client = await self._shared.client(client_id)
        session = session_of(client)
        file = file_of(client, upload_id)
        if upload_id not in client.uploads:  # one that never was takes no producer
            known(await self._latest(client_id), upload_id)

        def fresh(live: Live) -> bool:
            known = client.uploads.get(upload_id)
            moved_on = known is not None and (known.offset > offset or bool(known.failed))
            return live.progress is not None and live.progress.offset == offset and not moved_on

        key = (client_id, upload_id)
        if (reached := self._shared.seats.offset(key)) > offset:  # it cannot be right, so nobody has to give way to it
            raise wrong_offset(file.kind, reached, offset)
        async with self._shared.seats.hold(key, self._take_over(client_id, upload_id), fresh) as (live, give_way):
            if live.progress is not None:
                refuse_if_gone(live.progress, tag)
            progress = writable(live, upload_id, offset, size, length, self._shared.settings.max_upload_bytes)
            if file.is_folder and UploadId(file.kind) in client.uploads and not progress.complete:
                refuse_if_closed(client.uploads[UploadId(file.kind)], progress.name)
            body = Body(receive, give_way, self._shared.stopping, self._shared.settings.upload_floor_bytes)
            try:
                if live.progress and live.progress.complete:
                    return live.progress
                data = await whole(body, checksum, progress) if checksum else None
                shared = self._shared
                intake = Intake(
                    live,
                    progress,
                    with_separator(file, progress.separator),
                    shared.scribe(session),
                    shared.metrics,
                    shared.hazards,
                    uploads=shared.seats.live,
                    most_bytes=shared.settings.max_upload_bytes,
                )
                await (intake.stream(body) if data is None else intake.whole(data))
            except CauceError as error:
                self._shared.metrics.failures.labels(type(error).__name__).inc()
                raise
            finally:
                body.close()
            return ended(live.progress or progress, body.ending)

    async def remove(self, client_id: ClientId, address: str) -> None:
        """Takes an upload away without a trace, where nothing of it was taken yet. Rows that were taken stay, so then
        the upload has failed, and with it the queries that read the file and have no answer. Done twice, it does no
        harm."""
        upload_id, tag = addressed(address)
        await self._view.catch_up(client_id, ANSWERS.name)
        client = await self._latest(client_id)
        file = file_of(client, upload_id)
        former = client.uploads.get(upload_id)
        if former is None or former.is_deleted or former.tag != tag:
            return
        # The end of a session fences who writes to a file, and who holds a folder; not each file that has ended.
        holder = UploadId(file.kind) if former.complete else upload_id
        async with self._shared.seats.hold((client_id, holder), self._take_over(client_id, holder)) as (live, _):
            upload = client.uploads.get(upload_id)  # the view has caught up
            if upload is not None and (not upload.complete or former.complete):
                await self._remove(live, client, upload)
                return
        if upload is not None:  # it has ended meanwhile
            await self.remove(client_id, address)

    async def _remove(self, live: Live, client: Client, upload: Upload) -> None:
        session = session_of(client)
        if not upload.offset:
            record = self._shared.scribe(session).forget(upload.upload_id)
        else:
            answered = tuple(name for name, places in client.answers.items() if places.whole)
            why = upload.failed or deleted(upload)
            upload = replace(upload, failed=why, tail="", is_deleted=True, answered=answered)
            record = self._shared.scribe(session).progress(upload)
        await asyncio.to_thread(live.publisher.publish, [], [record])
        live.created.pop(upload.upload_id, None)
        if live.progress is not None and live.progress.upload_id == upload.upload_id:
            live.progress, live.parser = upload if upload.offset else None, None
        log.info("upload deleted", extra={"client_id": upload.client_id, "upload_id": upload.upload_id})

    def _wanted_file(self, client: Client, given: Mapping[str, str]) -> tuple[File, str]:
        """Returns which file of the session is meant, and its name. One that no query of the
        session reads is told from one that the dataset does not know."""
        asked = dataset_of(session_of(client))
        file, name = which_file(DATASETS[asked.name], given)
        refuse_if_not_read(asked, file, name)
        return asked.file(file.kind), name

    async def _latest(self, client_id: ClientId) -> Client:
        await self._view.catch_up(client_id, SESSIONS.name, UPLOADS.name)
        return await self._shared.client(client_id)

    def _take_over(self, client_id: ClientId, upload_id: UploadId) -> "TakeOver":
        return TakeOver(self._shared, (client_id, upload_id))


class TakeOver:
    """The three steps; their order is the guarantee."""

    def __init__(self, shared: Shared, key: Key) -> None:
        self._shared = shared
        self._key = key

    async def __call__(self) -> Live:
        client_id, upload_id = self._key
        began_at = time.monotonic()
        settings, view = self._shared.settings, self._shared.view
        transactional_id = upload_transactional_id(settings.topic_prefix, client_id, upload_id)
        publisher = await asyncio.to_thread(Publisher.take_over, settings.kafka_client(), transactional_id)  # 1.
        try:
            await view.catch_up(client_id, SESSIONS.name, UPLOADS.name)  # 2.
            # Whoever ends a session says so first, then fences its uploads: one of the two is seen here.
            await self._shared.client(client_id)
            return Live(publisher, await view.upload(client_id, upload_id), self.renew, proved_at=began_at)  # 3.
        except BaseException:
            await asyncio.to_thread(publisher.close)
            raise

    async def renew(self, live: Live) -> None:
        """Takes the upload over once more, for a producer whose last commit was slow: a new epoch makes the broker
        refuse what may be left of it on its way. First the old one shows that nobody else has taken it meanwhile."""
        client_id, _ = self._key
        log.warning("a commit was slow, the upload is taken over again", extra={"transactional_id": live.publisher.id})
        assert live.progress is not None
        record = self._shared.scribe(session_of(await self._shared.client(client_id))).progress(live.progress)
        await asyncio.to_thread(live.publisher.prove, record)
        again = await self()
        if again.progress != live.progress:
            await asyncio.to_thread(again.publisher.close)
            raise Fenced(f"transaction {live.publisher.id}: another gateway has gone on with this upload")
        former, live.publisher, live.proved_at = live.publisher, again.publisher, again.proved_at
        await asyncio.to_thread(former.close)


def upload_transactional_id(prefix: str, client_id: ClientId, upload_id: UploadId) -> str:
    return f"{prefix}upload.{client_id}.{upload_id}"


def file_of(client: Client, upload_id: UploadId) -> File:
    kind, dot, in_folder = upload_id.partition(".")
    for file in dataset_of(session_of(client)).files:
        is_well_formed = IN_FOLDER.fullmatch(in_folder) if file.is_folder else not dot
        if file.kind == kind and is_well_formed:
            return file
    raise no_upload(upload_id)


def addressed(address: str) -> tuple[UploadId, str]:
    """Returns which upload the last word of an address means, and the tag of the file that it is of."""
    upload_id, _, tag = address.partition("~")
    return UploadId(upload_id), tag


def address_of(upload: Upload) -> str:
    """Returns the last word of its address. A file that took the place of another one has another address: bytes that
    were sent to the former one, and come late, are not taken for its own."""
    return f"{upload.upload_id}~{upload.tag}" if upload.tag else upload.upload_id


def tag_of(upload: Upload) -> str:
    """Returns the same for the same file, as far as its client tells files apart."""
    told = (upload.name, upload.length, upload.size, upload.mtime, upload.fingerprint, upload.separator)
    return sha256(repr(told).encode()).hexdigest()[:8]


def id_in_folder(file: File, name: str) -> UploadId:
    """The same file of a folder has the same id at every replica."""
    return UploadId(f"{file.kind}.{sha256(name.encode()).hexdigest()[:16]}")


def folder_of(client_id: ClientId, kind: str, members: Sequence[Upload]) -> Upload:
    """What is kept of a folder that is closed."""
    total = Total.of(members)
    length = sum(member.offset for member in members)
    return Upload(
        client_id,
        UploadId(kind),
        kind,
        f"{kind}/",
        length=length,
        offset=length,
        rows=total.rows,
        rejected=total.rejected,
        sent=total.sent,
        files=len(members),
    )


def refuse_if_early(client: Client, file: File, name: str) -> None:
    """What a fold needs at hand has to be there before the rows that it folds."""
    for kind in file.after:
        upload = client.uploads.get(UploadId(kind))
        if upload is None or not upload.complete:
            lost = upload is not None and upload.failed and upload.offset
            why = (
                "which has failed; open another session"
                if lost
                else "which is not here yet; upload that first, then send this one again"
            )
            detail = f"{name} needs {kind}, {why}"
            raise Problem(409, "too-early", detail, file=name, missing=kind)


def refuse_if_many(client: Client, most: int, name: str) -> None:
    """Every gateway remembers every upload of every session: there is a number of them that one client may have."""
    if len(client.uploads) >= most:
        detail = f"{name}: a session has at most {most} files (CAUCE_MAX_FILES); join some of them, each has a header"
        raise Problem(413, "too-many", detail, file=name)


def refuse_if_closed(folder: Upload, name: str) -> None:
    """Refuses what would add to a folder, which is there once it is closed."""
    detail = f"{name}: the folder {folder.file} was closed with {folder.files} files; open another session"
    raise Problem(409, "closed", detail, file=name)


def refuse_if_incomplete(members: Sequence[Upload], kind: str, files: int | None) -> None:
    if not members:
        raise Problem(409, "incomplete", f"the folder {kind} has no files yet; upload at least one")
    for member in members:
        if member.failed and member.offset:
            detail = f"the folder {kind} cannot be completed any more: {member.failed}"
            raise Problem(409, "incomplete", detail, file=member.name)
        if member.failed:
            detail = f"the folder {kind} is not complete: {member.failed}; delete that upload or replace the file"
            raise Problem(409, "incomplete", detail, file=member.name)
    if missing := [member.name for member in members if not member.complete]:
        detail = f"the folder {kind} is not complete: {', '.join(sorted(missing)[:5])} has not ended"
        raise Problem(409, "incomplete", detail)
    if files is not None and files != len(members):
        raise Problem(409, "incomplete", f"the folder {kind} has {len(members)} files, not {files}; send the others")


def known(client: Client, upload_id: UploadId) -> Upload:
    upload = client.uploads.get(upload_id)
    if upload is None or upload.files:
        raise no_upload(upload_id)
    return upload


def no_upload(upload_id: UploadId) -> Problem:
    return Problem(404, "not-found", f"this session has no upload {upload_id}; POST to its uploads makes one")


def difference(former: Upload, wanted: Upload) -> str:
    """Returns what tells two files apart, empty where they are the same as far as their client says: by the fingerprint
    and the size on its disk if both have them, else by name, length and time of change, else by name and length."""
    if former.length is None and wanted.length is not None:
        return "it was begun without a length; go on with a PATCH that says Upload-Length"
    if former.fingerprint and not wanted.fingerprint and wanted.length is None:
        return "it comes without a fingerprint and a length now, so nothing tells whether it is the same"
    if former.fingerprint and wanted.fingerprint and None not in (former.size, wanted.size):
        compared = ["size", "fingerprint"]
    elif None not in (former.mtime, wanted.mtime):
        compared = ["name", "length", "mtime"]
    else:
        compared = ["name", "length"]
    found = []
    for what in (*compared, "separator"):
        before, now = getattr(former, what), getattr(wanted, what)
        if before != now and not (what == "length" and None in (before, now)):
            found.append(f"the {what} was {before!r} and is {now!r} now")
    return ", ".join(found)


def may_replace(file: File, former: Upload, wanted: Upload) -> bool:
    """Whether nothing of the upload was taken, and it is refused or of another file. In a folder two files of one name
    may be on their way at the same time, so there one is replaced only once it was refused."""
    if former.offset:
        return False
    return bool(former.failed or (not file.is_folder and difference(former, wanted)))


def same(upload: Upload, wanted: Upload) -> Upload:
    if upload.failed and upload.offset:
        detail = f"{upload.failed}; some of it was taken, so {upload.file} cannot be sent again: open another session"
        raise Problem(409, "taken", detail, file=wanted.name, offset=upload.offset)
    different = difference(upload, wanted)
    if not different:
        return upload
    length = "" if upload.length is None else f" of {upload.length}"
    detail = (
        f"{upload.upload_id} is being uploaded from {upload.name}, {upload.offset}{length} bytes are taken, and "
        f"this is another file: {different}; resume the former one, delete it, or open another session"
    )
    raise Problem(409, "taken", detail, file=wanted.name, offset=upload.offset)


def refuse_if_gone(upload: Upload, tag: str) -> None:
    """Refuses what is about an upload that its client deleted, or whose place another file has taken."""
    if upload.is_deleted:
        raise Problem(410, "gone", upload.failed, file=upload.name, offset=upload.offset)
    if upload.tag != tag:
        detail = f"{upload.name}: another file has taken the place of the one at this address; POST tells its own"
        raise Problem(410, "gone", detail, file=upload.name)


def deleted(upload: Upload) -> str:
    """Returns what is said of a file that its client deleted when some of it was taken."""
    length = "" if upload.length is None else f" of {upload.length}"
    return (
        f"{upload.name}: its client deleted it; {upload.offset}{length} bytes with {upload.rows} rows were taken "
        "before and cannot be taken back: open another session to send it again"
    )


def writable(
    live: Live, upload_id: UploadId, offset: int, size: int | None, length: int | None, most_bytes: int
) -> Upload:
    """Returns the progress that a PATCH goes on from, with the length that it may have brought."""
    progress = live.progress
    if progress is None:
        raise no_upload(upload_id)
    if progress.failed:
        raise Problem(422, "bad-file", f"{progress.failed}; nothing more is taken of this file", file=progress.name)
    if offset != progress.offset:
        raise wrong_offset(progress.name, progress.offset, offset)
    if length is not None:
        progress = with_length(progress, length)
    refuse_too_long(progress, size or 0, most_bytes)
    return progress


def with_length(progress: Upload, length: int) -> Upload:
    if progress.length not in (None, length):
        detail = f"{progress.name}: Upload-Length is {length}, but it was {progress.length} before; it is said once"
        raise Problem(400, "bad-request", detail, offset=progress.offset)
    if length < progress.offset:
        detail = f"{progress.name}: Upload-Length is {length}, but {progress.offset} bytes were taken already"
        raise Problem(400, "bad-request", detail, offset=progress.offset)
    return replace(progress, length=length)


def with_separator(file: File, separator: str) -> File:
    """Returns the kind of file with the separator that its client named, if it did. The fast ways know that of the
    kind only."""
    return replace(file, separator=separator, clean_block=None) if separator else file


def wrong_offset(name: str, reached: int, offset: int) -> Problem:
    detail = f"{name}: the upload is at offset {reached}, not {offset}; go on from there"
    return Problem(409, "wrong-offset", detail, {"Upload-Offset": str(reached)}, offset=reached)


async def whole(body: Body, checksum: Checksum, progress: Upload) -> bytes:
    """The whole body, if it is small enough, all there and what the client meant to send."""
    data = await body.block(CHECKSUMMED_BYTES + 1, float("inf"))
    if len(data) > CHECKSUMMED_BYTES:
        detail = f"with a checksum at most {CHECKSUMMED_BYTES} bytes are taken at once; send smaller pieces"
        raise Problem(413, "too-big", detail, offset=progress.offset)
    if body.ending is Ending.WHOLE:
        checksum.check(data)
        return data
    if body.ending is not Ending.CUT:
        ended(progress, body.ending)
    detail = "the body broke off, or its chunks are malformed; nothing was taken"
    raise Problem(400, "bad-request", detail, offset=progress.offset)


def ended(progress: Upload, ending: Ending) -> Upload:
    """What to answer: the new progress, or why it is not what the client hoped for."""
    if ending is Ending.CUT:  # also where the file is whole: the client cannot know what we took its bytes for
        detail = "the body broke off, or its chunks are malformed; HEAD says what was kept, resume there"
        raise Problem(400, "bad-request", detail, offset=progress.offset)
    if progress.complete:
        return progress
    match ending:
        case Ending.SLOW:
            detail = "too few bytes came in 30 s; HEAD says what was kept, resume there"
            raise Problem(408, "too-slow", detail, offset=progress.offset)
        case Ending.GIVE_WAY:
            # Without Retry-After: where it was only a look, to go on costs milliseconds.
            detail = "a later request goes on with this upload; HEAD says how far it is, go on there"
            raise Problem(423, "moved", detail, offset=progress.offset)
        case Ending.STOPPING:
            detail = "this gateway is stopping; go on at another one, or here in a moment"
            raise later(503, "stopping", detail, offset=progress.offset)
        case Ending.OPEN | Ending.WHOLE:
            return progress
