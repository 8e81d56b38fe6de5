"""One trace from client to answer: W3C trace context in HTTP and in record headers, spans by OpenTelemetry.

Invariant: nothing depends on it. Off (CAUCE_TRACE unset), `span` is a context that does nothing, `headers` is empty and
OpenTelemetry is not even imported; records are then as they are without this module. Like logs, it is one a process.

    CAUCE_TRACE=http://collector:4318    spans go to an OTLP collector
    CAUCE_TRACE=file:/tmp/spans.jsonl    spans are lines of JSON; several processes may share a file
"""

# ruff: noqa: PLC0415  (OpenTelemetry belongs to the extra `trace`, and takes half a second to import)

import contextlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from cauce.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger(__name__)

VARIABLE: Final = "CAUCE_TRACE"
FILE: Final = "file:"
PARENT: Final = "traceparent"  # of W3C Trace Context: the one header that travels
NOTHING: Final = contextlib.nullcontext()


class Tracing:
    """The spans of a process that are on."""

    def __init__(self, where: str, service: str) -> None:
        try:
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError:
            raise ConfigError(
                f"{VARIABLE} is set and OpenTelemetry is not installed; `pip install cauce[trace]`, or unset it"
            ) from None
        self._provider = TracerProvider(resource=Resource({"service.name": f"cauce-{service}"}), shutdown_on_exit=False)
        self._provider.add_span_processor(_processor(where))
        self._tracer = self._provider.get_tracer("cauce")
        self._words = TraceContextTextMapPropagator()

    def span(self, name: str, carrier: Mapping[str, str | bytes], **facts: str | int) -> AbstractContextManager[Any]:
        given = carrier.get(PARENT)
        text = given.decode("ascii", "replace") if isinstance(given, bytes) else given
        parent = self._words.extract({PARENT: text}) if text else None
        return self._tracer.start_as_current_span(name, parent, attributes=facts)

    def headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        self._words.inject(found)
        return found

    def flush(self) -> None:
        self._provider.force_flush(2000)


_on: Tracing | None = None


def start(where: str | None, service: str) -> None:
    """Once a process, at its top."""
    global _on  # noqa: PLW0603 one a process, like the root logger
    if where and _on is None:
        _on = Tracing(where, service)
        log.info("tracing is on", extra={"to": where})


def start_from_environment(service: str) -> None:
    start(os.environ.get(VARIABLE), service)


def span(
    name: str, carrier: Mapping[str, str | bytes] | None = None, **facts: str | int
) -> AbstractContextManager[Any]:
    """What is done in this context, as a child of the span that the carrier's headers tell of."""
    return NOTHING if _on is None else _on.span(name, carrier or {}, **facts)


def headers() -> dict[str, str]:
    """To go along with a request: of the span that we are in."""
    return {} if _on is None else _on.headers()


def record_headers() -> list[tuple[str, bytes]]:
    """The same for a record."""
    return [] if _on is None else [(name, value.encode()) for name, value in _on.headers().items()]


def flush() -> None:
    """Send what has ended: the process is about to end, too."""
    if _on is not None:
        _on.flush()


def _processor(where: str) -> Any:
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    if where.startswith(FILE):
        return SimpleSpanProcessor(_lines(where.removeprefix(FILE)))
    if not where.startswith(("http://", "https://")):
        raise ConfigError(f"{VARIABLE}={where}: write http://collector:4318, or file:/tmp/spans.jsonl")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return BatchSpanProcessor(OTLPSpanExporter(endpoint=where.rstrip("/") + "/v1/traces"))


def _lines(path: str) -> "SpanExporter":
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(f"{VARIABLE}: {path}: {error.strerror}; choose another file") from None

    class Lines(SpanExporter):
        """A line each, in one write: lines of several processes do not mix."""

        def export(self, spans: "Sequence[ReadableSpan]") -> SpanExportResult:
            for each in spans:
                os.write(handle, (json.dumps(_told(each), ensure_ascii=False) + "\n").encode())
            return SpanExportResult.SUCCESS

    return Lines()


def _told(span: "ReadableSpan") -> dict[str, Any]:
    began, ended = span.start_time or 0, span.end_time or 0
    return {
        "trace_id": f"{span.context.trace_id:032x}",
        "span_id": f"{span.context.span_id:016x}",
        "parent_id": f"{span.parent.span_id:016x}" if span.parent else None,
        "service": span.resource.attributes["service.name"],
        "name": span.name,
        "began_at": began / 1e9,
        "seconds": (ended - began) / 1e9,
        **dict(span.attributes or {}),
    }
