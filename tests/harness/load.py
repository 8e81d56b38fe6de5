"""The input of a kill test: numbers from 0 on, each sent once, in pieces or as a constant load."""

import threading
import time
from types import TracebackType
from typing import Final, Self

from confluent_kafka import IsolationLevel, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # it re-exports them

from cauce.errors import BrokerUnavailable
from cauce.kafka import Ends
from tests.harness.fleet import wait_for
from tests.harness.plan import Plan, first_key

REQUEST_SECONDS: Final = 60
TICK_SECONDS: Final = 0.02


def create_topics(plan: Plan, names: tuple[str, ...] = ("in", "mid", "out")) -> None:
    """The three that the app does not make by itself."""
    copies = len(plan.bootstrap.split(","))
    admin = AdminClient({"bootstrap.servers": plan.bootstrap})
    wanted = [NewTopic(plan.topic(name), plan.partitions, copies) for name in names]
    for future in admin.create_topics(wanted, operation_timeout=REQUEST_SECONDS).values():
        future.result(REQUEST_SECONDS)
    _wait_until_served(plan, [topic.topic for topic in wanted])


def _wait_until_served(plan: Plan, topics: list[str]) -> None:
    """Until every leader answers. A leader that learns of its partition between two requests of an idempotent producer
    takes the second for the first, and the first is lost without an error: an input that the truth would miss."""
    ends = Ends({"bootstrap.servers": plan.bootstrap})
    places = [(topic, number) for topic in topics for number in range(plan.partitions)]

    def served() -> bool:
        try:
            ends.of(places, IsolationLevel.READ_UNCOMMITTED)
        except BrokerUnavailable:
            return False
        return True

    wait_for(served, REQUEST_SECONDS, f"{topics} have partitions that nobody leads")


class Load:
    """`sent` numbers are in Kafka once `send` has returned; idempotent, so a broker's death doubles none of them."""

    def __init__(self, plan: Plan) -> None:
        self.sent = 0
        self._topic = plan.topic("in")
        self._producer = Producer(
            {
                "bootstrap.servers": plan.bootstrap,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 5,
                "topic.metadata.refresh.interval.ms": 1000,  # who leads when a broker has died; 5 minutes by default
                "log_level": 0,
            }
        )

    def send(self, count: int) -> None:
        self._produce(count)
        self._flush()

    def _produce(self, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            self._producer.produce(self._topic, b"%d" % number, first_key(number), on_delivery=_must_arrive)
        self.sent += count
        self._producer.poll(0)

    def _flush(self) -> None:
        left = self._producer.flush(120)
        assert left == 0, f"{left} input records were not acknowledged: the test has no input to check against"


class ConstantLoad(Load):
    """`with ConstantLoad(plan, a_second=300) as load:` sends until the block is left."""

    def __init__(self, plan: Plan, a_second: int) -> None:
        super().__init__(plan)
        self._a_second = a_second
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def _run(self) -> None:
        started = time.monotonic()
        while not self._ending.wait(TICK_SECONDS):
            due = int((time.monotonic() - started) * self._a_second)
            if due > self.sent:
                self._produce(due - self.sent)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        self._flush()


def _must_arrive(error: object, _message: object) -> None:
    assert error is None, f"an input record was not acknowledged: {error}"
