"""Closed doors, tried for real: TLS to the gateway; TLS, SASL and ACLs to Kafka; what the logs tell.

One broker with a locked listener for all tests here, and on it the users and rights that docs/security.md grants.
"""

import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from cauce.settings import Settings
from infra.cluster import Cluster
from infra.generate.datasets import generate_shown
from infra.ports import Ports
from infra.service import GatewayProcess, ServiceProcess, WorkerProcess
from infra.verify import describe, verify
from producer_client import Client
from producer_client.errors import Refused, WrongUsage
from tests.harness.locks import PASSWORDS, Certificates, grant_as_written, locked, login

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
SECRET = "a secret that no log may tell"
A_TOKEN = re.compile(r"[0-9a-f]{32}\.[0-9]{9,11}\.[0-9a-f]{16}")


class SecureGateway(GatewayProcess):
    """Asked by HTTPS how it is."""

    def __init__(self, port: int, log_file: Path, variables: dict[str, str], certificates: Certificates) -> None:
        tls = {
            "CAUCE_GATEWAY_TLS_CERTIFICATE": str(certificates.certificate),
            "CAUCE_GATEWAY_TLS_KEY": str(certificates.key),
        }
        super().__init__("gateway", port, log_file, {"CAUCE_SECRET": SECRET, **tls, **variables})
        self.url = f"https://127.0.0.1:{port}"
        self._trust = ssl.create_default_context(cafile=certificates.ca)

    def page(self, path: str) -> tuple[int, str]:
        try:
            answer = httpx.get(self.url + path, verify=self._trust, timeout=5)
        except httpx.TransportError:
            return 0, ""
        return answer.status_code, answer.text


@dataclass
class House:
    """Everything behind locks; `bootstrap` is the locked listener."""

    folder: Path
    certificates: Certificates
    ports: Ports
    bootstrap: str
    administrators: str  # the listener at which everything is allowed

    def settings(self, user: str) -> dict[str, str]:
        own = {"CAUCE_TOPIC_PREFIX": "cauce-", "CAUCE_PARTITIONS": "2", "CAUCE_HOME": str(self.folder)}
        return {**login(user, self.bootstrap, self.certificates), **own, "CAUCE_LOG_LEVEL": "debug"}

    def gateway(self, name: str = "gateway", **variables: str) -> SecureGateway:
        log_file = self.folder / f"{name}.log"
        return SecureGateway(self.ports.take(), log_file, {**self.settings("gateway"), **variables}, self.certificates)

    def worker(self, name: str = "worker", **variables: str) -> WorkerProcess:
        log_file = self.folder / f"{name}.log"
        return WorkerProcess(name, self.ports.take(), log_file, {**self.settings("worker"), **variables})


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    certificates, ports = Certificates(folder), Ports(Settings.load().cache / "ports")
    secure_port = ports.take()
    with Cluster(
        folder / "kafka", brokers=1, heap="256m", more=lambda node: locked(node, secure_port, certificates)
    ) as cluster:
        grant_as_written(ROOT / "docs" / "security.md", cluster.bootstrap)
        yield House(folder, certificates, ports, f"127.0.0.1:{secure_port}", cluster.bootstrap)
    ports.release()


@pytest.fixture(scope="module")
def at_work(house: House) -> Iterator[SecureGateway]:
    """A gateway and a worker, each with the rights of its own."""
    with house.gateway() as gateway, house.worker():
        yield gateway


def test_a_dataset_goes_through_every_lock_and_no_log_tells_a_secret(
    house: House, at_work: SecureGateway, tmp_path: Path
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    generate_shown("movies", data, rows=2000, seed=8)
    command = [sys.executable, "-m", "producer_client", "movies", str(data), "--out", str(out)]
    trusting = ["--gateway", at_work.url, "--ca", str(house.certificates.ca), "--quiet"]
    done = subprocess.run([*command, *trusting], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    differences = verify("movies", data, out)
    assert not differences, describe("movies", differences)

    with Client(at_work.url, ca=house.certificates.ca) as client, client.open("movies") as session:
        token = session.ticket["token"]
        session.upload_file(data / "ratings.csv")
        forged = {**session.ticket, "token": token[:-8] + "00000000"}
        with pytest.raises(Refused, match="not made here"):
            client.resume(forged)
    logs = {file.name: file.read_text() for file in house.folder.glob("*.log")}
    assert {"gateway.log", "worker.log"} <= logs.keys()
    assert session.client_id in logs["gateway.log"], "the logs are those of this session"
    for name, text in logs.items():
        for secret in (token, forged["token"], SECRET, *PASSWORDS.values()):
            assert secret not in text, f"{name} tells a secret"
        assert not A_TOKEN.search(text), f"{name} tells a token"


def test_a_certificate_of_a_stranger_is_one_sentence_and_exit_code_2(at_work: SecureGateway, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    words = ["movies", str(tmp_path / "data"), "--out", str(tmp_path / "out"), "--gateway", at_work.url]
    command = [sys.executable, "-m", "producer_client", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert re.fullmatch(r".*certificate is not trusted.*--ca FILE, or SSL_CERT_FILE\n", done.stderr)


def test_plain_http_gets_no_answer_of_ours(at_work: SecureGateway) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(at_work.url.replace("https", "http") + "/livez", timeout=5)


def test_our_client_says_that_https_is_spoken_there(at_work: SecureGateway) -> None:
    with Client(at_work.url.replace("https", "http")) as client, pytest.raises(WrongUsage, match="HTTPS is spoken"):
        client.open("movies")


def test_a_wrong_key_to_kafka_is_one_sentence_and_exit_code_2(house: House) -> None:
    (house.folder / "stranger").mkdir()
    wrong = {
        "CAUCE_KAFKA_SASL_PASSWORD": "sesame",
        "CAUCE_KAFKA_SASL_USERNAME": "nobody",
        "CAUCE_KAFKA_SSL_CA": str(Certificates(house.folder / "stranger").ca),
    }
    quiet = {"CAUCE_LOG_LEVEL": "error"}
    locked_out: dict[str, ServiceProcess] = {
        name: house.gateway(f"gateway-{name}", **{name: value}, **quiet) for name, value in wrong.items()
    }
    locked_out["PASSWORD"] = house.worker("worker-locked-out", CAUCE_KAFKA_SASL_PASSWORD="sesame", **quiet)
    for process in locked_out.values():
        process.start()
    for name, process in locked_out.items():
        assert process.wait_for_end(60) == 2, process.log_file.read_text()
        said = process.log_file.read_text()
        assert "does not let us in" in said.splitlines()[-1]
        assert name in said.splitlines()[-1]
        assert "Traceback" not in said
        assert "sesame" not in said


def test_a_gateway_has_no_right_to_answer_and_a_worker_none_to_open_sessions(
    house: House, at_work: SecureGateway
) -> None:
    for user, topic in (("gateway", "cauce-answers"), ("worker", "cauce-sessions")):
        told: list[int] = []

        def delivered(error: KafkaError | None, message: object, told: list[int] = told) -> None:
            told.append(error.code() if error else 0)

        variables = login(user, house.bootstrap, house.certificates)
        producer = Producer(Settings(**{name[6:].lower(): value for name, value in variables.items()}).kafka_client())  # type: ignore[arg-type]
        producer.produce(topic, b"{}", on_delivery=delivered)
        assert producer.flush(30) == 0
        assert told == [KafkaError.TOPIC_AUTHORIZATION_FAILED]


def stamp(house: House, topic: str, by: str) -> None:
    change = ConfigEntry("message.timestamp.type", by, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin = AdminClient({"bootstrap.servers": house.administrators})
    admin.incremental_alter_configs([resource])[resource].result(30)


def test_who_may_not_alter_a_topic_of_an_older_version_says_what_to_run(house: House, at_work: SecureGateway) -> None:
    stamp(house, "cauce-uploads", "CreateTime")
    try:
        gateway = house.gateway("gateway-after-an-update")
        gateway.start()
        assert gateway.wait_for_end(60) == 2
        said = gateway.log_file.read_text().splitlines()[-1]
        assert "--entity-name cauce-uploads --add-config message.timestamp.type=LogAppendTime" in said
    finally:
        stamp(house, "cauce-uploads", "LogAppendTime")
