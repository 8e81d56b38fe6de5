"""`make demo`: three brokers, batches of three clients through the first agent, a kill in between, the table, all down.

It uses only what any user has: topics, HTTP, signals and Kafka's own console consumer.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer
from rich.console import Console
from rich.table import Table

from cauce.errors import CauceError
from cauce.settings import Settings
from cauce.topics import BATCHES, TALLY_CHANGELOG
from infra.cluster import Cluster
from infra.ports import Ports
from infra.processes import wait_until
from infra.worker import WorkerProcess

CLIENTS = ("ada", "bruno", "carla")
FILES = ("movies_metadata.csv", "ratings.csv")
BATCHES_EACH = 200
ROWS_EACH = 1000
SETTLE_SECONDS = 60.0

console = Console()


def main() -> None:
    with contextlib.suppress(KeyboardInterrupt), tempfile.TemporaryDirectory(prefix="cauce-demo-") as folder:
        show(Path(folder))


def show(folder: Path) -> None:
    began = time.monotonic()
    console.print("[bold]1.[/] three brokers start …")
    with Cluster(folder, brokers=3) as cluster:
        console.print(f"   ready after {time.monotonic() - began:.1f} s: {cluster.bootstrap}")
        ports = Ports(Settings.load().cache / "ports")
        worker = WorkerProcess(
            "demo",
            ports.take(),
            folder / "worker.log",
            {"CAUCE_BOOTSTRAP": cluster.bootstrap, "CAUCE_HOME": str(folder)},
        )
        console.print("[bold]2.[/] a worker starts: faust -A streams worker")
        with worker:
            console.print(f"   /readyz says {worker.page('/readyz')[1]}")
            sent = send_batches(cluster.bootstrap, worker)
            table = await_table(cluster.bootstrap, sent)
            show_table(table, sent)
            show_with_kafkas_own_tool(folder, cluster.bootstrap, len(table))
        console.print(f"[bold]6.[/] the worker stopped with exit code {worker.exit_code()}; the brokers follow")
        ports.release()
    console.print(f"   nothing is left running; {time.monotonic() - began:.0f} s in all")
    if {key: (value["batches"], value["rows"]) for key, value in table.items()} != expected(sent):
        raise SystemExit("the table is wrong: a bug, please report it")


def send_batches(bootstrap: str, worker: WorkerProcess) -> Counter[str]:
    """Send everything; kill the worker half-way and start it again."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
    keys = [f"{client}/{file}" for client in CLIENTS for file in FILES]
    sent: Counter[str] = Counter()
    console.print(f"[bold]3.[/] {len(CLIENTS)} clients send {BATCHES_EACH * len(keys)} batches of {ROWS_EACH:,} rows")
    for number in range(BATCHES_EACH):
        for key in keys:
            producer.produce(BATCHES.name, key=key, value=b"rows", headers={"rows": str(ROWS_EACH).encode()})
            sent[key] += 1
        if number == BATCHES_EACH // 2:
            producer.flush()
            console.print(f"   [red]kill -9 {worker.pid}[/], half-way")
            worker.kill()
            worker.start()
    producer.flush()
    worker.wait_ready()
    console.print("   the worker is back and goes on from its last commit")
    return sent


def await_table(bootstrap: str, sent: Counter[str]) -> dict[str, dict[str, int]]:
    """The table as its changelog has it, once every batch is counted."""
    reading = {"group.id": "demo", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **reading, "enable.auto.commit": False})
    consumer.subscribe([TALLY_CHANGELOG.name])
    table: dict[str, dict[str, int]] = {}

    def counted() -> bool:
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                table[(message.key() or b"").decode()] = json.loads(message.value() or b"")
        return sum(value["batches"] for value in table.values()) >= sent.total()

    try:
        wait_until(counted, seconds=SETTLE_SECONDS, otherwise=f"only {table} after {SETTLE_SECONDS:.0f} s")
    finally:
        consumer.close()
    return table


def show_table(table: dict[str, dict[str, int]], sent: Counter[str]) -> None:
    shown = Table(title="4. the table `tally`, from its changelog", title_justify="left")
    for column in ("client", "file", "batches", "rows", "sent"):
        shown.add_column(column, justify="left" if column in ("client", "file") else "right")
    for key in sorted(table):
        client, file = key.split("/")
        shown.add_row(client, file, f"{table[key]['batches']:,}", f"{table[key]['rows']:,}", f"{sent[key]:,}")
    console.print(shown)
    console.print("   every batch once, although the worker was killed in between")


def show_with_kafkas_own_tool(folder: Path, bootstrap: str, keys: int) -> None:
    arguments = ["--topic", TALLY_CHANGELOG.name, "--from-beginning", "--isolation-level", "read_committed"]
    console.print(f"[bold]5.[/] the same with Kafka's own tool: cauce kafka console-consumer {' '.join(arguments)}")
    answer = subprocess.run(
        [sys.executable, "-m", "infra", "kafka", "--home", str(folder), "console-consumer",
         "--bootstrap-server", bootstrap, *arguments, "--max-messages", str(keys),
         "--formatter-property", "print.key=true"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    if answer.returncode != 0:
        raise CauceError(f"the console consumer ended with {answer.returncode}: {answer.stderr.strip()}")
    for line in answer.stdout.splitlines()[:3]:
        console.print(f"   {line}", highlight=False)
    console.print("   …")


def expected(sent: Counter[str]) -> dict[str, tuple[int, int]]:
    return {key: (batches, batches * ROWS_EACH) for key, batches in sent.items()}


if __name__ == "__main__":
    main()
