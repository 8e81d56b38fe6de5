"""The same small app on our core and on vanilla Faust: read, count in a table, send. Chosen by BENCH_APP.

`faust -A bench.apps worker`, told by variables what to read: the benchmarks start it so.
"""

import os
from pathlib import Path
from typing import Any

import faust

from bench.work import DIGEST_BYTES, WORK
from cauce.logs import dict_config
from streams.exactly_once import ExactlyOnceApp
from streams.options import Options
from streams.pages import add_pages

PREFIX = os.environ["BENCH_PREFIX"]
BOOTSTRAP = os.environ["BENCH_BOOTSTRAP"]
FOLDER = Path(os.environ["BENCH_FOLDER"])
PARTITIONS = int(os.environ["BENCH_PARTITIONS"])
PORT = int(os.environ["BENCH_PORT"])
transform = WORK[os.environ["BENCH_WORK"]]


def ours() -> faust.App:
    app = ExactlyOnceApp(
        f"{PREFIX}bench",
        options=Options(worker_id="bench", data=FOLDER / "ours", kafka={"bootstrap.servers": BOOTSTRAP}),
        topic_partitions=PARTITIONS,
        web_port=PORT,
        web_bind="127.0.0.1",
        logging_config=dict_config("info"),
    )
    add_pages(app)
    return app


def vanilla() -> faust.App:
    app = faust.App(
        f"{PREFIX}bench",
        broker=[f"kafka://{address}" for address in BOOTSTRAP.split(",")],
        datadir=FOLDER / "vanilla",
        store="rocksdb://",
        topic_partitions=PARTITIONS,
        topic_replication_factor=1,
        processing_guarantee=os.environ["BENCH_GUARANTEE"],
        web_port=PORT,
        web_bind="127.0.0.1",
        topic_disable_leader=True,
    )
    app.conf.table_standby_replicas = 0
    return app


def wire(app: faust.App, **table_options: Any) -> faust.App:
    source = app.topic(f"{PREFIX}in", key_serializer="raw", value_serializer="raw")
    out = app.topic(f"{PREFIX}out", key_serializer="raw", value_serializer="raw")
    counts = app.Table("counts", default=int, partitions=PARTITIONS, key_type=bytes, value_type=int, **table_options)
    digests = app.Table("digests", partitions=PARTITIONS, key_type=bytes, value_type=bytes, **table_options)

    @app.agent(source)
    async def fold(stream: Any) -> None:
        async for event in stream.events():
            if len(event.value) > DIGEST_BYTES:
                digest = transform(event.value)
                digests[event.key] = digest
                await out.send(key=event.key, value=digest)
            else:
                counts[event.key] += 1
                await out.send(key=event.key, value=event.value)

    return app


app = wire(ours()) if os.environ["BENCH_APP"] == "ours" else wire(vanilla(), options={"driver": "rocksdict"})
