"""The one place where agents, topics and tables meet Faust."""

import asyncio
from functools import cache
from typing import Any

from faust.types import ConsumerMessage, Message

from agents.courtesy import Courtesy
from agents.fold import Outgoing, fold
from agents.merge import merge
from agents.sentiment import Sentiment
from cauce import logs, tracing
from cauce.messages import SET_ASIDE, Answer, to_json
from cauce.process import refuse_taken_port
from cauce.provision import ensure_our_topics
from cauce.settings import Settings
from cauce.topics import ANSWERS, INPUTS, PARTIALS, Topic
from queries.datasets import DATASETS
from streams.exactly_once import ExactlyOnceApp
from streams.options import Options
from streams.pages import add_pages

APP = "cauce"
RAW: dict[str, Any] = {"key_type": str, "key_serializer": "raw", "value_type": bytes, "value_serializer": "raw"}


@cache
def build_app() -> ExactlyOnceApp:
    """The app of this process, from its environment."""
    return wire(Settings.load())


def wire(settings: Settings) -> ExactlyOnceApp:
    """Agents that know no query by name: what to do with a file or a partial is in the declarations."""
    tracing.start(settings.trace, settings.worker_id)
    app = CauceApp(settings)
    add_pages(app)

    topics = {topic.name: app.declared(topic, value_serializer="raw") for topic in (*INPUTS, PARTIALS, ANSWERS)}
    files = [file for dataset in DATASETS.values() for file in dataset.all_files]
    uploaded = app.topic(*(settings.topic_prefix + file.kind for file in files if not file.needs), **RAW)
    labelled = app.topic(*(settings.topic_prefix + file.kind for file in files if file.needs), **RAW)
    state = app.Table("state", partitions=settings.partitions, key_type=str, value_type=bytes)
    merges = app.Table("merges", partitions=settings.partitions, key_type=str, value_type=bytes)
    sentiment, courtesy = Sentiment(settings.models), Courtesy()

    async def send(record: Outgoing) -> None:
        await topics[record.topic].send(
            key=record.about.client_id,
            value=record.value,
            partition=record.partition,
            headers=[*record.about.headers(), *tracing.record_headers()],
        )
        if record.is_awaited:
            app.engine.hasten()

    async def send_answer(answer: Answer) -> None:
        headers = tracing.record_headers()
        await topics[ANSWERS.name].send(key=answer.client_id, value=to_json(answer), headers=headers or None)
        app.engine.hasten()

    @app.agent(uploaded, name="fold")
    async def run_fold(stream: Any) -> None:
        """Fold rows into the state of their queries."""
        await fold(stream.events(), state, DATASETS, send, sentiment.label, courtesy)

    @app.agent(labelled, name="label")
    async def run_label(stream: Any) -> None:
        """The same for rows that a model has to read first: slow, so the others do not wait for them."""
        await fold(stream.events(), state, DATASETS, send, sentiment.label, courtesy)

    @app.agent(topics[PARTIALS.name], name="merge")
    async def run_merge(stream: Any) -> None:
        """Merge what the partitions know into answers."""
        await merge(stream.events(), merges, DATASETS, settings.partitions, send_answer, send)

    return app


class CauceApp(ExactlyOnceApp):
    """Faust's app with our settings; it makes its topics before it starts anything."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        super().__init__(
            settings.topic_prefix + APP,
            options=options_from(settings),
            topic_partitions=settings.partitions,
            web_host=settings.worker_host,
            web_bind=settings.worker_host,
            web_port=settings.worker_port,
            logging_config=logs.dict_config(settings.log_level),
        )

    def declared(self, topic: Topic, **serializers: Any) -> Any:
        return self.topic(self.settings.topic_prefix + topic.name, key_type=str, **serializers)

    async def on_first_start(self) -> None:
        await super().on_first_start()
        refuse_taken_port(self.settings.worker_host, self.settings.worker_port, "CAUCE_WORKER_PORT")
        await asyncio.to_thread(ensure_our_topics, self.settings)


def options_from(settings: Settings) -> Options:
    return Options(
        worker_id=settings.worker_id,
        data=settings.worker_folder,
        kafka=settings.kafka_client(),
        replication=settings.replication,
        checkpoint_ms=settings.checkpoint_ms,
        session_timeout_ms=settings.session_timeout_ms,
        transaction_timeout_ms=settings.transaction_timeout_ms,
        store_cache_mib=settings.store_cache_mib,
        stuck_seconds=settings.stuck_seconds,
        on_poison=set_aside,
    )


def set_aside(message: Message, reason: str) -> Message:
    """The record again, with a header that tells the agents not to read it: what of whose session fails is theirs to
    say."""
    headers = [*(message.headers or []), (SET_ASIDE, reason.encode())]
    return ConsumerMessage(
        message.topic, message.partition, message.offset, message.timestamp, message.timestamp_type, headers,
        message.key, message.value, message.checksum, tp=message.tp, generation_id=message.generation_id,
    )  # fmt: skip
