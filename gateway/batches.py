"""Rows as records: each row to the partition of its key, a batch of moderate size per record. No Kafka in here.

Invariant: every row is in exactly one record, in the order of the file within its partition; a row of a broadcast file
is in one record of every partition.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from cauce import tracing
from cauce.messages import ROWS_PER_BATCH, About, ClientId, Kind, Upload, UploadId, encode, to_json
from cauce.topics import UPLOADS
from gateway.publish import Record
from queries.keys import partitions_of
from queries.model import Dataset, File, rows_in

BATCH_BYTES: Final = 1 << 20  # before compression; a record of text is about 256 KiB then


@dataclass(frozen=True, slots=True)
class Scribe:
    """Writes the records of one client."""

    prefix: str
    partitions: int
    client_id: ClientId
    dataset: Dataset
    options: Mapping[str, Any]

    def batches(self, file: File, table: pa.Table) -> Iterator[Record]:
        table = file.packed(table)
        if not table.num_rows:
            return
        if file.is_broadcast:
            for partition in range(self.partitions):
                yield from self._batches(file, table, partition)
            return
        where = partitions_of(table[file.key].to_numpy(), self.partitions)
        order = np.argsort(where, kind="stable")
        sorted_table = table.combine_chunks().take(order)
        ends = np.searchsorted(where[order], np.arange(self.partitions), side="right")
        first = 0
        for partition, end in enumerate(ends.tolist()):
            yield from self._batches(file, sorted_table.slice(first, end - first), partition)
            first = end

    def _batches(self, file: File, table: pa.Table, partition: int) -> Iterator[Record]:
        for rows in pieces(table):
            about = self._about("batch", file.kind, rows=rows_in(rows))
            yield self._record(file, partition, encode(rows), about)

    def ends(self, file: File, upload: Upload) -> Iterator[Record]:
        """To every partition, in the transaction with the last rows, or behind all of them: nothing can follow."""
        value = json.dumps({"rows": upload.rows, "rejected": dict(upload.rejected), "sent": upload.sent}).encode()
        about = self._about("end", file.kind)
        for partition in range(self.partitions):
            yield self._record(file, partition, value, about)

    def aborts(self) -> Iterator[Record]:
        """To the topics that we write; workers forward them behind what they made of these rows."""
        for file in self.dataset.files:
            about = self._about("abort", file.kind)
            for partition in range(self.partitions):
                yield self._record(file, partition, b"{}", about)

    def progress(self, upload: Upload) -> Record:
        return self._upload_record(upload.upload_id, to_json(upload))

    def forget(self, upload_id: UploadId) -> Record:
        return self._upload_record(upload_id, None)

    def _upload_record(self, upload_id: UploadId, value: bytes | None) -> Record:
        partition = home_partition(self.client_id, self.partitions)
        return Record(self.prefix + UPLOADS.name, partition, f"{self.client_id}/{upload_id}", value)

    def _record(self, file: File, partition: int, value: bytes, about: About) -> Record:
        headers = [*about.headers(), *tracing.record_headers()]
        return Record(self.prefix + file.kind, partition, self.client_id, value, headers)

    def _about(self, kind: Kind, subject: str, rows: int = 0) -> About:
        return About(kind, self.client_id, self.dataset.name, subject, rows=rows, options=self.options)


def pieces(table: pa.Table) -> Iterator[pa.Table]:
    if not table.num_rows:
        return
    per_row = max(1, table.nbytes // table.num_rows)
    rows = max(1, min(ROWS_PER_BATCH, BATCH_BYTES // per_row))
    for first in range(0, table.num_rows, rows):
        yield table.slice(first, rows)


def home_partition(client_id: ClientId, partitions: int) -> int:
    """Where sessions and uploads of a client are: all gateways agree, and nobody else writes there."""
    return int(client_id, 16) % partitions
