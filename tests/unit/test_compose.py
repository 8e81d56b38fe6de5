"""docker-compose.kafka.yml and the Dockerfile say what the code says. No Docker is needed, or used, to check that."""

import base64
import inspect
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from cauce.settings import PREFIX, Settings
from cauce.topics import MAX_RECORD_BYTES
from infra.broker import STOP_SECONDS
from infra.cluster import Cluster
from infra.layout import Layout, Node, server_properties

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.kafka.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
BROKERS = ["kafka-0", "kafka-1", "kafka-2"]
WORKERS = ["worker-0", "worker-1"]
GATEWAYS = ["gateway-0", "gateway-1"]
OBSERVERS = ["grafana", "prometheus"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: list[str] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

# The embedded brokers share a machine, these do not: where a broker is and keeps its data differs, nothing else may.
PLACE = {"listeners", "advertised.listeners", "listener.security.protocol.map", "controller.quorum.voters", "log.dirs"}
SIZED = {"num.io.threads", "num.network.threads"}  # by the cores of this machine; in containers Kafka's own are as good
NOT_SETTINGS = {"KAFKA_HEAP_OPTS"}  # the image leaves this one to Java
A_HOST = re.compile(r"https?://|\b[\w-]+\.(?:io|org|com|net|dev)\b|index-url|find-links|--mount|registry\.")


def environment(service: str) -> dict[str, str]:
    """As a process in the container sees it. A bare `true` is refused: readers of YAML differ in how they write it."""
    given = SERVICES[service]["environment"]
    assert all(type(value) in (str, int) for value in given.values()), "quote true and false"
    return {name: str(value) for name, value in given.items()}


def told(broker: str) -> dict[str, str]:
    """server.properties as kafka.docker.KafkaDockerWrapper in the image writes it from the variables."""
    given = {name: value for name, value in environment(broker).items() if name.startswith("KAFKA_")}
    return {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in given.items()
        if name not in NOT_SETTINGS
    }


def by_listener(listeners: str) -> dict[str, str]:
    return dict(listener.split("://") for listener in listeners.split(","))


def worker_settings(worker: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Read as the worker reads them: a misspelt name or a bad value raises."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    for name, value in environment(worker).items():
        monkeypatch.setenv(name, value)
    return Settings.load()


def test_there_are_three_brokers_two_workers_and_two_gateways() -> None:
    assert sorted(name for name in SERVICES if name not in OBSERVERS) == GATEWAYS + BROKERS + WORKERS


def test_who_watches_starts_only_when_asked_for_and_is_seen_on_this_machine_only() -> None:
    for name in OBSERVERS:
        assert SERVICES[name]["profiles"] == ["observe"]
        assert all(port.startswith("127.0.0.1:") for port in SERVICES[name]["ports"])
        mounted = [volume.split(":") for volume in SERVICES[name]["volumes"] if volume.startswith(".")]
        assert mounted
        assert all((ROOT / here).exists() and how == "ro" for here, _, how in mounted)


def test_prometheus_asks_every_worker_and_every_gateway() -> None:
    config = yaml.safe_load((ROOT / "infra/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    asked = {job["job_name"]: job["static_configs"][0]["targets"] for job in config["scrape_configs"]}
    assert asked == {
        "workers": [f"{name}:{environment(name)['CAUCE_WORKER_PORT']}" for name in WORKERS],
        "gateways": [f"{name}:{environment(name)['CAUCE_GATEWAY_HEALTH_PORT']}" for name in GATEWAYS],
    }


def test_grafana_is_told_of_the_source_and_the_folder_that_the_dashboard_names() -> None:
    provisioning = ROOT / "infra/grafana/provisioning"
    sources = yaml.safe_load((provisioning / "datasources/cauce.yml").read_text(encoding="utf-8"))["datasources"]
    providers = yaml.safe_load((provisioning / "dashboards/cauce.yml").read_text(encoding="utf-8"))["providers"]
    dashboard = json.loads((ROOT / "infra/grafana/dashboards/cauce.json").read_text(encoding="utf-8"))
    used = {panel["datasource"]["uid"] for panel in dashboard["panels"] if panel["type"] != "row"}
    assert used == {source["uid"] for source in sources}
    assert sources[0]["url"] == "http://prometheus:9090"
    folder = providers[0]["options"]["path"]
    assert f"./infra/grafana/dashboards:{folder}:ro" in SERVICES["grafana"]["volumes"]


def test_gateways_understand_their_settings_and_share_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [worker_settings(gateway, monkeypatch) for gateway in GATEWAYS]
    assert len({settings.gateway_port for settings in known}) == len(GATEWAYS)
    assert len({settings.secret for settings in known}) == 1
    for gateway, settings in zip(GATEWAYS, known, strict=True):
        service = SERVICES[gateway]
        assert settings.bootstrap == worker_settings(WORKERS[0], monkeypatch).bootstrap
        assert service["ports"] == [f"127.0.0.1:{settings.gateway_port}:{settings.gateway_port}"]
        assert service["command"] == ["python", "-m", "gateway"]
        assert "CAUCE_GATEWAY_HEALTH_PORT" in service["healthcheck"]["test"][-1]
        assert settings.gateway_health_port not in {None, settings.gateway_port}
        assert "volumes" not in service, "a gateway keeps nothing"


@pytest.mark.parametrize("broker", BROKERS)
def test_a_broker_is_told_what_an_embedded_one_is_told(broker: str) -> None:
    nodes = tuple(Node(number, 1, 2) for number in range(len(BROKERS)))
    embedded = server_properties(Layout("id", nodes), nodes[BROKERS.index(broker)])
    embedded = {name: value for name, value in embedded.items() if name not in SIZED}
    ours = told(broker)
    assert ours.keys() == embedded.keys()
    assert {name: ours[name] for name in ours.keys() - PLACE} == {name: embedded[name] for name in ours.keys() - PLACE}


@pytest.mark.parametrize("broker", BROKERS)
def test_a_broker_is_found_by_its_name_inside_and_on_this_machine_only_outside(broker: str) -> None:
    ours, service = told(broker), SERVICES[broker]
    listens, advertises = by_listener(ours["listeners"]), by_listener(ours["advertised.listeners"])
    protocols = dict(pair.split(":") for pair in ours["listener.security.protocol.map"].split(","))
    port = f"{int(ours['node.id']) + 1}9092"

    assert service["hostname"] == broker
    assert listens == {"BROKER": ":9092", "CONTROLLER": ":9093", "HOST": f":{port}"}
    assert advertises == {"BROKER": f"{broker}:9092", "HOST": f"127.0.0.1:{port}"}
    assert protocols == dict.fromkeys(listens, "PLAINTEXT")
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert ours["controller.quorum.voters"] == ",".join(f"{told(name)['node.id']}@{name}:9093" for name in BROKERS)


@pytest.mark.parametrize("broker", BROKERS)
def test_a_broker_keeps_its_data_in_a_volume_of_its_own(broker: str) -> None:
    assert SERVICES[broker]["volumes"] == [f"{broker}:{told(broker)['log.dirs']}"]
    assert broker in COMPOSE["volumes"]


def test_brokers_form_one_cluster() -> None:
    (cluster_id,) = {environment(broker)["CLUSTER_ID"] for broker in BROKERS}
    assert len(base64.urlsafe_b64decode(cluster_id + "==")) == 16  # a UUID, as Kafka writes it
    assert not cluster_id.startswith("-")


@pytest.mark.parametrize("broker", BROKERS)
def test_a_broker_has_the_version_the_heap_and_the_patience_of_an_embedded_one(broker: str) -> None:
    pom = ET.parse(ROOT / "infra" / "kafka.pom.xml").getroot()  # noqa: S314  (our own file)
    version = pom.findtext("{*}properties/{*}kafka.version")
    assert SERVICES[broker]["image"] == f"apache/kafka:{version}"
    heap = inspect.signature(Cluster).parameters["heap"].default
    assert environment(broker)["KAFKA_HEAP_OPTS"] == f"-Xmx{heap}"
    assert SERVICES[broker]["stop_grace_period"] == f"{STOP_SECONDS}s"


def test_a_broker_takes_the_largest_record_of_a_topic() -> None:
    assert int(told("kafka-0")["message.max.bytes"]) >= MAX_RECORD_BYTES
    assert int(told("kafka-0")["replica.fetch.max.bytes"]) >= MAX_RECORD_BYTES


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_every_service_says_whether_it_is_well_and_comes_back(service: str) -> None:
    check = SERVICES[service]["healthcheck"]
    assert check.keys() == {"test", "interval", "timeout", "retries", "start_period", "start_interval"}
    assert SERVICES[service]["restart"] == "unless-stopped"


@pytest.mark.parametrize("broker", BROKERS)
def test_a_broker_is_asked_by_the_images_own_tool_at_its_own_address(broker: str) -> None:
    kind, command = SERVICES[broker]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    assert "/opt/kafka/bin/kafka-topics.sh" in command
    assert '--bootstrap-server "$$(hostname):9092"' in command  # $$ is how Compose writes $


@pytest.mark.parametrize("worker", WORKERS)
def test_a_worker_understands_its_settings(worker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = worker_settings(worker, monkeypatch)
    broker = told("kafka-0")
    assert all(name.startswith(PREFIX) for name in environment(worker))
    assert settings.worker_id == worker
    assert settings.bootstrap == ",".join(f"{name}:9092" for name in BROKERS)
    assert str(settings.replication) == broker["default.replication.factor"]
    assert settings.session_timeout_ms >= int(broker["group.min.session.timeout.ms"])


@pytest.mark.parametrize("worker", WORKERS)
def test_a_worker_keeps_its_tables_in_a_volume_of_its_own(worker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ((volume, _, folder),) = [entry.partition(":") for entry in SERVICES[worker]["volumes"]]
    assert volume == worker
    assert worker in COMPOSE["volumes"]
    assert worker_settings(worker, monkeypatch).worker_folder.is_relative_to(folder)
    assert f"install -d -o cauce -g cauce {folder}\n" in DOCKERFILE  # a new volume takes this owner over


def test_no_two_workers_share_an_id_a_volume_or_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [worker_settings(worker, monkeypatch) for worker in WORKERS]
    assert len({settings.worker_id for settings in known}) == len(WORKERS)
    assert len({settings.worker_port for settings in known}) == len(WORKERS)
    assert len({volume for worker in WORKERS for volume in SERVICES[worker]["volumes"]}) == len(WORKERS)


@pytest.mark.parametrize("worker", WORKERS)
def test_a_worker_is_reached_on_its_port_from_this_machine_only(worker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = worker_settings(worker, monkeypatch)
    assert settings.worker_host == "0.0.0.0"  # noqa: S104  (of its container)
    assert SERVICES[worker]["ports"] == [f"127.0.0.1:{settings.worker_port}:{settings.worker_port}"]


@pytest.mark.parametrize("worker", WORKERS)
def test_a_worker_runs_faust_after_the_brokers_and_ends_in_peace(worker: str) -> None:
    service = SERVICES[worker]
    assert service["command"] == ["faust", "-A", "streams", "worker"]
    assert service["depends_on"] == {broker: {"condition": "service_healthy"} for broker in BROKERS}
    assert service["stop_grace_period"] == "15s"
    assert service["init"] is True


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("ready", [True, False])
def test_a_worker_is_healthy_when_readyz_says_so(worker: str, ready: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def urlopen(url: str, timeout: float) -> None:
        asked.append(url)
        if not ready:
            raise OSError("HTTP Error 503")  # as urllib does for every status that is no success

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    port = worker_settings(worker, monkeypatch).worker_port
    kind, program, option, code = SERVICES[worker]["healthcheck"]["test"]
    assert (kind, program, option) == ("CMD", "python", "-c")
    if ready:
        exec(code, {})  # noqa: S102  (what the container runs, read from our own file)
    else:
        with pytest.raises(OSError, match="503"):
            exec(code, {})  # noqa: S102
    assert asked == [f"http://127.0.0.1:{port}/readyz"]


def test_the_image_holds_every_package_of_ours() -> None:
    copied = re.findall(r"^COPY (\w+)/ (\w+)/$", DOCKERFILE, re.MULTILINE)
    assert copied == [(package, package) for package in sorted([*PACKAGES, "models"])]


def test_the_builder_is_sent_what_the_dockerfile_copies_and_no_more() -> None:
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    first, *rest = [line for line in ignore if line and not line.startswith("#")]
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert first == "*"
    sent = {line.removeprefix("!") for line in rest if line.startswith("!")}
    assert sent == {source.rstrip("/") for line in copies for source in line.split()}


def test_the_image_installs_nothing_without_a_hash() -> None:
    installs = re.findall(r"(?:pip|uv pip) install [^&\n]+|uv build [^&\n]+", DOCKERFILE.replace("\\\n", " "))
    assert len(installs) == 4
    *locked, ours = installs
    assert all("--require-hashes" in command for command in locked)
    assert "--no-deps" in ours
    assert "dist/*.whl" in ours


def test_the_image_runs_a_worker_and_not_as_root() -> None:
    _, final = DOCKERFILE.rsplit("FROM ", 1)
    assert re.findall(r"^(?:USER|CMD|ENTRYPOINT) .*$", final, re.MULTILINE) == [
        "USER cauce",
        'CMD ["faust", "-A", "streams", "worker"]',
    ]


def test_no_registry_is_named() -> None:
    for file in ("Dockerfile", "docker-compose.kafka.yml", "requirements.lock", "requirements-uv.lock"):
        assert not A_HOST.findall((ROOT / file).read_text(encoding="utf-8").replace("http://127.0.0.1", "")), file
    images = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) + [SERVICES[name]["image"] for name in SERVICES]
    assert all(re.fullmatch(r"[a-z]+(/[a-z]+)?(:[\w.-]+)?", image) for image in images), images
