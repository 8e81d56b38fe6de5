"""The manifests of infra/kubernetes are what Kubernetes understands, and say what the code says. No cluster is used."""

import os
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from cauce.process import STOPPING_SECONDS
from cauce.settings import PREFIX, Settings
from infra.service import gateway_command, worker_command

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "infra" / "kubernetes").glob("*.yaml"))
OBJECTS: list[dict[str, Any]] = [
    each for file in FILES for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))
]
PODS = {"worker": "StatefulSet", "gateway": "Deployment"}


def named(kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in OBJECTS if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def pod(role: str) -> dict[str, Any]:
    template: dict[str, Any] = named(PODS[role], f"cauce-{role}")["spec"]["template"]
    return template


def container(role: str) -> dict[str, Any]:
    (only,) = pod(role)["spec"]["containers"]
    return dict(only)


def environment(role: str) -> dict[str, str]:
    """As the process in the container sees it."""
    given: dict[str, str] = {}
    for source in container(role)["envFrom"]:
        given |= named("ConfigMap", source["configMapRef"]["name"])["data"] if "configMapRef" in source else {}
        given |= named("Secret", source["secretRef"]["name"])["stringData"] if "secretRef" in source else {}
    pod_name = f"cauce-{role}-0"
    return given | {each["name"]: each.get("value", pod_name) for each in container(role)["env"]}


@pytest.mark.parametrize("each", OBJECTS, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_every_object_fits_the_schema_of_kubernetes(each: dict[str, Any]) -> None:
    kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


def test_there_is_what_a_cluster_needs() -> None:
    kinds = sorted(f"{each['kind']} {each['metadata']['name']}" for each in OBJECTS)
    assert kinds == [
        "ConfigMap cauce",
        "Deployment cauce-gateway",
        "PodDisruptionBudget cauce-gateway",
        "PodDisruptionBudget cauce-worker",
        "Secret cauce-gateway",
        "Secret cauce-kafka-ca",
        "Secret cauce-worker",
        "Service cauce-gateway",
        "Service cauce-worker",
        "StatefulSet cauce-worker",
    ]


@pytest.mark.parametrize("role", PODS)
def test_every_variable_is_a_setting_and_its_value_is_understood(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    variables = environment(role)
    assert {name.removeprefix(PREFIX).lower() for name in variables} <= Settings.model_fields.keys()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    settings = Settings.load()
    assert settings.kafka_client()["sasl.username"] == role
    ports = [settings.worker_port] if role == "worker" else [settings.gateway_port, settings.gateway_health_port]
    assert [each["containerPort"] for each in container(role)["ports"]] == ports
    assert pod(role)["metadata"]["annotations"]["prometheus.io/port"] == str(ports[-1])


def test_a_worker_is_known_by_the_name_of_its_pod_and_keeps_its_folder() -> None:
    by_name = {each["name"]: each for each in container("worker")["env"]}
    assert by_name["CAUCE_WORKER_ID"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    (claim,) = named("StatefulSet", "cauce-worker")["spec"]["volumeClaimTemplates"]
    mounts = {each["name"]: each["mountPath"] for each in container("worker")["volumeMounts"]}
    assert by_name["CAUCE_WORKER_DATA"]["value"].startswith(mounts[claim["metadata"]["name"]])


@pytest.mark.parametrize("role", PODS)
def test_probes_ask_the_pages_of_that_name_and_a_stop_may_take_its_time(role: str) -> None:
    ours = container(role)
    *_, port = (each["name"] for each in ours["ports"])  # a gateway's last one is for health alone
    assert ours["livenessProbe"]["httpGet"] == ours["startupProbe"]["httpGet"] == {"path": "/livez", "port": port}
    assert ours["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": port}
    first = int(ours["lifecycle"]["preStop"]["exec"]["command"][1]) if "lifecycle" in ours else 0
    assert pod(role)["spec"]["terminationGracePeriodSeconds"] > first + STOPPING_SECONDS
    command = [Path(word).name for word in (worker_command() if role == "worker" else gateway_command())]
    assert ours["command"][1:] == command[1:]


@pytest.mark.parametrize("role", PODS)
def test_services_budgets_and_spreading_are_about_the_pods_of_that_role(role: str) -> None:
    labels = pod(role)["metadata"]["labels"]
    assert named("Service", f"cauce-{role}")["spec"]["selector"] == labels
    assert named("PodDisruptionBudget", f"cauce-{role}")["spec"]["selector"]["matchLabels"] == labels
    assert named(PODS[role], f"cauce-{role}")["spec"]["selector"]["matchLabels"] == labels
    (port,) = named("Service", f"cauce-{role}")["spec"]["ports"]
    assert port["targetPort"] in {each["name"] for each in container(role)["ports"]}


@pytest.mark.parametrize("role", PODS)
def test_a_pod_is_not_root_cannot_write_its_image_and_has_what_it_mounts(role: str) -> None:
    spec = pod(role)["spec"]
    assert spec["securityContext"]["runAsUser"] == 10001, "as in the Dockerfile"
    assert "--uid 10001" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert container(role)["securityContext"]["readOnlyRootFilesystem"]
    claims = named(PODS[role], f"cauce-{role}")["spec"].get("volumeClaimTemplates", [])
    known = {each["name"] for each in spec["volumes"]} | {claim["metadata"]["name"] for claim in claims}
    assert {each["name"] for each in container(role)["volumeMounts"]} == known


def test_no_secret_is_a_real_one() -> None:
    for each in OBJECTS:
        if each["kind"] == "Secret":
            values = {name: value for name, value in each["stringData"].items() if not name.endswith("USERNAME")}
            assert all(value.startswith("replace-me") for value in values.values())
