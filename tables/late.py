"""Effects that must not get lost: what an event wrote or sent commits with it, or the worker ends.

An event commits when all agents are done with it. A task or a callback that it left behind belongs to it by its
context, but what it does then would be in a later transaction, or in none, and nobody would read the event again to do
it once more. And an agent that catches every error would go on, and commit, without what it tried to do.
"""

from collections.abc import Callable

from faust.streams import _current_event

from cauce.errors import Unsupported


def refuse_late(what: str) -> None:
    """Where there never was an event (a timer, a web view) there is nothing to be late for."""
    reference = _current_event.get(None)
    if reference is None:
        return
    event = reference()
    if event is None or event.message.acked:
        raise Unsupported(
            f"{what}: its event has ended already, and a crash would lose it; "
            "let the agent await its tasks before it takes the next event"
        )


class ending_with:  # noqa: N801 reads as a statement
    """Errors of these kinds end the worker, whoever catches them further up."""

    def __init__(
        self, kinds: type[Exception] | tuple[type[Exception], ...], on_failure: Callable[[BaseException], None]
    ) -> None:
        self._kinds = kinds
        self._on_failure = on_failure

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self._kinds):
            self._on_failure(error)
