"""Asks a gateway whatever openapi.json allows, and what it does not, by schemathesis' own command."""

import base64
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx

ROOT: Final = Path(__file__).parents[2]
GATEWAY: Final = "TRIED_GATEWAY"  # variables that tell the hooks whom they ask
SESSION: Final = "TRIED_SESSION"
DATASET: Final = "coffee"
MADE_UP: Final = 8  # one request of so many goes to what is not there
FILE_BYTES: Final = 1 << 20
numbers: Final[Iterator[int]] = itertools.count(1)

# Each exception is narrow and has its reason; no check is switched off.
CONFIGURATION: Final = """
hooks = "tests.strangers.schemathesis_hooks"
request-timeout = 30.0
max-stream-events = 2  # event streams never end by themselves

[auth.openapi]
operator.bearer = "{operator}"
session.bearer = "{session}"

# tus wants 412 for another version or none; RFC 9110 has 413 and 431 for what is too big.
[checks]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 429, 431]
missing_required_header.expected-statuses = [400, 401, 403, 412, 415, 422]

# Which models and queries there are is the operator's and the dataset's affair.
[[operations]]
include-name = "POST /sessions"
checks.positive_data_acceptance.expected-statuses = [201, 422]

# A schema cannot say what the base64 of a name has to hold, which kinds a dataset has, or how long a file may be.
[[operations]]
include-name = "POST /sessions/{{client_id}}/uploads"
checks.positive_data_acceptance.expected-statuses = [201, 400, 403, 404, 409, 413, 422]
generation.allow-extra-parameters = false  # HTTP wants headers ignored that a server does not know

# Nor how many bytes an answer has, of which Range wants some.
[[operations]]
include-name = "GET /sessions/{{client_id}}/answers/{{query}}"
checks.positive_data_acceptance.expected-statuses = [200, 206, 304, 403, 404, 409, 416]

# Nor that the bytes are CSV, the offset is where the upload is, and the checksum is that of the bytes.
[[operations]]
include-name = "PATCH /sessions/{{client_id}}/uploads/{{upload_id}}"
checks.positive_data_acceptance.expected-statuses = [204, 400, 403, 404, 409, 413, 422, 460]
generation.allow-extra-parameters = false  # as above
"""


def open_session(gateway: httpx.Client) -> dict[str, Any]:
    """Returns a session whose users come in a folder, so it may have any number of uploads."""
    opened: dict[str, Any] = gateway.post("/sessions", json={"dataset": DATASET}).raise_for_status().json()
    return opened


def create_file(gateway: httpx.Client, session: dict[str, Any]) -> str:
    """Returns the id of an upload that nobody has written to."""
    name = base64.b64encode(f"users/there/{next(numbers)}.csv".encode()).decode()
    headers = {
        "Authorization": f"Bearer {session['token']}",
        "Tus-Resumable": "1.0.0",
        "Upload-Length": str(FILE_BYTES),
        "Upload-Metadata": f"filename {name},kind dXNlcnM=",
    }
    created = gateway.post(session["uploads"], headers=headers).raise_for_status()
    return str(created.headers["Location"]).rpartition("/")[2]


def run(
    gateway: str, operator: str, session: dict[str, Any], folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Returns what the command said; it exits with 0 when nothing was found. The same seed asks the same."""
    file = folder / "schemathesis.toml"
    file.write_text(CONFIGURATION.format(operator=operator, session=session["token"]))
    command = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(file), "run"]
    command += [f"{gateway}/openapi.json", "--no-color", "--generation-database", "none", *arguments]
    told = {GATEWAY: gateway, SESSION: json.dumps(session), "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env={**os.environ, **told}, capture_output=True, text=True, check=False)
