"""Faust's conductor, which says what topics the worker reads; when it subscribes is ours.

Faust subscribes a first time and looks for changes from then on. To do so it makes the topics that are missing, which
takes a while: a topic that an agent adds meanwhile (it gets to its `group_by`) is in neither, and nobody ever reads it.
"""

import asyncio
from typing import Final

from faust.transport import conductor
from mode import Service
from mode.utils.futures import notify

RESUBSCRIBE_SECONDS: Final = 1.0  # that several agents have to say what else they read; Faust waits 45


class Conductor(conductor.Conductor):
    """Every topic that was added is subscribed to, whenever that was."""

    @Service.task
    async def _subscriber(self) -> None:
        self.log.info("Waiting for agents to start...")
        await self.app.agents.wait_until_agents_started()
        self.log.info("Waiting for tables to be registered...")
        await self.app.tables.wait_until_tables_registered()
        changed = self._subscription_changed = asyncio.Event()
        while not self.should_stop:
            changed.clear()
            topics = await self._update_indices()
            if changed.is_set():  # while that made topics: one assignment is better than two
                continue
            await self.app.consumer.subscribe(topics)
            notify(self._subscription_done)
            await changed.wait()
            await self.sleep(RESUBSCRIBE_SECONDS)
