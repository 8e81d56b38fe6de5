"""A real Apache Kafka on this machine: one or three brokers that live as long as this object, and whose data stays.

Invariant: leaving the `with` block, a raised error, Ctrl-C and SIGKILL of this process all leave nothing running.
"""

import contextlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cauce.errors import BrokerUnavailable, ConfigError
from cauce.settings import Settings
from infra.broker import LOG4J, STOP_SECONDS, Broker
from infra.jars import class_path, ensure_jars
from infra.java import find_java
from infra.layout import (
    SIZES,
    Layout,
    Node,
    format_brokers,
    new_uuid,
    read_layout,
    server_properties,
    write_layout,
    write_properties,
)
from infra.ports import Ports
from infra.processes import POLL_SECONDS, Spawner, accepts

READY_SECONDS = 90  # about 7 s here; a loaded machine that recovers logs after a kill needs many times that
# Three brokers on two cores, one run each: ready in 7 s; 10 s with the second compiler, 13 s with that and G1.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms64m")
END_EARLY = "-XX:+ExitOnOutOfMemoryError"  # a broker without memory answers no more and does not end by itself


class Cluster:
    """`with Cluster(home) as cluster:` starts it, waits until it is ready, and stops it."""

    def __init__(
        self,
        home: Path,
        brokers: int = 3,
        heap: str = "384m",
        cache: Path | None = None,
        more: Callable[[Node], Mapping[str, str]] = lambda node: {},
    ) -> None:
        """`more`: properties of a broker beside ours, or in their place."""
        if brokers not in SIZES:
            raise ConfigError(f"{brokers} brokers: a cluster has 1, or 3 to survive the loss of one")
        if not re.fullmatch(r"[1-9]\d*[mgMG]", heap):
            raise ConfigError(f"heap {heap!r}: write it as Java does, for example 384m or 1g")
        self.home = home.absolute()
        self._folder = self.home / "brokers"
        self._size = brokers
        self._heap = heap
        self._more = more
        self._cache = cache or Settings.load().cache
        self._ports = Ports(self._cache / "ports")
        self._spawner: Spawner | None = None
        self._java: list[str] = []
        self.brokers: tuple[Broker, ...] = ()

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """All brokers up and ready, or an error and none of them running."""
        try:
            self.launch()
            self.wait_ready()
        except BaseException:
            self.stop(seconds=0)
            raise

    def launch(self) -> None:
        """Start the processes; `wait_ready` waits for them. Whoever calls this alone calls `stop` whatever happens."""
        self.prepare()
        self._java = self.java()
        self._spawner = Spawner()
        for broker in self.brokers:
            broker.start(self._spawner, self._java)

    def prepare(self) -> None:
        """Everything but the processes: identity, ports, formatted folders, settings."""
        java, jars = find_java(), class_path(ensure_jars(self._cache))
        try:
            layout = self._make_layout()
            format_brokers(self._folder, layout, java, jars)
            for node in layout.nodes:
                properties = {**server_properties(layout, node), **self._more(node)}
                write_properties(self._folder / str(node.id) / "server.properties", properties)
        except OSError as error:
            raise ConfigError(f"{error.filename}: {error.strerror}; choose another --home") from None
        self._set_brokers(layout)

    def adopt(self) -> None:
        """The brokers as they were prepared, whether they run or not."""
        layout = read_layout(self._folder)
        if layout is None:
            raise ConfigError(f"{self.home} holds no brokers any more; `cauce down`, then `cauce up`")
        for node in layout.nodes:
            self._ports.hold(node.port)
            self._ports.hold(node.controller_port)
        self._set_brokers(layout)

    def _set_brokers(self, layout: Layout) -> None:
        self.brokers = tuple(Broker(node, self._folder / str(node.id)) for node in layout.nodes)

    def java(self) -> list[str]:
        """What starts a broker in its folder."""
        jars = class_path(ensure_jars(self._cache))
        logs = f"-Dlog4j2.configurationFile={LOG4J.as_uri()}"
        return [find_java(), f"-Xmx{self._heap}", *QUICK_START, END_EARLY, logs, "-cp", jars]

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End every broker, all at once: one after another the last would wait minutes for a controller that is gone.

        The last controller waits 5 s for the others all the same; once its data is closed we do not wait with it.
        """
        try:
            for broker in self.brokers:
                broker.ask_to_stop()
            deadline = time.monotonic() + seconds
            while (left := [broker for broker in self.brokers if broker.alive]) and time.monotonic() < deadline:
                if len(left) == 1 < len(self.brokers) and left[0].data_closed:
                    break
                time.sleep(POLL_SECONDS)
        finally:
            for broker in self.brokers:
                broker.kill()
            if self._spawner is not None:
                self._spawner.close()
                self._spawner = None
            self._ports.release()

    def broker(self, number: int) -> Broker:
        for broker in self.brokers:
            if broker.id == number:
                return broker
        raise ConfigError(f"there is no broker {number}; running are {', '.join(str(b.id) for b in self.brokers)}")

    def kill(self, number: int) -> None:
        """SIGKILL; returns when the process is gone."""
        self.broker(number).kill()

    def stop_broker(self, number: int) -> None:
        """A clean stop; returns when the process is gone."""
        broker = self.broker(number)
        broker.ask_to_stop()
        broker.wait_stopped()

    def start_broker(self, *numbers: int) -> None:
        """Start them again on their data and ports; returns when the cluster counts on them."""
        brokers = [self.broker(number) for number in numbers]
        assert self._spawner is not None, "the cluster was never started"
        for broker in brokers:
            broker.start(self._spawner, self._java)
        self.wait_ready(brokers)

    def pause(self, number: int) -> None:
        self.broker(number).pause()

    def resume(self, number: int) -> None:
        self.broker(number).resume()

    def wait_ready(self, brokers: Sequence[Broker] | None = None, seconds: float = READY_SECONDS) -> None:
        """Wait until these brokers (by default all) are members of a cluster with a controller."""
        wanted = self.brokers if brokers is None else brokers
        deadline = time.monotonic() + seconds
        self._wait_for_ports(wanted, deadline)
        while not counted_on(wanted):
            self._check(wanted, deadline, "does not join the cluster")

    def wait_in_sync(self, seconds: float = READY_SECONDS) -> None:
        """Wait until every partition of every topic has a leader and all of its copies."""
        admin = _admin(self.bootstrap)
        deadline = time.monotonic() + seconds
        while missing := _behind(admin):
            self._check((), deadline, f"copies are missing of {', '.join(missing[:5])}")

    def _wait_for_ports(self, brokers: Sequence[Broker], deadline: float) -> None:
        for broker in brokers:
            while not accepts(broker.port):
                self._check(brokers, deadline, f"port {broker.port} does not open")

    def _check(self, brokers: Sequence[Broker], deadline: float, complaint: str) -> None:
        for broker in brokers:
            broker.raise_if_dead()
        if time.monotonic() > deadline:
            raise BrokerUnavailable(f"Kafka in {self.home}: {complaint}; the logs are in {self._folder}/*/logs")
        time.sleep(POLL_SECONDS)

    def _make_layout(self) -> Layout:
        """The identity kept in the home, or a new one; each port as it was if it is free."""
        kept = read_layout(self._folder)
        if kept is not None and len(kept.nodes) != self._size:
            raise ConfigError(
                f"{self.home} holds a cluster of {len(kept.nodes)} and {self._size} were asked for; "
                f"use --brokers {len(kept.nodes)} or another --home"
            )
        nodes = []
        for number in range(self._size):
            (self._folder / str(number)).mkdir(parents=True, exist_ok=True)
            was = kept.nodes[number] if kept else None
            port, controller_port = (was.port, was.controller_port) if was else (None, None)
            nodes.append(Node(number, self._ports.take(port), self._ports.take(controller_port)))
        layout = Layout(kept.cluster_id if kept else new_uuid(), tuple(nodes))
        write_layout(self._folder, layout)
        return layout


def counted_on(brokers: Sequence[Broker]) -> bool:
    """Whether all of these are members of a cluster with a controller."""
    return members(",".join(broker.address for broker in brokers)) >= {broker.id for broker in brokers}


def members(bootstrap: str) -> set[int]:
    """Ids of the brokers that the cluster counts on; none while it has no controller or does not answer."""
    from confluent_kafka import KafkaException  # noqa: PLC0415

    admin = _admin(bootstrap)
    with contextlib.suppress(KafkaException, TimeoutError):
        seen = admin.describe_cluster(request_timeout=2).result(timeout=5)
        return {node.id for node in seen.nodes} if seen.controller is not None else set()
    return set()


def behind(bootstrap: str) -> list[str]:
    """Partitions that have no leader or miss copies."""
    return _behind(_admin(bootstrap))


def _admin(bootstrap: str) -> Any:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415  (only what talks to a cluster loads it)

    quiet = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}
    return AdminClient({"bootstrap.servers": bootstrap, **quiet})


def _behind(admin: Any) -> list[str]:
    from confluent_kafka import KafkaException  # noqa: PLC0415

    try:
        topics = admin.list_topics(timeout=5).topics
    except KafkaException as error:
        return [f"an unknown number of partitions ({error})"]
    return [
        f"{name}-{number}"
        for name, topic in topics.items()
        for number, partition in topic.partitions.items()
        if partition.leader < 0 or len(partition.isrs) < len(partition.replicas)
    ]
