"""Rows before labels: a model gives way while rows of the same client are coming in, so that those of its answers that
need no model come sooner.

Invariants: nobody waits for the rows of somebody else. A batch for the model waits MOST_SECONDS at most: labels go on,
and a commit, which waits for events that are under way, is held up no longer than that.
"""

import asyncio
from typing import Final

from cauce.messages import ClientId

QUIET_SECONDS: Final = 0.6  # a gateway sends a transaction every 0.5 s at the latest while a file comes in
MOST_SECONDS: Final = 0.1  # with tiny-sentiment: 8 films in this and 10 ms, a tenth of a core


class Courtesy:
    """Shared by the agents of a worker: one is busy, the other gives way."""

    def __init__(self) -> None:
        self._whose: ClientId | None = None  # were the last rows
        self._busy_at = float("-inf")

    def busy(self, client_id: ClientId) -> None:
        self._whose, self._busy_at = client_id, asyncio.get_running_loop().time()

    async def give_way(self, client_id: ClientId) -> None:
        now = asyncio.get_running_loop().time
        until = now() + MOST_SECONDS
        while self._whose == client_id and (wait := min(until, self._busy_at + QUIET_SECONDS) - now()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(wait)  # for a time, not for an event
