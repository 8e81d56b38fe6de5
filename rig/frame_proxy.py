"""A proxy before a broker that reads Kafka's frames, and can keep one request for later.

Invariant: all bytes go through unchanged and in order, but for the one request that was asked for. That one is kept,
and the connection it came by is reset: its client learns nothing, and the broker has not seen it.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from typing import Final

END_TXN: Final = 26  # the api key of EndTxn
ANSWER_SECONDS: Final = 10.0
PIECE_BYTES: Final = 64 << 10


class FrameProxy:
    """Listens from the moment it is made, and leads to a port of 127.0.0.1."""

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._keep: int | None = None
        self._kept: bytes | None = None
        # By api key, how many requests came.
        self.requests: dict[int, int] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="frame proxy", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def keep_next(self, api_key: int) -> None:
        """Keeps the next request of this kind, and cuts its client off."""
        self._keep = api_key

    @property
    def has_kept(self) -> bool:
        return self._kept is not None

    def deliver(self) -> int:
        """Sends the kept request by a connection of its own; returns the error code of the answer."""
        if self._kept is None:
            raise RuntimeError("no request was kept")
        kept, self._kept = self._kept, None
        with socket.create_connection(("127.0.0.1", self._upstream_port), ANSWER_SECONDS) as wire:
            wire.sendall(kept)
            with wire.makefile("rb") as answers:
                (size,) = struct.unpack(">i", answers.read(4))
                answer = answers.read(size)
        # Behind the correlation id: throttle time and error code. A flexible version has tags between.
        return error_code(answer, api_version=struct.unpack(">h", kept[6:8])[0])

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, sock=self._socket))
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, onward = await asyncio.open_connection("127.0.0.1", self._upstream_port)
        except OSError:
            writer.transport.abort()
            return
        answers = asyncio.ensure_future(self._answers(back, writer))
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._requests(reader, onward)
        finally:
            onward.transport.abort()
            writer.transport.abort()
            answers.cancel()

    async def _requests(self, reader: asyncio.StreamReader, onward: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readexactly(4)
            frame = head + await reader.readexactly(struct.unpack(">i", head)[0])
            (api_key,) = struct.unpack(">h", frame[4:6])
            self.requests[api_key] = self.requests.get(api_key, 0) + 1
            if api_key == self._keep:
                self._keep, self._kept = None, frame
                return
            onward.write(frame)
            await onward.drain()

    @staticmethod
    async def _answers(back: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await back.read(PIECE_BYTES):
                writer.write(piece)
                await writer.drain()
        writer.transport.abort()


def error_code(answer: bytes, api_version: int) -> int:
    """Returns the error code in an answer to EndTxn."""
    # From version 3 on, the header of an answer ends in a count of tags, which is zero.
    first_flexible = 3
    at = 4 + (api_version >= first_flexible) + 4
    return int(struct.unpack(">h", answer[at : at + 2])[0])
