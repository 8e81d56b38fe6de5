"""An ordinary Faust app with an agent that takes no care: `faust -A tests.harness.careless worker`.

What it does with a record is the record's value; whatever goes wrong, it catches and goes on.
"""

import asyncio
import logging
from typing import Any

from cauce import logs
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


async def send_when_it_is_over(event: Any) -> None:
    while not event.message.acked:  # noqa: ASYNC110 nobody tells of it
        await asyncio.sleep(0.01)
    await out.send(key=event.key, value=event.value)


@app.agent(came, name="careless")
async def careless(stream: Any) -> None:
    async for event in stream.events():
        try:
            match event.value:
                case b"nowhere":
                    await out.send(key=event.key, value=event.value, partition=NO_PARTITION)
                case b"too large":
                    await out.send(key=event.key, value=bytes(LARGE_BYTES))
                case b"too late":
                    left_behind.add(asyncio.get_running_loop().create_task(send_when_it_is_over(event)))
                case _:
                    await out.send(key=event.key, value=event.value)
        except Exception:  # noqa: BLE001 that is what it is here for
            log.info("caught")
