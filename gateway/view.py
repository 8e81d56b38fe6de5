"""What this replica knows of all sessions, read from Kafka: sessions, how far uploads are, where answers lie.

Invariant: it is changed on the event loop only, by records in their order; nothing is in it that Kafka does not hold.
It may be behind: `catch_up` waits until it has seen all that was written before the call.
"""

import asyncio
import contextlib
import logging
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, Self

from cauce.errors import BrokerUnavailable
from cauce.kafka import Place
from cauce.messages import Answer, ClientId, Session, Upload, UploadId, from_json
from cauce.process import EXIT_FAILED
from cauce.settings import Settings
from cauce.topics import ANSWERS, KEPT_MS, SESSIONS, UPLOADS
from gateway.admission import OpenSession
from gateway.batches import home_partition
from gateway.follow import Follower, Reached, Seen, read_at

log = logging.getLogger(__name__)

CATCH_UP_SECONDS: Final = 20.0  # a dead gateway's transaction may be open for 15 s
STALLED_SECONDS: Final = 3.0  # nothing was read for so long of what there is to read
PROBE_SECONDS: Final = 2.0
START_SECONDS: Final = 0.2
SILENT_SECONDS: Final = 10.0  # Kafka not heard of for so long: not ready
KEPT_TAIL: Final = 16 << 10  # of a cut row; most rows are shorter, a hostile one may have 4 MiB
ELSEWHERE: Final = "…"  # no base64: the tail is too long to be kept, its record has it
ENDING: Final = 0.0  # `expires_at` of a session that is being ended; nothing brings it back


@dataclass(slots=True)
class AnswerPlaces:
    """Where the parts of an answer are; the text itself stays in Kafka."""

    state: str
    parts: int = 0  # not known before the last one is there
    reason: str = ""
    partition: int = 0
    offsets: dict[int, int] = field(default_factory=dict)  # by part
    sizes: dict[int, int] = field(default_factory=dict)  # of the text, in bytes

    @property
    def whole(self) -> bool:
        return 0 < self.parts == len(self.offsets)

    @property
    def size_bytes(self) -> int:
        return sum(self.sizes.values())

    @property
    def tag(self) -> str:
        """Returns the answer's ETag: records do not change, so the bytes are told by where they lie."""
        where = [self.partition, sorted(self.offsets.items()), sorted(self.sizes.items())]
        return f'"{sha256(repr(where).encode()).hexdigest()[:16]}"'


@dataclass(frozen=True, slots=True)
class Total:
    """Of several uploads of a kind of file."""

    rows: int
    rejected: dict[str, int]
    sent: int

    @classmethod
    def of(cls, uploads: Sequence[Upload]) -> Self:
        rejected = Counter[str]()
        for upload in uploads:
            rejected.update(upload.rejected)
        return cls(sum(upload.rows for upload in uploads), dict(rejected), sum(upload.sent for upload in uploads))

    @property
    def unused(self) -> int:
        """Rows that no query uses."""
        return self.rows - self.sent - sum(self.rejected.values())


@dataclass(slots=True)
class Client:
    session: Session | None = None
    uploads: dict[UploadId, Upload] = field(default_factory=dict)
    answers: dict[str, AnswerPlaces] = field(default_factory=dict)
    folded: dict[str, tuple[int, int]] = field(default_factory=dict)  # batches and rows, by kind of file that has ended
    long_tails: dict[UploadId, tuple[int, int]] = field(default_factory=dict)  # partition and offset of the record
    opened_at: float = 0.0  # by the broker's clock, as the next: not by that of the gateway that wrote it
    active_at: float = 0.0

    @property
    def is_ending(self) -> bool:
        return self.session is not None and self.session.expires_at == ENDING

    def expires_at(self, ttl_seconds: float, empty_seconds: float) -> float:
        if self.session is None or self.is_ending:
            return ENDING
        most_seconds = min(ttl_seconds, empty_seconds) if self.is_unused else ttl_seconds
        return min(self.active_at + most_seconds, self.opened_at + KEPT_MS / 1000)

    @property
    def is_unused(self) -> bool:
        """No upload of it was created, or all were taken away."""
        return not (self.uploads or self.answers or self.folded)

    @property
    def idle_since(self) -> float:
        """When it was opened, or something of it was last written."""
        return self.active_at

    def members(self, kind: str) -> list[Upload]:
        """The uploads of a kind of file."""
        return [upload for upload in self.uploads.values() if upload.file == kind and not upload.files]

    @property
    def empty(self) -> bool:
        return self.session is None and self.is_unused


Message = Session | Upload | Answer
KINDS: Final[Mapping[str, type[Any]]] = {SESSIONS.name: Session, UPLOADS.name: Upload, ANSWERS.name: Answer}


class View:
    def __init__(self, settings: Settings, now: Callable[[], float]) -> None:
        """`now`: the time that all gateways share."""
        self._settings = settings
        self._now = now
        self._prefix = settings.topic_prefix
        names = (SESSIONS.name, UPLOADS.name, ANSWERS.name)
        self._places = [(self._prefix + name, part) for name in names for part in range(settings.partitions)]
        self._clients: dict[ClientId, Client] = {}
        self._reached: dict[Place, int] = {}
        self._moved = asyncio.Event()
        self._listeners: dict[ClientId, set[asyncio.Event]] = {}
        self._loop = asyncio.get_running_loop()
        self._follower = Follower(settings.kafka_client(), self._places, self._hand_over)
        self._complete = False  # was at the end once
        self._heard_at = 0.0

    # ---- life

    def start(self) -> None:
        self._follower.start()

    async def stop(self) -> None:
        await asyncio.to_thread(self._follower.stop)

    async def probe(self) -> None:
        """For ever: is Kafka there, and, at first, have we read it all?"""
        looks_dead = 0  # once may be: this whole process was paused, and the reader has not had its turn yet
        while True:
            looks_dead = 0 if self._follower.alive else looks_dead + 1
            try:
                ends = await asyncio.to_thread(self._follower.ends, self._places)
                self._heard_at = time.monotonic()
                if looks_dead > 1:
                    log.error("gateway ends: nobody reads for it any more; the next one starts from what Kafka holds")
                    os._exit(EXIT_FAILED)
                if not self._complete:
                    await self._wait_for(ends)
                    self._complete = True
                    log.info("view complete", extra={"sessions": self.sessions})
            except BrokerUnavailable as error:
                log.warning("Kafka does not answer", extra={"reason": str(error)})
            self._drop_strays()
            await asyncio.sleep(PROBE_SECONDS if self._complete else START_SECONDS)

    def why_not_ready(self) -> str:
        if not self._follower.alive:
            return "the reader of sessions ended; this gateway has to be restarted"
        if time.monotonic() - self._heard_at > SILENT_SECONDS:
            return f"Kafka at {self._settings.bootstrap} has not answered for {SILENT_SECONDS:.0f} s"
        return "" if self._complete else "still reading what sessions there are"

    # ---- what is known

    @property
    def sessions(self) -> int:
        return sum(client.session is not None for client in self._clients.values())

    def client(self, client_id: ClientId) -> Client | None:
        """None for a session that does not exist, has ended or is about to."""
        client = self._clients.get(client_id)
        return client if client and self.expires_at(client) > self.now() else None

    def open_clients(self) -> list[Client]:
        """All whose session is open."""
        known = (self.client(client_id) for client_id in list(self._clients))
        return [client for client in known if client is not None and client.session is not None]

    def now(self) -> float:
        """The time that sessions are opened and ended by."""
        return self._now()

    def expires_at(self, client: Client) -> float:
        """Before all was read once, an upload may not be known yet: nothing is taken for empty."""
        empty_seconds = self._settings.empty_session_seconds if self._complete else math.inf
        return client.expires_at(self._settings.session_ttl_seconds, empty_seconds)

    def open_sessions(self) -> list[OpenSession]:
        """All that take a place. One whose time is over takes none: the next sweep ends it."""
        now = self.now()
        return [
            OpenSession(known, session.address, client.idle_since, expires_at, self._complete and client.is_unused)
            for known, client in self._clients.items()
            if (session := client.session) and (expires_at := self.expires_at(client)) > now
        ]

    def expired(self) -> list[ClientId]:
        """Those whose time is over."""
        return [known for known, client in self._clients.items() if client.session and self.client(known) is None]

    def ending(self) -> list[ClientId]:
        """Those that somebody has begun to end, and perhaps died before it was done."""
        return [known for known, client in self._clients.items() if client.is_ending]

    def session(self, client_id: ClientId) -> Session | None:
        """Also one that is being ended."""
        client = self._clients.get(client_id)
        return client.session if client else None

    def uploads(self, client_id: ClientId) -> dict[UploadId, Upload]:
        """Also of a session that is being ended."""
        client = self._clients.get(client_id)
        return dict(client.uploads) if client else {}

    async def upload(self, client_id: ClientId, upload_id: UploadId) -> Upload | None:
        """With all of its tail."""
        client = self._clients.get(client_id, Client())
        place = client.long_tails.get(upload_id)
        if place is None:
            return client.uploads.get(upload_id)
        kafka, topic = self._settings.kafka_client(), self._prefix + UPLOADS.name
        value = await asyncio.to_thread(lambda: next(read_at(kafka, topic, place[0], [place[1]])))
        return from_json(Upload, value)

    async def catch_up(self, client_id: ClientId, *topics: str) -> None:
        """Wait until all is known that was written about this client on these topics before the call."""
        home = home_partition(client_id, self._settings.partitions)
        wanted = {self._prefix + topic for topic in topics}
        answers = self._prefix + ANSWERS.name  # the workers choose the partition
        places = [
            (topic, part) for topic, part in self._places if topic in wanted and (part == home or topic == answers)
        ]
        await self._wait_for(await asyncio.to_thread(self._follower.ends, places))

    async def _wait_for(self, ends: dict[Place, int]) -> None:
        now = self._loop.time
        deadline, moved_at, seen = now() + CATCH_UP_SECONDS, now(), self._behind(ends)
        while behind := self._behind(ends):
            if behind != seen:
                moved_at, seen = now(), behind
            if now() - moved_at > STALLED_SECONDS:
                self._follower.renew()
                moved_at = now()
            if now() > deadline:
                where = ", ".join(f"{place[0]}-{place[1]} is at {at} of {ends[place]}" for place, at in behind.items())
                raise BrokerUnavailable(f"still behind after {CATCH_UP_SECONDS:.0f} s: {where}")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._moved.wait(), STALLED_SECONDS / 2)

    def _behind(self, ends: Mapping[Place, int]) -> dict[Place, int]:
        """How far we are where we are not far enough."""
        return {place: self._reached.get(place, 0) for place, end in ends.items() if self._reached.get(place, 0) < end}

    @contextlib.contextmanager
    def listen(self, client_id: ClientId) -> Iterator[asyncio.Event]:
        """An event that is set whenever something of this client has changed."""
        changed = asyncio.Event()
        self._listeners.setdefault(client_id, set()).add(changed)
        try:
            yield changed
        finally:
            self._listeners[client_id].discard(changed)
            if not self._listeners[client_id]:
                del self._listeners[client_id]

    # ---- what is read

    def _hand_over(self, events: Sequence[Seen | Reached]) -> None:
        """In the reader's thread: it goes on when the loop has taken these in, so it cannot run ahead."""
        read = [(event, self._decoded(event)) for event in events]
        asyncio.run_coroutine_threadsafe(self._take(read), self._loop).result()

    def _decoded(self, event: Seen | Reached) -> Message | None:
        if isinstance(event, Reached) or event.value is None:
            return None
        try:
            message: Message = from_json(KINDS[event.topic.removeprefix(self._prefix)], event.value)
        except (ValueError, TypeError):
            log.exception("a record that we cannot read is passed over", extra={"topic": event.topic, "key": event.key})
            return None
        return slim(message)

    async def _take(self, read: Sequence[tuple[Seen | Reached, Message | None]]) -> None:
        for event, message in read:
            if isinstance(event, Seen):
                self._apply(event, message)
                self._reached[event.topic, event.partition] = event.offset + 1
            else:
                self._reached[event.topic, event.partition] = event.offset
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _apply(self, seen: Seen, message: Message | None) -> None:
        client_id, _, upload_id = seen.key.partition("/")
        client = self._clients.setdefault(ClientId(client_id), Client())
        client.active_at = max(client.active_at, seen.at)
        match message:
            case Session():
                client.session, client.opened_at = message, seen.at
            case Upload():
                client.uploads[message.upload_id] = message
                client.long_tails.pop(message.upload_id, None)
                if message.tail == ELSEWHERE:
                    client.long_tails[message.upload_id] = (seen.partition, seen.offset)
            case Answer():
                _note(client, message, seen)
            case None if upload_id:
                client.uploads.pop(UploadId(upload_id), None)
                client.long_tails.pop(UploadId(upload_id), None)
            case None:
                client.session = None
                client.answers.clear()
                client.folded.clear()
        if client.empty:
            del self._clients[ClientId(client_id)]
        for changed in self._listeners.get(ClientId(client_id), ()):
            changed.set()

    def _drop_strays(self) -> None:
        """Answers outlive their session on the topic for a day; here they need not."""
        if self._complete:
            for client_id in [known for known, client in self._clients.items() if client.session is None]:
                self._clients[client_id].answers.clear()
                self._clients[client_id].folded.clear()
                if self._clients[client_id].empty:
                    del self._clients[client_id]


def slim(message: Message) -> Message:
    """Without what is only seldom needed and may be big: any number of clients must fit in here."""
    match message:
        case Answer():
            return replace(message, csv="")
        case Upload() if len(message.tail) > KEPT_TAIL:
            return replace(message, tail=ELSEWHERE)
        case _:
            return message


def _note(client: Client, answer: Answer, seen: Seen) -> None:
    if answer.state == "counted":
        client.folded[answer.query] = (answer.batches, answer.rows)
        return
    places = client.answers.get(answer.query)
    if places is None or answer.state == "failed":  # a listing may fail when some of it is written
        places = client.answers[answer.query] = AnswerPlaces(answer.state, 0, answer.reason, seen.partition)
    places.offsets[answer.part] = seen.offset
    places.sizes[answer.part] = answer.size
    places.parts = max(places.parts, answer.parts)
