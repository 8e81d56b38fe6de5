"""docs/examples/orders.py, as it stands there, with plain `faust -A orders worker` and a SIGKILL in the middle."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from infra.cluster import Cluster
from infra.processes import leashed, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.kill]

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PARTITIONS, CUSTOMERS, ORDERS = 4, 7, 3000


class Shop:
    """Places orders, and reads totals: committed records only."""

    def __init__(self, bootstrap: str, app: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._placed = f"{app}-placed"
        self.totals: list[dict[str, Any]] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{app}-test",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        self._consumer.assign([TopicPartition(f"{app}-totals", partition, 0) for partition in range(PARTITIONS)])

    def place(self, numbers: range) -> None:
        for number in numbers:
            order = {"number": number, "customer": f"c{number % CUSTOMERS}", "cents": number * 7 % 1000}
            self._producer.produce(self._placed, json.dumps(order).encode(), str(number).encode())
        assert self._producer.flush(60) == 0

    def read(self) -> int:
        for message in self._consumer.consume(500, 0.2):
            if message.error() is None:
                self.totals.append(json.loads(message.value() or b""))
        return len(self.totals)

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def worker(bootstrap: str, app: str, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [str(Path(sys.executable).with_name("faust")), "-A", "orders", "worker", "--without-web"]
    variables = {"ORDERS_KAFKA": bootstrap, "ORDERS_APP": app, "ORDERS_DATA": str(folder / "data")}
    with (folder / "worker.log").open("ab") as log:
        child = subprocess.Popen(
            leashed(command), cwd=EXAMPLES, env={**os.environ, **variables}, stdout=log, stderr=log
        )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def test_each_order_counts_once_whatever_is_killed(kafka: Cluster, prefix: str, tmp_path: Path) -> None:
    app, shop, first = f"{prefix}orders", None, ORDERS // 2
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    try:
        with worker(kafka.bootstrap, app, tmp_path):
            wanted = {f"{app}-placed", f"{app}-totals"}
            wait_until(
                lambda: wanted <= admin.list_topics(timeout=30).topics.keys(),
                seconds=90,
                otherwise=f"the worker makes no topics; see {tmp_path}/worker.log",
            )
            shop = Shop(kafka.bootstrap, app)
            shop.place(range(first))
            wait_until(lambda: shop.read() > 0, seconds=60, otherwise="no total came")
            shop.place(range(first, ORDERS))
        assert shop.read() < ORDERS, "the kill came after all was done: it shows nothing"
        with worker(kafka.bootstrap, app, tmp_path):
            wait_until(lambda: shop.read() >= ORDERS, seconds=90, otherwise=f"{len(shop.totals)} of {ORDERS} totals")
    finally:
        if shop is not None:
            shop.close()
    assert sorted(total["last"] for total in shop.totals) == list(range(ORDERS))
    by_customer: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for total in shop.totals:
        by_customer[total["customer"]].append(total)
    for customer, found in by_customer.items():
        assert [total["orders"] for total in found] == list(range(1, len(found) + 1))
        mine = [number for number in range(ORDERS) if f"c{number % CUSTOMERS}" == customer]
        assert found[-1]["cents"] == sum(number * 7 % 1000 for number in mine)
