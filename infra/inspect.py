"""`cauce inspect`: what is on a topic, in words. Batches are decoded, control records and JSON are shown as they are.

It reads committed records only, joins no group and commits nothing: looking changes nothing.
"""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from cauce.errors import BrokerUnavailable, CauceError, ConfigError
from cauce.messages import About, decode
from cauce.settings import Settings

REQUEST_SECONDS: Final = 10.0
ROWS_SHOWN: Final = 3
LONGEST: Final = 160  # characters of a value on a line


@dataclass(frozen=True, slots=True)
class Seen:
    """One record, made readable."""

    topic: str
    partition: int
    offset: int
    at: float  # seconds since 1970
    key: str
    headers: Mapping[str, str]
    value: Any  # rows as a list of dictionaries, JSON, text, or None for a tombstone

    def line(self) -> str:
        when = time.strftime("%H:%M:%S", time.localtime(self.at))
        return f"{when} {self.topic}-{self.partition}@{self.offset} {self.key} {self._what()}"

    def _what(self) -> str:
        if self.value is None:
            return "tombstone"
        text = json.dumps(self.value, ensure_ascii=False)
        short = text if len(text) <= LONGEST else text[:LONGEST] + " …"
        if not self.headers:
            return short
        return f"{self.headers['kind']} of {self.headers['subject']}, {self.headers['rows']} rows: {short}"

    def as_json(self) -> str:
        fields = {
            name: getattr(self, name) for name in ("topic", "partition", "offset", "at", "key", "headers", "value")
        }
        return json.dumps(fields, ensure_ascii=False)


def inspect(settings: Settings, topic: str, client_id: str | None, last: int, follow: bool) -> Iterator[Seen]:
    """The last records of each partition, then, if asked to follow, what comes; only of one client, if it is given."""
    kept = (seen for seen in read(settings, topic, last, follow) if client_id is None or belongs(seen, client_id))
    with contextlib.closing(kept):
        yield from kept


def read(settings: Settings, topic: str, last: int, follow: bool) -> Iterator[Seen]:
    options = {"group.id": "cauce-inspect", "enable.auto.commit": False, "isolation.level": "read_committed"}
    consumer = Consumer({**settings.kafka_client(), **options, "enable.partition.eof": True, "log_level": 0})
    try:
        waiting = start(consumer, settings.topic_prefix + topic, last)
        while waiting or follow:
            message = consumer.poll(0.5)
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield readable(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                waiting.discard(message.partition())
            else:
                raise CauceError(f"topic {topic}: {error.str()}")
    finally:
        consumer.close()


def start(consumer: Consumer, topic: str, last: int) -> set[int]:
    """Assign every partition, so many records before its end; which partitions there are."""
    try:
        found = consumer.list_topics(topic, REQUEST_SECONDS).topics[topic]
        if found.error is not None:
            known = consumer.list_topics(timeout=REQUEST_SECONDS).topics
            names = ", ".join(sorted(name for name in known if not name.startswith("__")))
            raise ConfigError(f"there is no topic {topic}; there are {names or 'none'}")
        places = []
        for number in found.partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), REQUEST_SECONDS)
            places.append(TopicPartition(topic, number, max(low, high - last) if last else OFFSET_BEGINNING))
    except KafkaException as error:
        raise BrokerUnavailable(
            f"Kafka does not answer: {error.args[0].str()}; is it running? `cauce status`"
        ) from None
    consumer.assign(places)
    return set(found.partitions)


def readable(message: Message) -> Seen:
    headers = {name: (value or b"").decode(errors="replace") for name, value in headers_of(message)}
    value = message.value()
    return Seen(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        (message.timestamp()[1] or 0) / 1000,
        (message.key() or b"").decode(errors="replace"),
        headers,
        None if value is None else content(headers, value),
    )


def headers_of(message: Message) -> list[tuple[str, bytes | None]]:
    headers: Any = message.headers()  # a list of pairs, or None
    return headers or []


def content(headers: Mapping[str, str], value: bytes) -> Any:
    """Rows of a batch or a partial, the first few; else JSON; else text."""
    if headers.get("kind") in ("batch", "partial"):
        about = About.read({name: text.encode() for name, text in headers.items()})
        rows = decode(value).slice(0, ROWS_SHOWN).to_pylist()
        return rows if about.rows <= ROWS_SHOWN else [*rows, "…"]
    try:
        return json.loads(value)
    except ValueError:
        return f"{len(value)} bytes"


def belongs(seen: Seen, client_id: str) -> bool:
    return seen.key == client_id or seen.key.startswith(f"{client_id}/")
