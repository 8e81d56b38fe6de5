"""What real processes tell: metrics by the names that are promised, one trace from client to answer, logs by client."""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from cauce.settings import Settings
from infra.cluster import Cluster
from infra.generate.datasets import generate_shown
from infra.ports import Ports
from infra.processes import wait_until
from infra.service import GatewayProcess, WorkerProcess
from infra.state import Member, Phase, Running
from infra.supervisor_metrics import serve
from infra.tending import Record
from infra.verify import describe, verify

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
PARTITIONS = 2
SUFFIX = re.compile(r"_(bucket|sum|count)$")


@dataclass(frozen=True)
class Watched:
    folder: Path
    bootstrap: str
    gateway: GatewayProcess
    worker: WorkerProcess
    client_id: str
    ports: Ports

    @property
    def spans(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in whole_lines(self.folder / "spans.jsonl")]

    def logged(self, process: str, message: str) -> list[str]:
        """The client ids of what was logged with these words."""
        lines = [json.loads(line) for line in whole_lines(self.folder / f"{process}.log") if line.startswith("{")]
        return [line["client_id"] for line in lines if line["message"] == message]


def whole_lines(file: Path) -> list[str]:
    """Of a file that others write to at this moment: the last line may be a part of one."""
    return [line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A dataset that went through a gateway and a worker, all with traces on."""
    folder = tmp_path_factory.mktemp("watched")
    ports = Ports(Settings.load().cache / "ports")
    generate_shown("flights", folder / "data", rows=500, seed=3)
    with Cluster(folder / "kafka", brokers=1, heap="256m") as cluster:
        variables = {
            "CAUCE_BOOTSTRAP": cluster.bootstrap,
            "CAUCE_PARTITIONS": str(PARTITIONS),
            "CAUCE_HOME": str(folder),
            "CAUCE_SECRET": "a secret for tests only",
            "CAUCE_TRACE": f"file:{folder / 'spans.jsonl'}",
        }
        with (
            GatewayProcess("gateway", ports.take(), folder / "gateway.log", variables) as gateway,
            WorkerProcess("worker", ports.take(), folder / "worker.log", variables) as worker,
        ):
            words = ["flights", str(folder / "data"), "--out", str(folder / "out"), "--quiet"]
            subprocess.run(
                [sys.executable, "-m", "producer_client", *words, "--gateway", f"http://127.0.0.1:{gateway.port}"],
                env={"CAUCE_TRACE": variables["CAUCE_TRACE"]},
                check=True,
                timeout=120,
            )
            report = json.loads((folder / "out" / "report.json").read_text())
            yield Watched(folder, cluster.bootstrap, gateway, worker, report["client_id"], ports)
    ports.release()


def test_answers_are_right_with_everybody_watching(watched: Watched) -> None:
    differences = verify("flights", watched.folder / "data", watched.folder / "out")
    assert not differences, describe("flights", differences)


def test_one_trace_goes_from_the_client_to_the_answer(watched: Watched) -> None:
    def services() -> set[str]:
        return {span["service"] for span in ours()}

    def ours() -> list[dict[str, str]]:
        (root,) = [span for span in watched.spans if span["name"] == "open session"]
        return [span for span in watched.spans if span["trace_id"] == root["trace_id"]]

    wait_until(
        lambda: services() == {"cauce-client", "cauce-gateway", "cauce-worker"},
        seconds=60,
        otherwise="some process has no span in the client's trace",
    )
    wanted = {"open session", "POST /sessions", "fold batch", "fold end", "merge partial"}
    wait_until(  # processes write their spans now and then, each in its own time
        lambda: wanted <= {span["name"] for span in ours()}, seconds=60, otherwise=f"not all of {wanted} were traced"
    )
    names = {span["name"] for span in ours()}
    assert any(name.startswith("PATCH ") for name in names)
    assert any(name.startswith("GET ") and "answers" in name for name in names)

    def orphans() -> list[dict[str, str]]:
        spans = ours()
        ids = {span["span_id"] for span in spans}
        return [span for span in spans if span["parent_id"] not in ids and span["name"] != "open session"]

    wait_until(  # a parent ends after its children, so it may be written after them
        lambda: not orphans(), seconds=60, otherwise="every span but the first has a parent in the same trace"
    )
    trace_id = ours()[0]["trace_id"]
    assert trace_ids_of(watched, "answers") == {trace_id}
    assert trace_ids_of(watched, "itineraries") == {trace_id}


def trace_ids_of(watched: Watched, topic: str) -> set[str]:
    """Of all records of the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": watched.bootstrap,
            "group.id": "test",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found, ended = set[str](), set[int | None]()

    def all_read() -> bool:
        for message in consumer.consume(100, 0.2):
            if message.error() is not None:
                ended.add(message.partition())
            else:
                headers: Any = dict(message.headers() or [])
                found.add(headers["traceparent"].decode().split("-")[1])
        return len(ended) == PARTITIONS

    try:
        wait_until(all_read, seconds=60, otherwise=f"{topic} was not read to its end")
    finally:
        consumer.close()
    return found


def test_logs_of_gateway_and_worker_name_the_client(watched: Watched) -> None:
    assert watched.logged("gateway", "session opened") == [watched.client_id]
    assert watched.logged("gateway", "upload complete") == [watched.client_id] * 2
    assert watched.logged("worker", "query answered") == [watched.client_id] * 5
    wait_until(
        lambda: watched.logged("gateway", "session ended") == [watched.client_id],
        seconds=60,
        otherwise="the end of the session was not logged",
    )


def test_the_promised_metrics_are_those_that_are_served_and_the_dashboard_uses_no_other(watched: Watched) -> None:
    home, port = watched.folder / "supervised", watched.ports.take()
    home.mkdir()
    Running(Phase.READY, None, (Member(home, Record("worker", 0, 1)),)).write(home)
    serve(home, port)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        supervisor = answer.read().decode()
    texts = (watched.worker.page("/metrics")[1], watched.gateway.page("/metrics")[1], supervisor)
    served = {name for text in texts for name in names_in(text)}
    document = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    promised = set(re.findall(r"^\| .*", document, re.MULTILINE))
    promised = {name for line in promised for name in re.findall(r"`((?:cauce|process)_\w+)`", line)}
    assert served - {"cauce_gateway_failures_total"} == promised - {"cauce_gateway_failures_total"}  # none has failed
    dashboard = json.loads((ROOT / "infra/grafana/dashboards/cauce.json").read_text(encoding="utf-8"))
    exprs = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    used = {SUFFIX.sub("", name) for expr in exprs for name in re.findall(r"cauce_\w+", expr)}
    assert used <= promised
    assert len(used) > 20


def names_in(text: str) -> Iterator[str]:
    for family in text_string_to_metric_families(text):
        if not family.name.endswith("_created"):  # the library's own: when a series began
            yield f"{family.name}_total" if family.type == "counter" else family.name
