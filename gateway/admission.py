"""Who may open a session where all places are taken: which one gives way for it, or when it can get better.

Invariant: only an empty session gives way (no upload of it was created), never a young one, and never one of this
machine. Whoever opens sessions without end pushes out his own, and those only when they are twice as old: so there are
always some that others may have.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from cauce.messages import ClientId


@dataclass(frozen=True, slots=True)
class OpenSession:
    """What counts of a session that takes a place."""

    client_id: ClientId
    address: str  # a fingerprint; empty: of this machine
    idle_since: float  # when it was opened, or its client last did something
    expires_at: float
    is_empty: bool


class Candidates:
    """The sessions that may have to make room for a new one of an address, each from its own time on."""

    def __init__(self, sessions: Collection[OpenSession], newcomer: str, young_seconds: float) -> None:
        self._sessions = sessions
        self._held = Counter(session.address for session in sessions if session.is_empty)
        self._mine = self._held[newcomer] if newcomer else 0
        self._young_seconds = young_seconds

    def first(self, now: float) -> OpenSession | None:
        """Returns the oldest empty session of the address that has most empty ones; None where none may be ended."""
        ready = [session for session, at in self._times() if at <= now]
        return min(ready, key=lambda each: (-self._held[each.address], each.idle_since, each.client_id), default=None)

    def better_at(self) -> float:
        """Returns the soonest time at which a place can be had: a session may give way then, or ends."""
        return min([*(at for _, at in self._times()), *(each.expires_at for each in self._sessions)], default=0.0)

    def first_end(self) -> float:
        """Returns when the first session ends by itself: so long a newcomer waits where none may give way."""
        return min((each.expires_at for each in self._sessions), default=0.0)

    def _times(self) -> Iterator[tuple[OpenSession, float]]:
        for session in self._sessions:
            if session.is_empty and session.address:
                ages = 1 if self._mine < self._held[session.address] else 2
                yield session, session.idle_since + ages * self._young_seconds
