"""The life of an upload: created, written to, looked at, taken away; by any replica, one at a time.

Invariant: whoever writes has taken the upload over, in this order: init_transactions (a former writer is fenced, its
open transaction ended), read `sessions` and `uploads` to their ends, go on from there. A kind of file has one upload,
so the kind is its id, and two replicas that create it at once are one after the other.

A folder is a kind with any number of uploads. Its id is the kind, too, and whoever creates an upload in it, or closes
it, has taken that over: so nothing can be added to a folder that is closed, and its end follows all of its rows.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from cauce.errors import CauceError
from cauce.messages import ClientId, Upload, UploadId
from cauce.topics import SESSIONS, UPLOADS
from gateway.body import Body, Ending, Receive
from gateway.intake import Intake, too_long
from gateway.problems import Problem, later
from gateway.publish import Publisher
from gateway.query_choice import files_not_read, refuse_if_not_read
from gateway.seats import Key, Live, never, while_it_holds
from gateway.shared import Shared, dataset_of, session_of
from gateway.tus import CHECKSUMMED_BYTES, Checksum, which_file
from gateway.view import Client, Total
from queries.datasets import DATASETS
from queries.model import File

OPEN_SECONDS: Final = 1.5  # a transaction that is under way ends in a fraction of this


class Uploads:
    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._view = shared.view

    async def create(self, client_id: ClientId, length: int, given: Mapping[str, str]) -> Upload:
        client = await self._latest(client_id)
        file, name = self._wanted_file(client, given)
        upload_id = id_in_folder(file, name) if file.is_folder else UploadId(file.kind)
        if not length:
            raise Problem(422, "bad-file", f"{name} is empty: not even a header line is in it", file=name)
        refuse_if_early(client, file, name)
        if upload_id in client.uploads:
            return same(client.uploads[upload_id], name, length)
        refuse_if_many(client, self._shared.settings.max_files, name)
        holder, fresh = UploadId(file.kind), while_it_holds if file.is_folder else never
        async with self._shared.seats.hold((client_id, holder), self._take_over(client_id, holder), fresh) as (live, _):
            if file.is_folder:
                refuse_if_closed(live, file, name)
                if former := client.uploads.get(upload_id) or live.created.get(upload_id):  # the view has caught up
                    return same(former, name, length)
            elif live.progress is not None:
                return same(live.progress, name, length)
            upload = Upload(client_id, upload_id, file.kind, name, length)
            scribe = self._shared.scribe(session_of(client))
            await asyncio.to_thread(live.publisher.publish, [], [scribe.progress(upload)])
            if file.is_folder:
                live.created[upload_id] = upload
            else:
                live.progress = upload
            return upload

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
            members = client.members(kind)
            refuse_if_incomplete(members, kind, files)
            folder = folder_of(client_id, kind, members)
            scribe = self._shared.scribe(session_of(client))
            await asyncio.to_thread(
                live.publisher.publish, scribe.ends(files_of_kind[0], folder), [scribe.progress(folder)]
            )
            live.progress = folder
            return folder

    async def find(self, client_id: ClientId, upload_id: UploadId) -> Upload:
        """Returns how far it is, which a later request only can change: whoever asks is about to go on, so an upload
        that has not ended is taken from those who write to it (docs/decisions/0016-a-head-takes-over.md)."""
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                upload = known(await self._latest(client_id), upload_id)
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
        return progress

    async def write(
        self,
        client_id: ClientId,
        upload_id: UploadId,
        offset: int,
        size: int | None,
        checksum: Checksum | None,
        receive: Receive,
    ) -> Upload:
        """Take the bytes of one PATCH. `size` is what the client announced, if it did."""
        client = await self._shared.client(client_id)
        session = session_of(client)
        file = file_of(client, upload_id)

        def fresh(live: Live) -> bool:
            known = client.uploads.get(upload_id)
            moved_on = known is not None and known.offset > offset
            return live.progress is not None and live.progress.offset == offset and not moved_on

        key = (client_id, upload_id)
        if (reached := self._shared.seats.offset(key)) > offset:  # it cannot be right, so nobody has to give way to it
            raise wrong_offset(file.kind, reached, offset)
        async with self._shared.seats.hold(key, self._take_over(client_id, upload_id), fresh) as (live, give_way):
            progress = writable(live, upload_id, offset, size)
            body = Body(receive, give_way, self._shared.stopping, self._shared.settings.upload_floor_bytes)
            try:
                if progress.complete:
                    return progress
                data = await whole(body, checksum, progress) if checksum else None
                shared = self._shared
                intake = Intake(live, file, shared.scribe(session), shared.metrics, shared.hazards, shared.seats.live)
                await (intake.stream(body) if data is None else intake.whole(data))
            except CauceError as error:
                self._shared.metrics.failures.labels(type(error).__name__).inc()
                raise
            finally:
                body.close()
            return ended(live.progress or progress, body.ending)

    async def remove(self, client_id: ClientId, upload_id: UploadId) -> bool:
        """Take away an upload that was not begun. False: it was, and only the end of the session takes its rows out."""
        client = await self._latest(client_id)
        if known(client, upload_id).offset:
            return False
        scribe = self._shared.scribe(session_of(client))
        async with self._shared.seats.hold((client_id, upload_id), self._take_over(client_id, upload_id)) as (live, _):
            if live.progress is not None and live.progress.offset:
                return False
            await asyncio.to_thread(live.publisher.publish, [], [scribe.forget(upload_id)])
            live.progress, live.parser = None, None
            return True

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
            return Live(publisher, await view.upload(client_id, upload_id), proved_at=began_at)  # 3.
        except BaseException:
            await asyncio.to_thread(publisher.close)
            raise


def upload_transactional_id(prefix: str, client_id: ClientId, upload_id: UploadId) -> str:
    return f"{prefix}upload.{client_id}.{upload_id}"


def file_of(client: Client, upload_id: UploadId) -> File:
    kind, _, in_folder = upload_id.partition(".")
    for file in dataset_of(session_of(client)).files:
        if file.kind == kind and file.is_folder == bool(in_folder):
            return file
    raise no_upload(upload_id)


def id_in_folder(file: File, name: str) -> UploadId:
    """The same file of a folder has the same id at every replica."""
    return UploadId(f"{file.kind}.{sha256(name.encode()).hexdigest()[:16]}")


def folder_of(client_id: ClientId, kind: str, members: Sequence[Upload]) -> Upload:
    """What is kept of a folder that is closed."""
    total = Total.of(members)
    length = sum(member.length for member in members)
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
            detail = f"{name} needs {kind}, which is not here yet; upload that first, then send this one again"
            raise Problem(409, "too-early", detail, file=name, missing=kind)


def refuse_if_many(client: Client, most: int, name: str) -> None:
    """Every gateway remembers every upload of every session: there is a number of them that one client may have."""
    if len(client.uploads) >= most:
        detail = f"{name}: a session has at most {most} files (CAUCE_MAX_FILES); join some of them, each has a header"
        raise Problem(413, "too-many", detail, file=name)


def refuse_if_closed(live: Live, file: File, name: str) -> None:
    if live.progress is not None:
        detail = f"{name}: the folder {file.kind} was closed with {live.progress.files} files; open another session"
        raise Problem(409, "closed", detail, file=name)


def refuse_if_incomplete(members: Sequence[Upload], kind: str, files: int | None) -> None:
    if not members:
        raise Problem(409, "incomplete", f"the folder {kind} has no files yet; upload at least one")
    if missing := [member.name for member in members if not member.complete]:
        detail = f"the folder {kind} is not complete: {', '.join(sorted(missing)[:5])} has not ended or has failed"
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


def same(upload: Upload, name: str, length: int) -> Upload:
    if (upload.name, upload.length) == (name, length):
        return upload
    detail = (
        f"{upload.file} is being uploaded from {upload.name} with {upload.length} bytes, and a kind of file has one "
        "upload; resume that one, delete it, or open another session"
    )
    raise Problem(409, "taken", detail, file=name, offset=upload.offset)


def writable(live: Live, upload_id: UploadId, offset: int, size: int | None) -> Upload:
    progress = live.progress
    if progress is None:
        raise no_upload(upload_id)
    if progress.failed:
        raise Problem(422, "bad-file", f"{progress.failed}; nothing more is taken of this file", file=progress.name)
    if offset != progress.offset:
        raise wrong_offset(progress.name, progress.offset, offset)
    if size is not None and offset + size > progress.length:
        raise too_long(progress)
    return progress


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
    ended(progress, body.ending)
    raise Problem(400, "bad-request", "the body was cut off; nothing was taken", offset=progress.offset)


def ended(progress: Upload, ending: Ending) -> Upload:
    """What to answer: the new progress, or why it is not what the client hoped for."""
    if progress.complete:
        return progress
    match ending:
        case Ending.SLOW:
            detail = "too few bytes came in 30 s; HEAD says what was kept, resume there"
            raise Problem(408, "too-slow", detail, offset=progress.offset)
        case Ending.GIVE_WAY:
            raise later(423, "moved", "a later request goes on with this upload", offset=progress.offset)
        case Ending.STOPPING:
            detail = "this gateway is stopping; go on at another one, or here in a moment"
            raise later(503, "stopping", detail, offset=progress.offset)
        case Ending.OPEN | Ending.WHOLE | Ending.CUT:
            return progress
