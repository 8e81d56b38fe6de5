"""What a gateway tells Prometheus."""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from cauce.messages import Upload

METHODS: Final = ("GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS")
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counts what happened; what is true now is read when somebody asks."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)  # its memory, and how many files are and may be open
        self._requests = Counter(
            "cauce_gateway_requests", "answers given", ["method", "status"], registry=self._registry
        )
        self._bytes = Counter("cauce_gateway_committed_bytes", "of files", ["kind"], registry=self._registry)
        self._rows = Counter("cauce_gateway_rows", "read from files", ["kind"], registry=self._registry)
        self._rejected = Counter("cauce_gateway_rejected_rows", "of these", ["kind"], registry=self._registry)
        self._unused = Counter(
            "cauce_gateway_unused_rows", "of these, what no query uses", ["kind"], registry=self._registry
        )
        self._commits = Counter("cauce_gateway_commits", "transactions of uploads", registry=self._registry)
        self.commit_seconds = Histogram(
            "cauce_gateway_commit_seconds", "begin to visible", buckets=SECONDS, registry=self._registry
        )
        self.failures = Counter(
            "cauce_gateway_failures", "requests that Kafka or another holder ended", ["error"], registry=self._registry
        )
        self.ended = Counter("cauce_gateway_ended_sessions", "deleted or expired", registry=self._registry)

    def answered(self, method: str, status: int) -> None:
        known = method if method in METHODS else "other"  # a client may make up any number of them
        self._requests.labels(known, str(status)).inc()

    def now(self, name: str, help_text: str, value: Callable[[], float]) -> None:
        self._registry.register(Now(name, help_text, value))

    def committed(self, before: Upload, after: Upload) -> None:
        self._commits.inc()
        # Of a file whose header is refused nothing is kept: its offset falls to 0.
        self._bytes.labels(after.file).inc(max(0, after.offset - before.offset))
        self._rows.labels(after.file).inc(after.rows - before.rows)
        self._rejected.labels(after.file).inc(sum(after.rejected.values()) - sum(before.rejected.values()))
        self._unused.labels(after.file).inc(after.unused - before.unused)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class Now(Collector):
    def __init__(self, name: str, help_text: str, value: Callable[[], float]) -> None:
        self._name, self._help, self._value = name, help_text, value

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily(self._name, self._help, value=float(self._value()))
