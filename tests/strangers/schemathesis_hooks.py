"""What schemathesis cannot know of a gateway: what there is in it, and whose token opens it.

Most requests go to something that is there, the others to whatever was made up. A request that ends a session or
breaks an upload gets one of its own.
"""

import json
import os
import zlib
from typing import Any, Final

import httpx
import schemathesis

from tests.strangers.schemathesis_run import DATASET, GATEWAY, MADE_UP, SESSION, create_file, open_session

Json = dict[str, Any]
Case = schemathesis.Case[Any]

gateway: Final = httpx.Client(base_url=os.environ[GATEWAY], timeout=60)
KEPT: Final[Json] = json.loads(os.environ[SESSION])
THERE: Final = {"query": "coffee-q1", "kind": "users", "name": "main.js"}
USERS: Final = b"user_id,gender,birthdate,registered_at\n1,f,1990-01-01,2023-07-01\n"
CHANGES: Final = ("PATCH", "DELETE")
kept_file: Final = create_file(gateway, KEPT)
sessions: Final = {KEPT["client_id"]: KEPT}

schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: Case, kwargs: Json) -> None:
    given = case.path_parameters
    if given.get("client_id") not in sessions and not zlib.crc32(repr(given).encode()) % MADE_UP:
        return
    given.update({name: there for name, there in THERE.items() if name in given})
    if "client_id" not in given:
        return
    session = sessions.get(given["client_id"], KEPT)
    if case.method == "DELETE" and session is KEPT:
        session = open_session(gateway)
    given["client_id"] = session["client_id"]
    if case.headers.get("Authorization") == f"Bearer {KEPT['token']}":  # else a wrong one is meant
        case.headers["Authorization"] = f"Bearer {session['token']}"
    if "upload_id" in given and session["dataset"] == DATASET:
        given["upload_id"] = create_file(gateway, session) if case.method in CHANGES else kept_file
        if str(case.headers.get("Upload-Offset", "")).isdecimal():  # else nearly all end at 409
            case.headers["Upload-Offset"] = "0"
            if "Upload-Checksum" not in case.headers and isinstance(case.body, bytes) and len(case.body) % 2:
                case.body = USERS


@schemathesis.hook
def after_call(context: schemathesis.HookContext, case: Case, response: schemathesis.Response) -> None:
    """Keeps the token of each session while it is there, for requests that go on with it."""
    if (case.method, case.path, response.status_code) == ("POST", "/sessions", 201):
        session = response.json()
        sessions[session["client_id"]] = session
    elif case.method == "DELETE" and response.status_code == 204:
        sessions.pop(case.path_parameters["client_id"], None)
