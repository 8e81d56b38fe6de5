"""openapi.json: valid, and it says all that a client has to know of every request."""

from typing import Any

import pytest
from openapi_spec_validator import validate

from cauce.settings import Settings
from gateway import problems
from gateway.app import build

METHODS = {"get", "head", "post", "put", "patch", "delete", "options"}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return build(Settings.load(secret="a secret for tests only")).openapi()


def operations(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    paths = schema["paths"].items()
    return [(f"{method} {path}", operation) for path, methods in paths for method, operation in methods.items()]


def test_it_is_valid(schema: dict[str, Any]) -> None:
    validate(schema)
    assert {method for methods in schema["paths"].values() for method in methods} <= METHODS


def test_every_parameter_of_a_path_is_declared(schema: dict[str, Any]) -> None:
    for name, operation in operations(schema):
        declared = {each["name"] for each in operation.get("parameters", []) if each["in"] == "path"}
        assert {f"{{{each}}}" for each in declared} == {part for part in name.split("/") if part.startswith("{")}, name


def test_whatever_wants_a_token_says_so(schema: dict[str, Any]) -> None:
    assert set(schema["components"]["securitySchemes"]) == {"session", "operator", "ticket"}
    open_to_all = {name for name, operation in operations(schema) if "security" not in operation}
    assert {name for name in open_to_all if "session" in name or "operator" in name} == {
        "post /sessions",
        "options /sessions/{client_id}/uploads",
        "options /sessions/{client_id}/uploads/{upload_id}",
    }
    for name, operation in operations(schema):
        assert ("security" in operation) is ("401" in operation["responses"]), name


def test_every_refusal_is_a_problem(schema: dict[str, Any]) -> None:
    for name, operation in operations(schema):
        for status, response in operation["responses"].items():
            if status >= "400" and (name, status) != ("get /readyz", "503"):
                assert list(response["content"]) == [problems.MEDIA_TYPE], (name, status)
    assert "HTTPValidationError" not in schema["components"]["schemas"]


def test_every_json_answer_has_a_model(schema: dict[str, Any]) -> None:
    for name, operation in operations(schema):
        for status, response in operation["responses"].items():
            answered = response.get("content", {}).get("application/json")
            assert answered is None or "$ref" in answered["schema"], (name, status)


def test_tus_headers_are_there(schema: dict[str, Any]) -> None:
    uploads, upload = "/sessions/{client_id}/uploads", "/sessions/{client_id}/uploads/{upload_id}"
    wanted = {
        ("post", uploads): {"Tus-Resumable", "Upload-Length", "Upload-Metadata"},
        ("head", upload): {"Tus-Resumable"},
        ("patch", upload): {"Tus-Resumable", "Upload-Offset", "Upload-Checksum"},
        ("delete", upload): {"Tus-Resumable"},
    }
    for (method, path), names in wanted.items():
        operation = schema["paths"][path][method]
        assert names <= {each["name"] for each in operation["parameters"] if each["in"] == "header"}
        (answered,) = (each for status, each in operation["responses"].items() if status[0] == "2")
        assert method == "delete" or "Upload-Offset" in answered["headers"]
    assert list(schema["paths"][upload]["patch"]["requestBody"]["content"]) == ["application/offset+octet-stream"]
