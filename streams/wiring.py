"""The one place where agents, topics and tables meet Faust."""

import asyncio
import socket
from functools import cache
from typing import Any

from agents.tally import tally
from cauce import logs
from cauce.errors import ConfigError
from cauce.provision import WantedTopic, ensure_topics
from cauce.settings import Settings
from cauce.topics import BATCHES, TALLIES, TOPICS, Topic
from streams.exactly_once import ExactlyOnceApp
from streams.options import Options
from streams.pages import add_pages

APP = "cauce"


@cache
def build_app() -> ExactlyOnceApp:
    """The app of this process, from its environment."""
    return wire(Settings.load())


def wire(settings: Settings) -> ExactlyOnceApp:
    app = CauceApp(settings)
    add_pages(app)

    batches = app.declared(BATCHES, value_serializer="raw")
    tallies = app.declared(TALLIES)
    table = app.Table("tally", partitions=settings.partitions, key_type=str)

    @app.agent(batches, name="tally")
    async def run_tally(stream: Any) -> None:
        """Count batches and rows of every file."""
        await tally(stream.events(), table, tallies.send)

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
        refuse_taken_port(self.settings.worker_host, self.settings.worker_port)
        wanted = [
            WantedTopic(self.settings.topic_prefix + topic.name, self.settings.partitions, topic.config())
            for topic in TOPICS
        ]
        await asyncio.to_thread(ensure_topics, self.options.kafka, wanted, self.settings.replication)


def refuse_taken_port(host: str, port: int) -> None:
    """Say it before anything has started; Faust would join the group first and then fail."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"{host}:{port}: {error.strerror}; every worker of a machine needs its own CAUCE_WORKER_PORT"
            ) from None


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
    )
