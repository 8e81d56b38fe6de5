"""openapi.json: what FastAPI cannot see in the endpoints, said beside them with the words of this file.

Invariant: every status, media type and header that an endpoint may answer with is in the schema; schemathesis asks real
gateways whether that is so (tests/strangers).
"""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI

from cauce.http_models import ProblemDetails
from gateway import tus
from gateway.problems import MEDIA_TYPE

Json = dict[str, Any]
Responses = dict[int | str, Json]

DESCRIPTION: Final = """Answers questions over CSV files that many clients upload at once.

Uploads are tus 1.0.0. HEAD is answered wherever GET is. Where a proxy lets only some methods through, a request for
an upload may carry the method that is meant in the header `X-HTTP-Method-Override`. Every refusal is a problem of
RFC 9457; /docs lists them."""
PROBLEM: Final = "#/components/schemas/ProblemDetails"
COUNT: Final = {"type": "integer", "minimum": 0}
TEXT: Final = {"type": "string"}


def header(description: str, schema: Json) -> Json:
    return {"description": description, "schema": schema}


RETRY_AFTER: Final = {"Retry-After": header("seconds after which the same request may work", COUNT)}
REFUSALS: Final[Mapping[int, str]] = {
    400: "the request cannot be understood",
    401: "there is no token, or none that is good",
    403: "the token is for something else",
    404: "there is no such thing, or not any more",
    408: "the bytes came too slowly",
    409: "not in the state that the request is for; the detail says what to do first",
    410: "its client took this upload away, or replaced it by another file",
    412: "another version of tus",
    413: "more bytes, or more files, than are taken",
    415: "another content type is wanted",
    416: "the answer has no such bytes",
    422: "a value or a file that cannot be used",
    423: "another request goes on with this upload",
    429: "too many requests, or too many of them open",
    431: "more headers than are taken",
    460: "the bytes are not those of the checksum; nothing was taken",
    500: "a fault of the gateway, which was logged",
    503: "too much at once, or Kafka does not answer, or the gateway is stopping",
}
REFUSALS_HEADERS: Final[Mapping[int, Json]] = {
    401: {"WWW-Authenticate": header("Bearer", TEXT)},
    409: {**RETRY_AFTER, "Upload-Offset": header("of a PATCH with another one: where the upload is", COUNT)},
    412: {"Tus-Version": header("what is spoken here", TEXT)},
    416: {"Content-Range": header("how many bytes the answer has", TEXT)},
    423: RETRY_AFTER,
    429: RETRY_AFTER,
    503: RETRY_AFTER,
}
# Whatever is asked may have too many headers, or meet a fault of ours.
EVERYWHERE: Final = (431, 500)
OF_A_SESSION: Final = (401, 403, 404, 429, 503)
OF_AN_UPLOAD: Final = (*OF_A_SESSION, 412)


def refusals(*statuses: int) -> Responses:
    """Returns what `responses=` of an endpoint wants to hear of its refusals."""
    return {
        status: {
            "description": REFUSALS[status],
            "headers": REFUSALS_HEADERS.get(status, {}),
            "content": {MEDIA_TYPE: {"schema": {"$ref": PROBLEM}}},
        }
        for status in statuses
    }


def body(media_type: str, description: str = "") -> Json:
    """Returns an answer that is text of this type, or bytes."""
    return {"description": description, "content": {media_type: {"schema": TEXT}}}


def event_stream(*events: str) -> Json:
    """Returns an answer of server-sent events with these names; each carries JSON."""
    data = {"type": "string", "contentMediaType": "application/json"}
    event = {"type": "object", "properties": {"event": {"enum": list(events)}, "data": data}}
    return {"content": {"text/event-stream": {"schema": event}}}


def parameter(name: str, description: str, schema: Json, *, required: bool = False) -> Json:
    """Returns a header of requests. Endpoints read these by themselves, to refuse them in tus's or HTTP's words."""
    return {"name": name, "in": "header", "description": description, "schema": schema, "required": required}


def parameters(*given: Json) -> Json:
    return {"parameters": list(given)}


NUMBER: Final = {"type": "integer", "minimum": 0, "format": "int64"}
TUS_RESUMABLE: Final = parameter("Tus-Resumable", "the version of tus", {"const": tus.VERSION}, required=True)
LENGTH: Final = {**NUMBER, "minimum": 1}
UPLOAD_LENGTH: Final = parameter("Upload-Length", "bytes of the file; this, or Upload-Defer-Length", LENGTH)
UPLOAD_DEFER_LENGTH: Final = parameter(
    "Upload-Defer-Length", "1 where the length is not known yet: a PATCH brings it", {"const": "1"}
)
LATER_LENGTH: Final = parameter("Upload-Length", "once, where it was deferred: bytes of the file", LENGTH)
UPLOAD_METADATA: Final = parameter(
    "Upload-Metadata",
    "`key BASE64,key BASE64`: filename, kind where the name does not tell it, size, mtime, fingerprint, separator",
    {
        "type": "string",
        "maxLength": tus.METADATA_LENGTH,
        "pattern": "^filename [A-Za-z0-9+/]+={0,2}(,[!-+\\--~]+( [A-Za-z0-9+/]*={0,2})?)*$",
        "examples": ["filename dXNlcnMvMS5jc3Y=,kind dXNlcnM="],
    },
    required=True,
)
UPLOAD_OFFSET: Final = parameter("Upload-Offset", "where these bytes begin in the file", NUMBER, required=True)
UPLOAD_CHECKSUM: Final = parameter(
    "Upload-Checksum",
    "of these bytes: they are taken whole or not at all",
    {"type": "string", "pattern": f"^({'|'.join(tus.ALGORITHMS)}) [A-Za-z0-9+/]+=*$"},
)
RANGE: Final = parameter("Range", "`bytes=N-`: the rest of an answer", TEXT)
IF_RANGE: Final = parameter("If-Range", "the ETag that the first bytes came with", TEXT)
IF_NONE_MATCH: Final = parameter("If-None-Match", "the ETag of what is at hand already", TEXT)
ETAG: Final = {"ETag": header("the same for the same bytes, at every gateway", TEXT)}
NOT_MODIFIED: Final[Responses] = {304: {"description": "what If-None-Match names is still right", "headers": ETAG}}

TUS_ANSWER: Final = {"Tus-Resumable": header("the version of tus", {"const": tus.VERSION})}
OFFSET_ANSWER: Final = {**TUS_ANSWER, "Upload-Offset": header("bytes that committed transactions hold", NUMBER)}
EXPIRES_ANSWER: Final = {"Upload-Expires": header("when the session ends unless something happens", TEXT)}
BYTES_OF_A_FILE: Final = {
    "required": True,
    "content": {tus.CONTENT_TYPE: {"schema": {"type": "string", "format": "binary"}}},
}
TUS_SPOKEN: Final[Responses] = {
    204: {
        "headers": {
            **TUS_ANSWER,
            "Tus-Version": header("all that are spoken", TEXT),
            "Tus-Extension": header("all that are there", TEXT),
            "Tus-Max-Size": header("bytes of the largest file that is taken", NUMBER),
            "Tus-Checksum-Algorithm": header("all that are known", TEXT),
        }
    }
}


class App(FastAPI):
    """Writes the schema with the refusals that every endpoint shares."""

    def openapi(self) -> Json:
        if self.openapi_schema is None:
            complete(super().openapi())
        assert self.openapi_schema is not None
        return self.openapi_schema


def complete(schema: Json) -> None:
    """Adds the problems; takes away FastAPI's own form of them, which is never answered."""
    schemas = schema["components"]["schemas"]
    for operation in (each for path in schema["paths"].values() for each in path.values()):
        responses = operation["responses"]
        if "application/json" in responses.get("422", {}).get("content", {}):
            del responses["422"]
        responses.update({str(status): said for status, said in refusals(*EVERYWHERE).items()})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
