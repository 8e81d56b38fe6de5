"""The app of the kill tests: ordinary Faust, with everything that has to survive.

in ──topic.send──▶ mid ──group_by──▶ repartition ──count in a table──▶ out
"""

import asyncio
from collections.abc import Callable
from typing import Any

import faust

from cauce import logs
from streams.exactly_once import ExactlyOnceApp
from streams.options import Options
from tests.harness.plan import Plan, Point, count_key, second_key

RAW: dict[str, Any] = {"key_type": bytes, "value_type": bytes, "key_serializer": "raw", "value_serializer": "raw"}


def build(plan: Plan, reach: Callable[[Point], None], **options: Any) -> faust.App:
    """`reach` is told of every event, before its output: a fault may happen there."""
    app = ExactlyOnceApp(
        plan.app_id,
        options=Options(
            worker_id=plan.worker,
            data=plan.data / plan.worker,
            kafka={"bootstrap.servers": plan.bootstrap},
            checkpoint_ms=plan.checkpoint_ms,
            session_timeout_ms=plan.session_timeout_ms,
            transaction_timeout_ms=plan.transaction_timeout_ms,
            keep_unowned_seconds=plan.keep_unowned_seconds,
            tidy_seconds=plan.tidy_seconds,
            **options,
        ),
        topic_partitions=plan.partitions,
        topic_replication_factor=len(plan.bootstrap.split(",")),
        web_enabled=False,
        logging_config=logs.dict_config("info"),
    )
    return wire(app, plan, reach)


def build_vanilla(plan: Plan) -> faust.App:
    """The same agents on Faust's own exactly_once, for bench.vanilla_control: as good as its settings make it."""
    app = faust.App(
        plan.app_id,
        broker=[f"kafka://{address}" for address in plan.bootstrap.split(",")],
        datadir=plan.data / plan.worker,
        store="rocksdb://",
        processing_guarantee="exactly_once",
        consumer_group_instance_id=plan.worker,  # back in its place after a kill, without waiting for its session
        broker_session_timeout=plan.session_timeout_ms / 1000,
        broker_heartbeat_interval=plan.session_timeout_ms / 6000,
        topic_partitions=plan.partitions,
        topic_replication_factor=len(plan.bootstrap.split(",")),
        topic_disable_leader=True,
        web_enabled=False,
        logging_config=logs.dict_config("info"),
    )
    return wire(app, plan, lambda _point: None, options={"driver": "rocksdict"})


def wire(app: faust.App, plan: Plan, reach: Callable[[Point], None], **table_options: Any) -> faust.App:
    came, middle, out = (app.topic(plan.topic(name), **RAW) for name in ("in", "mid", "out"))
    counts = app.Table(
        "counts", default=int, key_type=bytes, value_type=int, partitions=plan.partitions, **table_options
    )

    @app.agent(came, name="rekey")
    async def rekey(stream: Any) -> None:
        async for value in stream:
            await middle.send(key=second_key(int(value)), value=value)

    def key_for_counting(value: bytes) -> bytes:
        reach("key")
        return count_key(int(value), plan.keys)

    @app.agent(middle, name="count")
    async def count(stream: Any) -> None:
        if "early-group-by" in plan.off:  # as an agent that first waits for something: the worker has joined by then
            while not app.consumer.assignment():  # noqa: ASYNC110 nobody tells of it but the consumer
                await asyncio.sleep(0.01)
        async for event in stream.group_by(key_for_counting, name="by-count-key").events():
            counts[event.key] += 1
            reach("event")
            await out.send(key=event.key, value=b"%s %d" % (event.value, counts[event.key]))

    return app
