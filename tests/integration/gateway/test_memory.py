"""Memory does not grow with the size of a file."""

from collections.abc import Iterator

import pytest

from tests.integration.gateway.conftest import NewReplica
from tests.integration.gateway.replica import Replica

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

MIB = 1 << 20
HEADER = b"cast,crew,id\n"
CAST = b"\"[{'name': 'Nobody'}]\",\"" + b"x" * 20_000 + b'",%d\n'
LENGTH = 200 * MIB


def pieces(replica: Replica, resident: list[int]) -> Iterator[bytes]:
    """A file that never exists as a whole; every few MiB a look at the gateway."""
    sent, row = 0, 0
    block = HEADER
    while sent < LENGTH:
        while len(block) < MIB:
            row += 1
            block += CAST % row
        block = block[: LENGTH - sent]
        yield block
        sent += len(block)
        block = b""
        if sent % (4 * MIB) < MIB:
            resident.append(replica.resident_bytes())


def test_a_file_of_200_mib_needs_no_more_than_a_small_one(new_replica: NewReplica) -> None:
    with new_replica() as replica:
        visit = replica.open()
        location = visit.create("credits.csv", LENGTH)
        resident: list[int] = []
        answer = visit.ask(
            "PATCH",
            location,
            {"Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"},
            pieces(replica, resident),
            timeout=500,
        )
        assert answer.status_code in (204, 422), answer.text  # the last row is cut off wherever the file ends
        assert visit.show()["uploads"][0]["rows"] > 6_900  # of 10,240: the last transaction, 64 MiB at most, is lost
        print("MiB resident:", [size // MIB for size in resident])
        assert max(resident) < 400 * MIB
        assert resident[-1] - resident[len(resident) // 4] < 64 * MIB  # it does not grow on the way
