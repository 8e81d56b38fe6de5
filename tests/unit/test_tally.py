"""The first agent, without Kafka: it counts batches and rows per file."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agents.tally import Event, tally


@dataclass
class Batch:
    key: str
    headers: Mapping[str, bytes] = field(default_factory=dict)


async def stream(batches: list[Batch]) -> AsyncIterator[Event]:
    for batch in batches:
        yield batch


def run(batches: list[Batch]) -> tuple[dict[str, Any], list[tuple[str, dict[str, int]]]]:
    table: dict[str, Any] = {}
    sent: list[tuple[str, dict[str, int]]] = []

    async def send(key: str, value: dict[str, int]) -> None:
        sent.append((key, value))

    asyncio.run(tally(stream(batches), table, send))
    return table, sent


@given(st.lists(st.tuples(st.sampled_from(["a/x", "a/y", "b/x"]), st.integers(0, 10**9))))
def test_the_table_holds_the_sums_and_every_step_was_sent(batches: list[tuple[str, int]]) -> None:
    table, sent = run([Batch(key, {"rows": str(rows).encode()}) for key, rows in batches])
    for key, tallied in table.items():
        rows = [each for at, each in batches if at == key]
        assert tallied == {"batches": len(rows), "rows": sum(rows)}
        assert [value["batches"] for at, value in sent if at == key] == list(range(1, len(rows) + 1))
    assert set(table) == {key for key, _ in batches}


def test_a_record_without_a_header_is_one_row() -> None:
    table, _ = run([Batch("console")])
    assert table == {"console": {"batches": 1, "rows": 1}}
