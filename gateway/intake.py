"""One PATCH: bytes from the socket through the parser into transactions, with memory that does not grow.

Invariant: the progress in a transaction counts exactly the bytes whose rows are in it or in earlier ones, and the cut
row that waits for its other half. While one transaction commits, the next one's bytes are read; never more than that.
"""

import asyncio
import base64
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import pyarrow as pa

from cauce.errors import BadUpload
from cauce.messages import Upload
from gateway.batches import Scribe
from gateway.body import Body, Ending
from gateway.hazards import Hazards
from gateway.metrics import Metrics
from gateway.parse import Parser, Piece
from gateway.problems import Problem
from gateway.seats import Live
from queries.model import File

log = logging.getLogger(__name__)

BLOCK_BYTES: Final = 4 << 20
BLOCK_SECONDS: Final = 0.1
COMMIT_SECONDS: Final = 0.5
# The first commit of a PATCH comes so soon, each later one after twice the time: a writer that is interrupted again and
# again gets on all the same.
FIRST_COMMIT_SECONDS: Final = 0.1
COMMIT_BYTES: Final = 64 << 20  # of the file
# Of rows at hand, at most. Few large batches are folded sooner than many: itineraries in 0.4 s rather than 0.7 for
# 200 MB, with 8 MB rather than 4. Rows of a file that is packed become few when they are sent.
COMMIT_TABLE_BYTES: Final = 8 << 20
COMMIT_PACKED_BYTES: Final = 24 << 20
SHARED_BYTES: Final = 96 << 20  # of rows at hand in all uploads of this replica; as much again is being sent
# The header goes along with every progress record, and every gateway remembers it.
MAX_COLUMNS: Final = 1000  # the widest file of ours has 27
MAX_HEADER_LENGTH: Final = 64 << 10


@dataclass(slots=True)
class Pending:
    """What was parsed since the last transaction began."""

    most_bytes: int  # of rows
    most_seconds: float = FIRST_COMMIT_SECONDS
    tables: list[pa.Table] = field(default_factory=list)
    size_bytes: int = 0
    table_bytes: int = 0
    since: float = 0.0  # its first byte

    def add(self, piece: Piece, size_bytes: int) -> None:
        if not self.size_bytes:
            self.since = time.monotonic()
        self.size_bytes += size_bytes
        if piece.table.num_rows:
            self.tables.append(piece.table)
            self.table_bytes += piece.table.nbytes

    @property
    def due(self) -> bool:
        big = self.size_bytes >= COMMIT_BYTES or self.table_bytes >= self.most_bytes
        return self.size_bytes > 0 and (big or time.monotonic() - self.since >= self.most_seconds)

    def next(self) -> "Pending":
        """Nothing yet, for the transaction after this one."""
        return Pending(self.most_bytes, min(COMMIT_SECONDS, 2 * self.most_seconds))


class Intake:
    def __init__(
        self,
        live: Live,
        begun: Upload,
        file: File,
        scribe: Scribe,
        metrics: Metrics,
        hazards: Hazards,
        *,
        uploads: int,
        most_bytes: int,
    ) -> None:
        """`begun` is the progress so far, with a length that this PATCH may have brought; `uploads` is how many this
        replica has at once, with this one; a file of unknown length may have `most_bytes`."""
        self._live = live
        self._file = file
        self._scribe = scribe
        self._metrics = metrics
        self._hazards = hazards
        self._most_bytes = most_bytes
        self._reached = begun  # what the parser has seen; `live.progress` is what Kafka has
        self._parser = live.parser or resumed(file, begun)
        most = COMMIT_PACKED_BYTES if file.pack else COMMIT_TABLE_BYTES
        self._pending = Pending(min(most, SHARED_BYTES // max(1, uploads)))
        self._committing: asyncio.Task[None] | None = None
        live.parser, live.dirty = self._parser, True

    async def stream(self, body: Body) -> None:
        """Take what comes for as long as it comes; all that was taken is committed when this returns. While one block
        is parsed, the next one is read."""
        if self._is_whole:  # it was the length that was missing
            await self._feed(b"")
        reading = asyncio.ensure_future(body.block(BLOCK_BYTES, BLOCK_SECONDS))
        try:
            is_open = True
            while is_open:
                block, is_open = await reading, body.ending is Ending.OPEN
                if is_open:
                    reading = asyncio.ensure_future(body.block(BLOCK_BYTES, BLOCK_SECONDS))
                if block:
                    await self._feed(block)
                if self._pending.due:
                    await self._commit()
            await self._end()
        finally:
            reading.cancel()
            await self._settle()

    async def whole(self, data: bytes) -> None:
        """All of these bytes in one transaction."""
        await self._feed(data)
        await self._end()

    async def _end(self) -> None:
        await self._settle(check=True)
        if self._reached != self._committed:
            await self._commit()
        await self._settle(check=True)
        self._live.dirty = False

    async def _feed(self, block: bytes) -> None:
        refuse_too_long(self._reached, len(block), self._most_bytes)
        try:
            async with self._hazards.working_on(self._committed):
                self._add(len(block), await asyncio.to_thread(self._parser.feed, block))
                if self._is_whole:
                    self._add(0, await asyncio.to_thread(self._parser.finish))
        except BadUpload as error:
            await self._fail(error)
            raise

    def _add(self, size_bytes: int, piece: Piece) -> None:
        before = self._reached
        if not before.header:
            refuse_wide(self._file, self._parser.header)
        self._pending.add(piece, size_bytes)
        self._reached = replace(
            before,
            offset=before.offset + size_bytes,
            tail=base64.b64encode(self._parser.tail).decode(),
            line=self._parser.line,
            header=tuple(self._parser.header),
            rows=before.rows + piece.rows,
            rejected=added(before.rejected, piece.rejected),
            sent=before.sent + piece.table.num_rows,
        )

    async def _commit(self) -> None:
        """Wait for the former transaction, then start the next one and do not wait for it."""
        await self._settle(check=True)
        pending, self._pending = self._pending, self._pending.next()
        self._committing = asyncio.create_task(self._publish(pending.tables, self._reached))

    async def _settle(self, check: bool = False) -> None:
        if self._committing is not None:
            task = self._committing
            self._committing = None
            await asyncio.wait({task})
            failure = task.exception()
            if check and failure is not None:
                raise failure

    async def _publish(self, tables: list[pa.Table], progress: Upload) -> None:
        if self._live.publisher.is_spent:
            await self._live.renew(self._live)
        before, began_at = self._committed, time.monotonic()
        with self._metrics.commit_seconds.time():
            async with self._hazards.working_on(before) if tables else contextlib.nullcontext():
                await asyncio.to_thread(self._write, tables, progress)
        self._live.progress, self._live.proved_at = progress, began_at
        self._hazards.got_on(progress)
        self._metrics.committed(before, progress)
        if progress.complete:
            self._tell("upload complete", progress)

    def _write(self, tables: list[pa.Table], progress: Upload) -> None:
        batches = self._scribe.batches(self._file, pa.concat_tables(tables)) if tables else ()
        ends = self._scribe.ends(self._file, progress) if progress.complete and not self._file.is_folder else ()
        self._live.publisher.publish(chain(batches, ends), [self._scribe.progress(progress)])

    async def _fail(self, error: BadUpload) -> None:
        """Nothing more is taken; what was committed stays, and so does its offset. Where that is not even the header
        line, nothing of the file was taken, and another one may have its place."""
        await self._settle(check=True)
        failed = replace(self._committed, failed=str(error))
        await self._publish([], failed if failed.header else replace(failed, offset=0, tail="", line=1))
        self._tell("upload refused", self._committed)

    @property
    def _is_whole(self) -> bool:
        return self._reached.offset == self._reached.length

    @property
    def _committed(self) -> Upload:
        assert self._live.progress is not None
        return self._live.progress

    def _tell(self, what: str, upload: Upload) -> None:
        facts = {"client_id": upload.client_id, "upload_id": upload.upload_id, "rows": upload.rows}
        log.info(what, extra={**facts, **({"reason": upload.failed} if upload.failed else {})})


def resumed(file: File, progress: Upload) -> Parser:
    return Parser(file, header=progress.header, tail=base64.b64decode(progress.tail), line=progress.line)


def refuse_wide(file: File, header: Sequence[str]) -> None:
    """Raises BadUpload for a header that is too much to remember."""
    if len(header) > MAX_COLUMNS or sum(map(len, header)) > MAX_HEADER_LENGTH:
        reason = f"the header has {len(header)} columns, {sum(map(len, header))} characters in all; "
        most = f"at most {MAX_COLUMNS} and {MAX_HEADER_LENGTH} are taken, and needed is {','.join(file.columns)}"
        raise BadUpload(file.filename, 1, reason + most)


def added(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return {reason: left.get(reason, 0) + right.get(reason, 0) for reason in {**left, **right}}


def refuse_too_long(progress: Upload, size: int, most_bytes: int) -> None:
    """Refuses `size` more bytes where the file would be longer than was announced, or than any file may be."""
    most = most_bytes if progress.length is None else progress.length
    if progress.offset + size > most:
        why = "are taken (CAUCE_MAX_UPLOAD_BYTES)" if progress.length is None else "that Upload-Length announced"
        raise Problem(413, "too-big", f"{progress.name}: more bytes than the {most} {why}", offset=progress.offset)
