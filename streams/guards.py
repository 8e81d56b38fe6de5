"""Where Faust would go on after an error, or quietly break the promise: the process ends, or start is refused."""

from asyncio import CancelledError
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextvars import ContextVar
from typing import Any

import faust
from faust.agents import Agent
from faust.exceptions import Skip
from faust.streams import Stream, maybe_forward
from faust.topics import Topic
from faust.types import ChannelT, EventT, FutureMessage, Message, RecordMetadata, StreamT
from faust.types.agents import ActorRefT
from faust.types.topics import TopicT
from mode import Seconds, want_seconds
from mode.utils.futures import maybe_async

from cauce.errors import Unsupported

TAKE_WITHIN_SECONDS = 1.0  # a checkpoint waits this long for the buffer of a take()
IN_AN_AGENT: ContextVar[bool] = ContextVar("in_an_agent", default=False)  # whose errors end the process
ENDS = (Exception, CancelledError, SystemExit)  # of what works on an event: awaiting a task that was cancelled is one


class CrashOnlyAgent(Agent):
    """An agent that raises ends the process before its event can be acknowledged."""

    async def _execute_actor(self, coro: Awaitable[Any], aref: ActorRefT) -> None:
        if not isinstance(self.channel, TopicT):
            self._fail(Unsupported(f"agent {self.name}: in-memory channels are lost in a crash; give it a topic"))
        await super()._execute_actor(self._fatal(coro), aref)

    async def _fatal(self, coro: Awaitable[Any]) -> Any:
        IN_AN_AGENT.set(True)
        try:
            return await coro
        except ENDS as error:
            self._fail(error)  # at once: Faust acknowledges the event when it closes the stream, a moment from now
            raise

    def _fail(self, error: BaseException) -> None:
        self.app.engine.event_failed(error)  # type: ignore[attr-defined]


class StrictTopic(Topic):
    """Sends straight into the transaction. A record that cannot be decoded ends the process; Faust would skip it."""

    is_streamed = False

    async def __anext__(self) -> EventT[Any]:
        if not self.is_streamed:
            raise Unsupported(
                f"async for event in {self.get_topic_name()}: nobody acknowledges these; use an agent and its stream"
            )
        return await self.queue.get()  # type: ignore[no-any-return]

    async def publish_message(self, fut: FutureMessage, wait: bool = False) -> Awaitable[RecordMetadata]:
        producer = self.app.producer
        await producer.sendable()  # type: ignore[attr-defined]
        sent = producer.send_now(fut)  # type: ignore[attr-defined]
        return await sent if wait else sent  # type: ignore[no-any-return]

    async def _send_now(
        self,
        key: Any = None,
        value: Any = None,
        partition: int | None = None,
        timestamp: float | None = None,
        headers: Any = None,
        schema: Any = None,
        key_serializer: Any = None,
        value_serializer: Any = None,
        callback: Any = None,
    ) -> Awaitable[RecordMetadata]:
        """Faust's hottest path: without a callback there is no need for a second future around the first."""
        given = (key, value, partition, timestamp, headers, schema, key_serializer, value_serializer, callback)
        if callback is not None:
            return await super()._send_now(*given)
        open_headers = self.prepare_headers(headers)
        key_bytes, open_headers = self.prepare_key(key, key_serializer, schema, open_headers)
        value_bytes, open_headers = self.prepare_value(value, value_serializer, schema, open_headers)
        return await self.app.producer.send(
            self.get_topic_name(), key_bytes, value_bytes, partition, timestamp, open_headers
        )

    async def on_key_decode_error(self, exc: Exception, message: Message) -> None:
        self._fail(exc, message)

    async def on_value_decode_error(self, exc: Exception, message: Message) -> None:
        self._fail(exc, message)

    def _fail(self, error: Exception, message: Message) -> None:
        error.add_note(f"record {message.topic}-{message.partition}@{message.offset}")
        self.app.engine.event_failed(error, message)  # type: ignore[attr-defined]


class GuardedStream(Stream[Any]):
    """Ends the process where an error would cost an event; refuses what would hold events over a checkpoint."""

    def __init__(self, channel: Any, **options: Any) -> None:
        super().__init__(channel, **options)
        if isinstance(channel, StrictTopic):
            channel.is_streamed = True
            if not channel.acks:
                raise Unsupported(f"topic {channel.get_topic_name()}: acks=False loses its place in it; leave it out")

    def __aiter__(self) -> AsyncIterator[Any]:
        """Faust acknowledges an event whose reader raised. An agent that raises ends the process before that; a task
        or a view would not."""
        if isinstance(self.channel, StrictTopic) and not IN_AN_AGENT.get():
            raise Unsupported(f"stream of {self.channel}: an event would be lost where its reader raises; use an agent")
        return super().__aiter__()

    def add_processor(self, processor: Any) -> None:
        """Of filter, group_by and the like: not always run by an agent, which would end the process by itself."""

        async def fatal(value: Any) -> Any:
            try:
                return await maybe_async(processor(value))
            except Skip:
                raise
            except ENDS as error:
                self._fail(error)
                raise

        super().add_processor(fatal)

    def echo(self, *channels: str | ChannelT[Any]) -> StreamT[Any]:
        """Faust forwards in tasks, and asks none of them how it ended."""
        targets = [self.derive_topic(each) if isinstance(each, str) else each for each in channels]

        async def echoing(value: Any) -> Any:
            for target in targets:
                await maybe_forward(value, target)
            return value

        self.add_processor(echoing)
        return self

    async def _format_key(self, key: Any, value: Any) -> Any:
        """Faust drops an event whose group_by key cannot be told."""
        try:
            return await super()._format_key(key, value)
        except Skip as skip:
            self._fail(skip.__cause__ or skip)
            raise

    def _fail(self, error: BaseException) -> None:
        self.app.engine.event_failed(error)  # type: ignore[attr-defined]

    def noack(self) -> Any:
        raise Unsupported("stream.noack(): the engine acknowledges an event when the agent asks for the next one")

    def noack_take(self, max_: int, within: Seconds) -> AsyncGenerator[Sequence[Any], None]:
        raise Unsupported("stream.noack_take(): use take(max_, within=0.1)")

    def take(self, max_: int, within: Seconds) -> AsyncGenerator[Sequence[Any], None]:
        _check_within("take", within)
        return super().take(max_, within)

    def take_events(self, max_: int, within: Seconds) -> AsyncGenerator[Sequence[EventT[Any]], None]:
        _check_within("take_events", within)
        return super().take_events(max_, within)

    def take_with_timestamp(
        self, max_: int, within: Seconds, timestamp_field_name: str
    ) -> AsyncGenerator[Sequence[Any], None]:
        _check_within("take_with_timestamp", within)
        return super().take_with_timestamp(max_, within, timestamp_field_name)


def _check_within(name: str, within: Seconds | None) -> None:
    if not within or want_seconds(within) > TAKE_WITHIN_SECONDS:
        raise Unsupported(
            f"stream.{name}(within={within}): checkpoints wait for it; use within of {TAKE_WITHIN_SECONDS} s or less"
        )


def check_interpreter() -> None:
    """Faust's pure Python stream iterator takes from queues around the gate."""
    if getattr(faust.streams, "_CStreamIterator", None) is None:
        raise Unsupported("Faust's compiled stream iterator is missing; unset NO_CYTHON, or install its wheel")
