"""Does a late EndTxn end a later transaction? `python -m rig.late_end_txn [--transaction-version 1] [--tries 10]`.

A bare librdkafka producer, one broker from Kafka's jars, and a proxy between them. The proxy keeps the request that
commits transaction A and cuts the connection. The library sends it again, so `commit_transaction` reports success. In
the middle of transaction B, of the same producer and epoch, the kept request arrives at last. B is aborted then; a
read_committed reader must see nothing of it. No code of Cauce takes part but what starts the broker.
"""

import argparse
import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition, libversion
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cauce.settings import Settings
from infra.cluster import Cluster
from infra.jars import class_path, ensure_jars
from infra.java import find_java
from infra.layout import Node
from rig.frame_proxy import END_TXN, FrameProxy

TOPIC: Final = "torn"
SECONDS: Final = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transaction-version", type=int, choices=(1, 2), default=2)
    parser.add_argument("--tries", type=int, default=10)
    given = parser.parse_args()
    proxies: list[FrameProxy] = []

    def through_a_proxy(node: Node) -> Mapping[str, str]:
        proxies.append(FrameProxy(node.port))
        return {"advertised.listeners": f"BROKER://127.0.0.1:{proxies[0].port}"}

    with tempfile.TemporaryDirectory(prefix="cauce-late-") as folder:
        kafka = Cluster(Path(folder), brokers=1, heap="256m", more=through_a_proxy)
        kafka.start()
        try:
            if given.transaction_version == 1:
                downgrade(kafka.bootstrap)
            client = {"bootstrap.servers": f"127.0.0.1:{proxies[0].port}", "log_level": 0}
            make_topic(client)
            outcomes = Counter(one_try(client, proxies[0], number) for number in range(given.tries))
        finally:
            kafka.stop(seconds=0)
            proxies[0].close()
    print(f"librdkafka {libversion()[0]}, transaction.version {given.transaction_version}")
    for outcome, times in outcomes.most_common():
        print(f"{times:4} of {given.tries}: {outcome}")


def one_try(client: Mapping[str, Any], proxy: FrameProxy, number: int) -> str:
    """Returns what a reader sees of an aborted transaction, and what the producer was told."""
    producer = Producer({**client, "transactional.id": f"late-{number}", "linger.ms": 0})
    producer.init_transactions(SECONDS)
    send(producer, number, "A1", "A2", is_kept=proxy)
    before = proxy.requests.get(END_TXN, 0)
    producer.commit_transaction(SECONDS)
    sent = proxy.requests[END_TXN] - before
    send(producer, number, "B1", "B2")
    code = proxy.deliver()
    try:
        producer.abort_transaction(SECONDS)
        told = "the abort was reported as done"
    except KafkaException as error:
        told = f"the abort failed: {error.args[0].name()}"
    seen = read_committed(client, number)
    torn = [value for value in seen if value.startswith("B")]
    verdict = f"TORN, {' and '.join(torn)} of the aborted transaction are visible" if torn else "whole"
    return f"{verdict}; EndTxn sent {sent} times, the late one answered with error code {code}; {told}"


def send(producer: Producer, number: int, *values: str, is_kept: FrameProxy | None = None) -> None:
    """Begins a transaction and sends its records, all acknowledged."""
    producer.begin_transaction()
    for value in values:
        producer.produce(TOPIC, value.encode(), key=str(number).encode())
    if producer.flush(SECONDS):
        raise RuntimeError("records were not acknowledged")
    if is_kept is not None:
        is_kept.keep_next(END_TXN)


def read_committed(client: Mapping[str, Any], number: int) -> list[str]:
    """Returns all that a reader of committed records finds of one try, up to the last stable offset."""
    own = {"group.id": "reader", "isolation.level": "read_committed", "enable.auto.commit": False}
    consumer = Consumer({**client, **own, "enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    seen: list[str] = []
    try:
        while True:
            message = consumer.poll(SECONDS)
            if message is None or message.error():
                return seen
            value = message.value()
            if message.key() == str(number).encode() and value is not None:
                seen.append(value.decode())
    finally:
        consumer.close()


def make_topic(client: Mapping[str, Any]) -> None:
    admin = AdminClient(dict(client))
    for made in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
        made.result(SECONDS)


def downgrade(bootstrap: str) -> None:
    """Lets the brokers do transactions as they did before Kafka 4."""
    jars = class_path(ensure_jars(Settings.load().cache))
    command = [find_java(), "-cp", jars, "org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", bootstrap]
    done = subprocess.run(
        [*command, "downgrade", "--feature", "transaction.version=1"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(json.dumps([done.stdout, done.stderr]))


if __name__ == "__main__":
    main()
