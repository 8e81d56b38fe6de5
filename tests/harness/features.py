"""Ordinary Faust, one feature each: `faust -A tests.harness.features worker` with the settings of Cauce.

two agents on one topic, one that reads another one, too, several actors of one agent, a sink, send_soon, take, a timer,
signals, and one agent that can be stuck
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
OUTPUTS = ("first", "second", "both", "actors", "sunk", "soon", "taken", "ticks")

log = logging.getLogger(__name__)
settings = Settings.load()
app = ExactlyOnceApp(
    f"{settings.topic_prefix}features",
    options=options_from(settings),
    topic_partitions=settings.partitions,
    web_bind=settings.worker_host,
    web_host=settings.worker_host,
    web_port=settings.worker_port,
    logging_config=logs.dict_config("info"),
)
add_pages(app)
both_topics = app.topic(*(settings.topic_prefix + name for name in ("in", "more")), **RAW)
source, stuck = (app.topic(settings.topic_prefix + name, **RAW) for name in ("in", "stuck"))
out = {name: app.topic(settings.topic_prefix + name, **RAW) for name in OUTPUTS}
seen = app.Table("seen", default=int, key_type=bytes, value_type=int, partitions=settings.partitions)


@app.agent(source, name="first")
async def first(stream: Any) -> None:
    async for event in stream.events():
        seen[event.key] += 1
        await out["first"].send(key=event.key, value=event.value)


@app.agent(source, name="second")
async def second(stream: Any) -> None:
    """Slower than the other agent of this topic: a checkpoint has to wait for what it has not begun yet."""
    async for event in stream.events():
        await asyncio.sleep(0.002)
        await out["second"].send(key=event.key, value=event.value)


@app.agent(both_topics, name="both")
async def both(stream: Any) -> None:
    """Shares one of its topics with the others: what they have begun must not wait here behind what only we read."""
    async for event in stream.events():
        await asyncio.sleep(0.001)
        if event.message.topic.endswith("in"):
            await out["both"].send(key=event.key, value=event.value)


@app.on_partitions_assigned.connect
async def told_of_partitions(*_: Any, **__: Any) -> None:
    log.info("told of partitions")


@app.agent(source, name="actors", concurrency=3)
async def actors(stream: Any) -> None:
    async for event in stream.events():
        await asyncio.sleep(0.001)
        await out["actors"].send(key=event.key, value=event.value)


@app.agent(source, name="sunk", sink=[out["sunk"]])
async def sunk(stream: Any) -> Any:
    async for value in stream:
        yield value


@app.agent(source, name="soon")
async def soon(stream: Any) -> None:
    async for event in stream.events():
        out["soon"].send_soon(key=event.key, value=event.value)


@app.agent(source, name="taken")
async def taken(stream: Any) -> None:
    async for values in stream.take(10, within=0.05):
        for value in values:
            await out["taken"].send(key=b"k", value=value)


@app.timer(0.05)  # type: ignore[untyped-decorator]
async def tick() -> None:
    await out["ticks"].send(key=b"tick", value=b"tick")


@app.agent(stuck, name="stuck")
async def wait_for_good(stream: Any) -> None:
    async for _ in stream:
        await asyncio.Event().wait()
