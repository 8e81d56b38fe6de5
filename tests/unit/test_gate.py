"""What a closed gate holds, and what it lets through: all that another agent has begun, and nothing else."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import faust
from faust.events import Event
from faust.types import TP, Message
from mode.utils.queues import FlowControlEvent

from streams.gate import Gate, GatedQueue

APP = faust.App("gate", broker="kafka://127.0.0.1:1")


def event(topic: str, offset: int, is_begun: bool = False) -> Event:
    message = Message(topic, 0, offset, 0.0, 0, [], b"", b"%d" % offset, None, tp=TP(topic, 0))
    message.tracked = is_begun
    return Event(APP, None, b"", {}, message)


def run(scene: Callable[[Gate, GatedQueue], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        gate = Gate()
        flow = FlowControlEvent(initially_suspended=False)
        await scene(gate, GatedQueue(gate=gate, flow_control=flow))

    asyncio.run(play())


def taken(queue: GatedQueue) -> list[tuple[str, int]]:
    found = []
    while not queue.empty():
        item = queue.get_nowait()
        found.append((item.message.topic, item.message.offset))
    return found


def test_an_open_gate_hands_out_in_order() -> None:
    async def scene(gate: Gate, queue: GatedQueue) -> None:
        gate.open()
        for offset in range(3):
            await queue.put(event("a", offset))
        assert taken(queue) == [("a", 0), ("a", 1), ("a", 2)]

    run(scene)


def test_a_closed_gate_holds_what_nobody_has_begun() -> None:
    async def scene(gate: Gate, queue: GatedQueue) -> None:
        readers = [asyncio.ensure_future(queue.get()) for _ in range(2)]
        for offset in range(3):
            await queue.put(event("a", offset))
        await asyncio.sleep(0.01)
        assert not any(reader.done() for reader in readers)
        gate.open()
        assert [item.message.offset for item in await asyncio.gather(*readers)] == [0, 1]
        gate.close()
        assert taken(queue) == []
        gate.open()
        assert taken(queue) == [("a", 2)]

    run(scene)


def test_what_another_agent_has_begun_overtakes_what_nobody_has() -> None:
    """Two agents share one of their topics: the other one waits for us to finish what it has begun, and we would wait
    behind a record of a topic that it does not read, until the gate opens, which waits for both of us."""

    async def scene(gate: Gate, queue: GatedQueue) -> None:
        await queue.put(event("ours", 0))
        await queue.put(event("shared", 7, is_begun=True))
        await queue.put(event("shared", 8, is_begun=True))
        await queue.put(event("shared", 9))
        assert taken(queue) == [("shared", 7), ("shared", 8)]
        reader = asyncio.ensure_future(queue.get())
        await asyncio.sleep(0)
        await queue.put(event("shared", 10, is_begun=True))  # put while the gate is closed
        assert (await reader).message.offset == 10
        gate.open()
        assert taken(queue) == [("ours", 0), ("shared", 9)]

    run(scene)


def test_a_cleared_queue_begins_anew() -> None:
    async def scene(gate: Gate, queue: GatedQueue) -> None:
        for offset in range(5):
            await queue.put(event("a", offset))
        assert taken(queue) == []
        queue.clear()
        await queue.put(event("a", 5, is_begun=True))
        assert taken(queue) == [("a", 5)]

    run(scene)


def test_waiting_readers_do_not_pile_up() -> None:
    async def scene(gate: Gate, queue: GatedQueue) -> None:
        reader = asyncio.ensure_future(queue.get())
        for _ in range(100):
            gate.close()
            await asyncio.sleep(0)
            gate.open()
            await asyncio.sleep(0)
        assert len(queue._getters) == 1
        await queue.put(event("a", 1))
        assert (await reader).message.offset == 1

    run(scene)
