"""A TCP proxy on 127.0.0.1 whose wire can be slow, cut or dead: for tests of what a network does to us.

pass     bytes go through
delay    each piece waits before it goes on
cut      all connections are reset now, and new ones at once
dead     nothing goes through and nobody is told: connections stay open, new ones too (half-open)
"""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

Wire = Literal["pass", "delay", "cut", "dead"]

PIECE_BYTES: Final = 64 << 10
DELAY_SECONDS: Final = 0.05
RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset, as a lost route or a killed host does


class Proxy:
    """Listens from the moment it is made; where it leads to may start later."""

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._loop = asyncio.new_event_loop()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._wire: Wire = "pass"
        self._changed = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @contextmanager
    def fault(self, wire: Wire) -> Iterator[None]:
        """For as long as the block lasts. What a dead wire swallowed stays swallowed: its connections are reset."""
        self.become(wire)
        try:
            yield
        finally:
            if wire == "dead":
                self.become("cut")
            self.become("pass")

    def become(self, wire: Wire) -> None:
        """Returns when it is so."""
        asyncio.run_coroutine_threadsafe(self._become(wire), self._loop).result(10)

    async def _become(self, wire: Wire) -> None:
        self._wire = wire
        if wire == "cut":
            for writer in list(self._open):
                reset(writer)
        self._changed.set()
        self._changed = asyncio.Event()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, sock=self._socket))
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        for writer in list(self._open):
            reset(writer)
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._wire == "cut":
            reset(writer)
            return
        self._open.add(writer)
        onward: asyncio.StreamWriter | None = None
        try:
            await self._alive()
            back, onward = await asyncio.open_connection("127.0.0.1", self._upstream_port)
            self._open.add(onward)
            pumps = [asyncio.ensure_future(self._pump(reader, onward)), asyncio.ensure_future(self._pump(back, writer))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # the other side is gone, which is what the one here is about to learn
        finally:
            for each in (writer, onward):
                if each is not None:
                    self._open.discard(each)
                    reset(each)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                if self._wire == "delay":
                    await asyncio.sleep(DELAY_SECONDS)
                await self._alive()
                writer.write(piece)
                await writer.drain()

    async def _alive(self) -> None:
        while self._wire == "dead":
            await self._changed.wait()


def reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
