"""An ordinary Faust app with an agent that takes no care: `faust -A tests.harness.careless worker`.

What it does with a record is the record's value; whatever goes wrong, it catches and goes on.
"""

import asyncio
import logging
import sys
from typing import Any

from mode import Service

from cauce import logs
from cauce.errors import ConfigError
from cauce.settings import Settings
from streams.exactly_once import ExactlyOnceApp
from streams.pages import add_pages
from streams.wiring import options_from

RAW: dict[str, Any] = {"key_type": bytes, "value_type": bytes, "key_serializer": "raw", "value_serializer": "raw"}
log = logging.getLogger(__name__)
NO_PARTITION = 99
LARGE_BYTES = 32 << 20

settings = Settings.load()
app = ExactlyOnceApp(
    f"{settings.topic_prefix}careless",
    options=options_from(settings),
    topic_partitions=settings.partitions,
    web_bind=settings.worker_host,
    web_host=settings.worker_host,
    web_port=settings.worker_port,
    logging_config=logs.dict_config("info"),
)
add_pages(app)
came, out = (app.topic(settings.topic_prefix + name, **RAW) for name in ("in", "out"))
left_behind: set[asyncio.Task[None]] = set()
asked: asyncio.Future[bytes]


async def send_when_it_is_over(event: Any) -> None:
    while not event.message.acked:  # noqa: ASYNC110 nobody tells of it
        await asyncio.sleep(0.01)
    await out.send(key=event.key, value=event.value)


async def cancelled() -> None:
    task = asyncio.get_running_loop().create_task(asyncio.Event().wait())
    task.cancel()
    await task


@app.task  # type: ignore[untyped-decorator]
async def crash_when_asked() -> None:
    global asked  # noqa: PLW0603 there is no loop before this
    asked = asyncio.get_running_loop().create_future()
    raise ConfigError("as asked") if await asked == b"misconfigured" else ValueError("as asked")


@app.on_before_shutdown.connect
async def linger(*_: Any, **__: Any) -> None:
    """Some services take long to close: the code of the end must not depend on it."""
    if asked.done() and asked.result() == b"crash":
        await asyncio.Event().wait()


@app.service
class Device(Service):
    async def on_start(self) -> None:
        if (settings.home / "unplugged").exists():
            raise OSError("no such device")


@app.agent(came, name="careless")
async def careless(stream: Any) -> None:
    async for event in stream.events():
        try:
            match event.value:
                case b"nowhere":
                    await out.send(key=event.key, value=event.value, partition=NO_PARTITION)
                case b"too large":
                    await out.send(key=event.key, value=bytes(LARGE_BYTES))
                case b"cancelled" | b"exit":
                    await out.send(key=event.key, value=event.value)  # half of its effects
                    await cancelled() if event.value == b"cancelled" else sys.exit(0)
                case b"crash" | b"misconfigured":
                    asked.set_result(event.value)
                case b"too late":
                    left_behind.add(asyncio.get_running_loop().create_task(send_when_it_is_over(event)))
                case _:
                    await out.send(key=event.key, value=event.value)
        except Exception:  # noqa: BLE001 that is what it is here for
            log.info("caught")
