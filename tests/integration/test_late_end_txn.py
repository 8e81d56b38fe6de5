"""A request that ended a transaction arrives for the second time in the middle of the next one.

Without the guard the next transaction is torn: the control runs show that the proxy does what it is there for.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from cauce import kafka as kafka_settings
from cauce.errors import CauceError, Fenced, IllegalMove
from cauce.messages import decode
from cauce.provision import WantedTopic, ensure_topics
from cauce.settings import Settings
from gateway.publish import Publisher, Record
from infra.cluster import Cluster
from infra.layout import Node
from infra.ports import Ports
from infra.processes import wait_until
from queries.model import rows_in
from rig.frame_proxy import END_TXN, FrameProxy
from streams.transaction import Transaction
from tests.integration.gateway.reading import Topics, ratings
from tests.integration.gateway.replica import Replica

pytestmark = pytest.mark.kafka

SECONDS = 20.0
REFUSED = {47, 90}  # INVALID_PRODUCER_EPOCH, PRODUCER_FENCED


@pytest.fixture(scope="module")
def proxies() -> Iterator[list[FrameProxy]]:
    made: list[FrameProxy] = []
    yield made
    for proxy in made:
        proxy.close()


@pytest.fixture(scope="module")
def client(proxies: list[FrameProxy], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """How to reach a broker that can only be reached through a proxy."""

    def through_a_proxy(node: Node) -> Mapping[str, str]:
        proxies.append(FrameProxy(node.port))
        return {"advertised.listeners": f"BROKER://127.0.0.1:{proxies[0].port}"}

    kafka = Cluster(tmp_path_factory.mktemp("kafka"), brokers=1, heap="256m", more=through_a_proxy)
    kafka.start()
    yield {"bootstrap.servers": f"127.0.0.1:{proxies[0].port}"}
    kafka.stop(seconds=0)


@pytest.fixture
def ports() -> Iterator[Ports]:
    ports = Ports(Settings.load().cache / "ports")
    yield ports
    ports.release()


@pytest.fixture
def topic(client: dict[str, str], prefix: str) -> str:
    ensure_topics(client, [WantedTopic(prefix + "out", 1, {})], None)
    return prefix + "out"


def send(transaction: Transaction, topic: str, *values: str) -> None:
    transaction.begin()
    for value in values:
        transaction.produce(topic, b"key", value.encode(), lambda error, message: None)
    transaction.flush()


def committed(client: dict[str, str], topic: str) -> list[str]:
    own = {"group.id": "reader", "isolation.level": "read_committed", "enable.partition.eof": True}
    reader = Consumer({**client, **own, "enable.auto.commit": False})
    reader.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    while (message := reader.poll(SECONDS)) is not None and message.error() is None:
        value = message.value()
        assert value is not None
        values.append(value.decode())
    reader.close()
    return values


def with_a_late_request(client: dict[str, str], topic: str, proxy: FrameProxy) -> Transaction:
    """A worker's transactions; the first has committed, and the request that did it first is still on its way."""
    transaction = Transaction(client, f"{topic}-worker", 20_000, lambda tp: "")
    transaction.initialise()
    send(transaction, topic, "A")
    before = proxy.requests.get(END_TXN, 0)
    proxy.keep_next(END_TXN)
    transaction.commit()
    assert proxy.requests[END_TXN] == before + 2, "the library did not send it again: this shows nothing"
    return transaction


def test_a_late_request_does_not_end_the_next_transaction_of_a_worker(
    client: dict[str, str], topic: str, proxies: list[FrameProxy]
) -> None:
    transaction = with_a_late_request(client, topic, proxies[0])
    assert transaction.needs_renewal
    with pytest.raises(IllegalMove, match="may be on its way"):
        transaction.begin()
    transaction.renew()
    send(transaction, topic, "B")
    assert proxies[0].deliver() in REFUSED
    transaction.abort(SECONDS)
    send(transaction, topic, "C")
    transaction.commit()
    transaction.close()
    assert committed(client, topic) == ["A", "C"]


def test_without_a_new_epoch_it_does(client: dict[str, str], topic: str, proxies: list[FrameProxy]) -> None:
    """The control: what Kafka and librdkafka do by themselves."""
    transaction = with_a_late_request(client, topic, proxies[0])
    transaction.needs_renewal = False
    send(transaction, topic, "B")
    assert proxies[0].deliver() == 0
    with pytest.raises(CauceError):
        transaction.abort(SECONDS)
    transaction.close()
    assert committed(client, topic) == ["A", "B"], "nothing was torn: is the guard still needed?"


def test_a_quick_commit_needs_no_new_epoch(client: dict[str, str], topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.transaction.SENT_ONCE_SECONDS", SECONDS)
    transaction = Transaction(client, f"{topic}-worker", 20_000, lambda tp: "")
    transaction.initialise()
    for value in ("A", "B"):
        send(transaction, topic, value)
        transaction.commit()
        assert not transaction.needs_renewal
    transaction.close()
    assert committed(client, topic) == ["A", "B"]


def test_who_takes_the_id_over_fences_a_producer_that_was_renewed(client: dict[str, str], topic: str) -> None:
    transaction = Transaction(client, f"{topic}-worker", 20_000, lambda tp: "")
    transaction.initialise()
    transaction.renew()
    heir = Transaction(client, f"{topic}-worker", 20_000, lambda tp: "")
    heir.initialise()
    with pytest.raises(Fenced):
        send(transaction, topic, "A")
    for each in (transaction, heir):
        each.close()


def spent(client: dict[str, str], topic: str, proxy: FrameProxy) -> Publisher:
    """A gateway's producer; its only transaction has committed, and the request that did it first is on its way."""
    publisher = Publisher.take_over(client, f"{topic}-upload")
    proxy.keep_next(END_TXN)
    publisher.publish([Record(topic, 0, "key", b"A")], [])
    assert publisher.is_spent
    return publisher


def publish_and_break_off(publisher: Publisher, topic: str, proxy: FrameProxy) -> int:
    """Sends a record, lets the late request arrive, and aborts. Returns the broker's answer to that request."""
    codes: list[int] = []

    def late(code: int) -> Record:
        codes.append(code)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        publisher.publish([Record(topic, 0, "key", b"B")], (late(proxy.deliver()) for _ in "B"))
    return codes[0]


def test_a_late_request_does_not_end_the_next_transaction_of_a_gateway(
    client: dict[str, str], topic: str, proxies: list[FrameProxy]
) -> None:
    publisher = spent(client, topic, proxies[0])
    with pytest.raises(IllegalMove, match="may be on its way"):
        publisher.publish([], [])
    again = Publisher.take_over(client, publisher.id)
    publisher.close()
    assert publish_and_break_off(again, topic, proxies[0]) in REFUSED
    again.close()
    assert committed(client, topic) == ["A"]


def test_without_a_new_epoch_it_ends_that_of_a_gateway_too(
    client: dict[str, str], topic: str, proxies: list[FrameProxy]
) -> None:
    publisher = spent(client, topic, proxies[0])
    publisher.is_spent = False
    assert publish_and_break_off(publisher, topic, proxies[0]) == 0
    publisher.close()
    assert committed(client, topic) == ["A", "B"], "nothing was torn: is the guard still needed?"


def test_an_upload_goes_on_behind_a_commit_whose_request_is_late(
    client: dict[str, str], prefix: str, proxies: list[FrameProxy], ports: Ports, tmp_path: Path
) -> None:
    proxy, data = proxies[0], ratings(60_000)
    settings = {
        "CAUCE_BOOTSTRAP": client["bootstrap.servers"],
        "CAUCE_TOPIC_PREFIX": prefix,
        "CAUCE_PARTITIONS": "2",
        "CAUCE_HOME": str(tmp_path),
    }
    with Replica(ports.take(), tmp_path / "gateway.log", settings) as replica:
        visit = replica.open()
        location = visit.create("ratings.csv", len(data))

        def taken(offset: int) -> None:
            wait_until(lambda: visit.committed(location) >= offset, seconds=60, otherwise="it is not committed")

        def pieces() -> Iterator[bytes]:
            third = len(data) // 3
            yield data[:third]
            taken(third)
            proxy.keep_next(END_TXN)
            yield data[third : 2 * third]
            taken(2 * third)
            assert proxy.has_kept
            yield data[2 * third :]

        assert visit.patch(location, 0, pieces()).status_code == 204
        assert proxy.deliver() in REFUSED
        assert "the upload is taken over again" in replica.log_file.read_text()
        (upload,) = visit.show()["uploads"]
        topics = Topics(client["bootstrap.servers"], prefix, 2)
        assert (upload["state"], upload["rows"]) == ("complete", 60_000)
        records = [each for each in topics.records("ratings", visit.client_id) if each.about.kind == "batch"]
        assert sum(rows_in(decode(each.value)) for each in records) == 60_000 - upload["unused"]


def test_the_library_waits_as_long_as_the_guard_takes_for_granted() -> None:
    backoff_seconds = kafka_settings.PRODUCER["retry.backoff.ms"] / 1000
    assert 0.8 * backoff_seconds >= kafka_settings.SENT_ONCE_SECONDS
