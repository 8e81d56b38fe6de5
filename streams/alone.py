"""A suspect's turn: nothing else is in hand, and what comes before it is committed with a note that says so.

Invariant: if the worker dies meanwhile, the next owner of the partition knows of which record, and how often before.
"""

import logging
from typing import TYPE_CHECKING

from faust.types import Message

if TYPE_CHECKING:
    from streams.engine import Engine

log = logging.getLogger(__name__)


async def run_alone(engine: "Engine", message: Message) -> None:
    """Note it, hand it over or what the app wants instead, wait until it is committed. The order is the guarantee."""
    where = {"record": f"{message.topic}-{message.partition}@{message.offset}", "key": text(message.key)}
    reason = engine.suspects.about_to_run(message)
    if not await engine.guarded(engine.commit_before(message)):
        return  # taken from us meanwhile
    wanted: Message | None = message
    if reason and engine.options.on_poison is not None:
        log.error("a record is set aside", extra={**where, "reason": reason})
        engine.metrics.set_aside()
        wanted = engine.options.on_poison(message, reason)
    elif reason:
        log.error("a record ends every worker, and on_poison does not say what to do; on it goes", extra=where)
    else:
        log.info("a record that a worker may have died of runs alone", extra=where)
    if wanted is None:
        engine.inbox.skip(message)
    else:
        engine.suspects.runs_alone(message)
        await engine.hand_over(wanted)
        await engine.inbox.drained()
        engine.suspects.ran_alone()
    await engine.guarded(engine.checkpoint())


def text(key: bytes | None) -> str | None:
    """Of a record, for a log: ours are client ids."""
    return None if key is None else key.decode(errors="replace")
