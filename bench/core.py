"""How fast the exactly-once core is: `python -m bench.core`. One broker, one worker; every ratio within one run.

1. one record a row, a table and a send: rows/s of ours, of vanilla Faust at-least-once and "exactly_once"
2. records of 256 KiB through an agent with a table, against a bare librdkafka consume-transform-produce loop
3. SIGKILL to the first event after it, with a warm and an empty store
4. restore of a changelog: MB/s at 128 KiB records, records/s at 100 B
"""

import argparse
import json
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.work import WORK
from cauce.provision import WantedTopic, ensure_topics
from infra.cluster import Cluster
from infra.processes import leashed
from streams.intake import consumer_config, take

PARTITIONS = 4
DEADLINE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Bench:
    bootstrap: str
    folder: Path
    port: int
    work: str = "checksum"

    @property
    def client(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap}

    def topics(self, prefix: str) -> None:
        names = ("in", "out", "bare", "bare-state")
        ensure_topics(self.client, [WantedTopic(f"{prefix}{name}", PARTITIONS, {}) for name in names], 1)

    def feed(self, prefix: str, records: int, size: int, keys: int = 100) -> None:
        self.topics(prefix)
        producer = Producer({**self.client, "partitioner": "murmur2_random", "linger.ms": 20, "batch.size": 1 << 20})
        payload = random.Random(1).randbytes(size)
        for number in range(records):
            while True:
                try:
                    producer.produce(f"{prefix}in", key=b"%d" % (number % keys), value=payload)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()

    @contextmanager
    def worker(
        self, prefix: str, app: str = "ours", guarantee: str = "at_least_once"
    ) -> Iterator["subprocess.Popen[bytes]"]:
        process = self.start(prefix, app, guarantee)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def start(self, prefix: str, app: str = "ours", guarantee: str = "at_least_once") -> "subprocess.Popen[bytes]":
        environment = {
            **os.environ,
            "BENCH_PREFIX": prefix,
            "BENCH_BOOTSTRAP": self.bootstrap,
            "BENCH_FOLDER": str(self.folder / prefix),
            "BENCH_PARTITIONS": str(PARTITIONS),
            "BENCH_PORT": str(self.port),
            "BENCH_APP": app,
            "BENCH_GUARANTEE": guarantee,
            "BENCH_WORK": self.work,
        }
        (self.folder / prefix).mkdir(exist_ok=True)
        log = (self.folder / f"{prefix}{app}.log").open("ab")
        with log:
            faust = str(Path(sys.executable).with_name("faust"))
            command = [faust, "-A", "bench.apps", "worker", "-l", "warn", "--web-port", str(self.port)]
            return subprocess.Popen(leashed(command), env=environment, stdout=log, stderr=log)

    def arrivals(self, prefix: str, records: int, worker: "subprocess.Popen[bytes]") -> list[float]:
        """When each of `records` outputs could be read, as time.monotonic()."""
        reading = {"group.id": f"{prefix}check", "isolation.level": "read_committed", "fetch.wait.max.ms": 10}
        consumer = Consumer({**self.client, **reading, "enable.auto.commit": False})
        consumer.assign([TopicPartition(f"{prefix}out", partition, 0) for partition in range(PARTITIONS)])
        times: list[float] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while len(times) < records and time.monotonic() < deadline and worker.poll() is None:
            got = [message for message in consumer.consume(10_000, 0.1) if message.error() is None]
            times.extend([time.monotonic()] * len(got))
        consumer.close()
        return times

    def rate(self, prefix: str, records: int, app: str, guarantee: str = "at_least_once") -> float:
        """Records/s between the first tenth and the last: start-up is another figure."""
        with self.worker(prefix, app, guarantee) as process:
            times = self.arrivals(prefix, records, process)
        if len(times) < records:
            return float("nan")
        first = times[records // 10]
        return (records - records // 10) / (times[-1] - first)

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            return str(answer.read().decode())


def one_record_a_row(bench: Bench, count: int) -> dict[str, float]:
    figures = {}
    for app, guarantee in (("ours", ""), ("vanilla", "at_least_once"), ("vanilla", "exactly_once")):
        prefix = f"rows-{app}{guarantee}-"
        bench.feed(prefix, count, size=100)
        figures[f"{app} {guarantee}".strip()] = bench.rate(prefix, count, app, guarantee or "at_least_once")
    return figures


def big_records(bench: Bench, count: int) -> dict[str, float]:
    """Ours against the bare loop, in MB/s: the median of three turns over the same records."""
    size = 256 << 10
    figures: dict[str, list[float]] = {"ours": [], "bare loop, tuned": [], "bare loop, plain": []}
    for turn in range(3):
        prefix = f"{bench.work.replace(' ', '-')}{turn}-"
        bench.feed(prefix, count, size, keys=16)
        figures["bare loop, tuned"].append(bare_loop(bench, prefix, count, tuned=True) * size / 1e6)
        figures["ours"].append(bench.rate(prefix, count, "ours") * size / 1e6)
        figures["bare loop, plain"].append(bare_loop(bench, prefix, count, tuned=False) * size / 1e6)
    return {name: statistics.median(values) for name, values in figures.items()}


def bare_loop(bench: Bench, prefix: str, count: int, *, tuned: bool) -> float:
    """The same work without Faust, tables or threads: what librdkafka alone allows, one transaction per 300 ms.
    Tuned as our consumer is, or plain: with the library's defaults and its own way to read many."""
    group = f"{prefix}bare-{tuned}"
    tuning = consumer_config(bench.client, group, "bare", session_timeout_ms=6000) if tuned else {}
    only_committed = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**bench.client, "group.id": group, **tuning, **only_committed, "enable.partition.eof": False})
    producer = Producer({**bench.client, "transactional.id": group, "linger.ms": 5, "compression.type": "lz4"})
    producer.init_transactions(30)
    consumer.subscribe([f"{prefix}in"])
    producer.begin_transaction()
    done, committed, started, state = 0, time.monotonic(), 0.0, dict[bytes, bytes]()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while done < count:
        if time.monotonic() > deadline:
            raise SystemExit(f"the bare loop has read {done} of {count} records in {DEADLINE_SECONDS:.0f} s")
        for message in take(consumer, 500, 0.1) if tuned else consumer.consume(500, 0.1):
            if (error := message.error()) is not None:
                raise SystemExit(f"the bare loop cannot read: {error.str()}")
            key, digest = message.key() or b"", WORK[bench.work](message.value() or b"")
            state[key] = digest
            producer.produce(f"{prefix}bare", key=key, value=digest)
            done += 1
            if done == count // 10:
                started = time.monotonic()
        producer.poll(0)
        if time.monotonic() - committed > 0.3 or done == count:
            for key, value in state.items():
                producer.produce(f"{prefix}bare-state", key=key, value=value)
            state.clear()
            producer.flush()
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
            producer.commit_transaction()
            producer.begin_transaction()
            committed = time.monotonic()
    seconds = time.monotonic() - started
    consumer.close()
    return (count - count // 10) / seconds


def restarts(bench: Bench, times: int) -> dict[str, float]:
    """SIGKILL while records flow; from the kill to the first output that a reader sees after it."""
    prefix = "restart-"
    bench.feed(prefix, 100, size=100)
    producer = Producer({**bench.client, "partitioner": "murmur2_random"})
    reading = {"group.id": f"{prefix}check", "isolation.level": "read_committed", "fetch.wait.max.ms": 10}
    consumer = Consumer({**bench.client, **reading, "enable.auto.commit": False})
    consumer.assign([TopicPartition(f"{prefix}out", partition, 0) for partition in range(PARTITIONS)])
    process = bench.start(prefix)
    seconds = []
    for _ in range(times):
        wait_for_output(producer, consumer, prefix)
        process.kill()
        process.wait()
        killed = time.monotonic()
        drain(consumer)
        process = bench.start(prefix)
        wait_for_output(producer, consumer, prefix)
        seconds.append(time.monotonic() - killed)
    checkpoint = checkpoint_p50(bench.metrics())
    process.kill()
    process.wait()
    consumer.close()
    return {"p50": statistics.median(seconds), "max": max(seconds), "checkpoint p50 ≤": checkpoint}


def wait_for_output(producer: Producer, consumer: Consumer, prefix: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        producer.produce(f"{prefix}in", key=b"k", value=b"x")
        producer.poll(0)
        if any(message.error() is None for message in consumer.consume(100, 0.02)):
            return
    raise SystemExit("no output within 60 s; see the worker's log")


def drain(consumer: Consumer) -> None:
    while consumer.consume(1000, 0.2):
        pass


def checkpoint_p50(metrics: str) -> float:
    """The smallest bucket that holds half of the checkpoints."""
    buckets = re.findall(r'cauce_checkpoint_seconds_bucket\{le="([^"]+)"\} (\S+)', metrics)
    half = float(buckets[-1][1]) / 2
    return next(float(limit) for limit, count in buckets if float(count) >= half)


def restore(bench: Bench, count: int, size: int) -> dict[str, float]:
    """Fill a changelog, throw the store away, and let a worker restore it."""
    prefix = f"restore{size}-"
    bench.topics(prefix)
    changelog = f"{prefix}bench-{'digests' if size > 1000 else 'counts'}-changelog"
    ensure_topics(bench.client, [WantedTopic(changelog, PARTITIONS, {"cleanup.policy": "compact"})], 1)
    producer = Producer({**bench.client, "linger.ms": 20, "batch.size": 1 << 20, "message.max.bytes": 2 << 20})
    payload = random.Random(1).randbytes(size)
    for number in range(count):
        while True:
            try:
                producer.produce(changelog, key=b"%d" % number, value=payload, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    # a changelog without a commit of its group is refused: somebody's offsets were lost
    group = Consumer({**bench.client, "group.id": f"{prefix}bench"})
    group.commit(offsets=[TopicPartition(f"{prefix}in", each, 0) for each in range(PARTITIONS)], asynchronous=False)
    group.close()
    with bench.worker(prefix) as process:
        line = wait_for_line(process, bench.folder / f"{prefix}ours.log", "tables restored")
    facts = json.loads(line)
    return {"MB/s": facts["bytes"] / facts["seconds"] / 1e6, "records/s": facts["records"] / facts["seconds"]}


def wait_for_line(process: "subprocess.Popen[bytes]", log: Path, words: str) -> str:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = [line for line in log.read_text().splitlines() if words in line]
        if found:
            return found[-1]
        time.sleep(0.05)
    raise SystemExit(f"the worker did not say {words!r}; see {log}")


def show(title: str, figures: dict[str, float], against: str = "", best: str = "ours") -> None:
    print(f"\n{title}")
    for name, value in figures.items():
        ratio = f"  {figures[best] / value:8.2f} × this" if against and name != best else ""
        print(f"  {name:24} {value:12,.2f}{ratio}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--big", type=int, default=2_000, help="records of 256 KiB")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--only", choices=["rows", "big", "restarts", "restore"])
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="cauce-bench-"))
    with Cluster(folder / "kafka", brokers=1, heap="1g") as cluster:
        bench = Bench(cluster.bootstrap, folder, port=free_port())
        if given.only in (None, "rows"):
            show("one record a row, rows/s", one_record_a_row(bench, given.rows), against="vanilla")
        if given.only in (None, "big"):
            for work in WORK:
                figures = big_records(replace(bench, work=work), given.big)
                show(f"records of 256 KiB, {work}, MB/s", figures, against="bare loop")
        if given.only in (None, "restarts"):
            show("SIGKILL to first output, s", restarts(bench, given.kills))
        if given.only in (None, "restore"):
            show("restore, 128 KiB records", restore(bench, 4000, 128 << 10))
            show("restore, 100 B records", restore(bench, 400_000, 100))
    shutil.rmtree(folder)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
