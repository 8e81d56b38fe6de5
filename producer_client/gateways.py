"""Several gateways, asked as if they were one: httpx's doorway.

Invariants: a gateway that failed is not asked again before its back-off or its Retry-After is over; whoever asks gets
an answer, a refusal with the gateway's reason, or Unreachable once the time without progress is over. Nothing hangs.
"""

import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from producer_client.errors import Refused, SessionGone, Stopped, Unreachable, WrongUsage

RETRY: Final = frozenset({408, 409, 423, 425, 429})  # and every 5xx: the same request may work later or elsewhere
GONE: Final = frozenset({404, 410})  # believed once as many gateways said so as there are: a replica may lag
OPENING: Final = "/sessions"  # the one request outside a session: 404 there is about the dataset
NO_ENTRY: Final = frozenset({401, 403})
PLAIN_SIGNS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")  # of OpenSSL, to a plain answer
BROKEN: Final = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)  # how a TLS port ends a plain request
PROBE_SECONDS: Final = 2.0
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")  # a proxy would look for these on its own machine


@dataclass(frozen=True, slots=True)
class Timing:
    """How patient a client is, in seconds."""

    give_up: float = 300.0  # without progress; a cluster that restarts whole takes half a minute
    open: float = 15.0  # the same for the first request: a wrong address should not take minutes to show
    first_wait: float = 0.1
    longest_wait: float = 10.0
    retry_after: float = 60.0  # what a gateway may ask for at most
    connect: float = 5.0
    transfer: float = 60.0  # one read or write; a lost broker stalls a commit for 9 s
    events: float = 25.0  # of silence: two of the comment lines that come every 10 s are missing
    poll: float = 1.0  # between two looks where there are no events
    settle: float = 60.0  # for other answers after a file that was not even begun; then nothing changes any more


class Trouble(Exception):
    """One request did not work; the next may. Never leaves this package."""

    def __init__(self, gateway: str, what: str, retry_after: float = 0.0, status: int = 0) -> None:
        super().__init__(f"{gateway}: {what}")
        self.retry_after = retry_after
        self.status = status


class Route:
    """Which gateway one conversation asks next, and when. Belongs to one thread."""

    def __init__(
        self,
        gateways: Sequence[str],
        timing: Timing,
        *,
        start: int = 0,
        give_up: float | None = None,
        stop: threading.Event | None = None,
        tell: Callable[[str], None] = lambda what: None,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._gateways, self._timing, self._clock, self._jitter = tuple(gateways), timing, clock, jitter
        self._tell = tell
        self._give_up = timing.give_up if give_up is None else give_up
        self._at = start % len(self._gateways)
        self._free_at = [0.0] * len(self._gateways)
        self._failures = 0
        self._failing_since: float | None = None  # time without progress begins with the first failure
        self.stop = stop or threading.Event()

    @property
    def gateway(self) -> str:
        return self._gateways[self._at]

    @property
    def failures(self) -> int:
        """In a row, without progress."""
        return self._failures

    def progressed(self) -> None:
        self._failures, self._failing_since = 0, None

    def check_stop(self) -> None:
        if self.stop.is_set():
            raise Stopped("stopped as asked")

    def failed(self, trouble: Trouble) -> None:
        """Go to the first gateway that may be asked, and wait until it may."""
        self._tell(str(trouble))
        now = self._clock()
        since = self._failing_since = now if self._failing_since is None else self._failing_since
        if now - since >= self._give_up:
            raise Unreachable(
                f"no progress for {self._give_up:.0f} s with {', '.join(self._gateways)}; the last trouble was "
                f"{trouble}; see that a gateway runs there, then try again"
            ) from trouble
        backoff = self._timing.first_wait * 2 ** min(self._failures // len(self._gateways), 30)
        backoff = min(backoff, self._timing.longest_wait) * (0.5 + self._jitter() / 2)
        self._failures += 1
        self._free_at[self._at] = now + max(backoff, min(trouble.retry_after, self._timing.retry_after))
        others_first = [(self._at + step) % len(self._gateways) for step in range(1, len(self._gateways) + 1)]
        self._at = min(others_first, key=lambda index: max(self._free_at[index], now))
        wait = min(self._free_at[self._at], since + self._give_up) - now
        if self.stop.wait(max(0.0, wait)):
            self.check_stop()


class Gateways:
    """Asks whichever gateway works. Shared by all threads of a client."""

    def __init__(self, urls: Sequence[str], timing: Timing, ca: Path | None = None) -> None:
        """`ca`: PEM file of the authorities to trust, in the place of those that the machine trusts."""
        self.urls = tuple(dict.fromkeys(_checked(url) for url in urls))
        if not self.urls:
            raise WrongUsage("no gateway is given; name at least one, as in http://127.0.0.1:8080")
        self.timing = timing
        self.used: list[str] = []  # in the order in which they first answered
        self._http = httpx.Client(
            timeout=httpx.Timeout(timing.transfer, connect=timing.connect),
            mounts={f"all://{host}": None for host in LOOPBACK},
            headers={"User-Agent": "cauce"},
            verify=_trusting(ca) if ca else True,
        )

    def close(self) -> None:
        self._http.close()

    def route(
        self,
        *,
        start: int = 0,
        give_up: float | None = None,
        stop: threading.Event | None = None,
        tell: Callable[[str], None] = lambda what: None,
    ) -> Route:
        return Route(self.urls, self.timing, start=start, give_up=give_up, stop=stop, tell=tell)

    def ask(
        self,
        method: str,
        path: str,
        *,
        route: Route,
        headers: Mapping[str, str] | None = None,
        json: object = None,
        refused: type[Refused] = Refused,
    ) -> httpx.Response:
        """One small request, repeated until it is answered for good."""
        gone = 0
        while True:
            try:
                with self.once(method, path, route=route, headers=headers, json=json, refused=refused) as response:
                    response.read()
                    return response
            except SessionGone as error:
                gone += 1
                if error.status not in GONE or gone >= len(self.urls):
                    raise
                route.failed(Trouble(route.gateway, str(error)))
            except Trouble as trouble:
                route.failed(trouble)

    @contextmanager
    def once(
        self,
        method: str,
        path: str,
        *,
        route: Route,
        headers: Mapping[str, str] | None = None,
        json: object = None,
        content: Iterator[bytes] | None = None,
        timeout: float | None = None,
        refused: type[Refused] = Refused,
    ) -> Iterator[httpx.Response]:
        """One request to one gateway; a Trouble if another try may help, a Refused if not. The body is not read yet."""
        route.check_stop()
        gateway = route.gateway
        try:
            with self._http.stream(
                method,
                gateway + path,
                headers=headers,
                json=json,
                content=content,
                timeout=httpx.Timeout(timeout or self.timing.transfer, connect=self.timing.connect),
            ) as response:
                if response.status_code >= 300:
                    response.read()
                    _raise(gateway, response, refused)
                if gateway not in self.used:
                    self.used.append(gateway)
                yield response
        except httpx.TransportError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):  # it would not help to ask again
                advice = "name the authority that signed it with --ca FILE, or SSL_CERT_FILE"
                raise WrongUsage(f"{gateway}: its certificate is not trusted ({error}); {advice}") from None
            if gateway not in self.used:
                _refuse_other_scheme(gateway, error)
            raise Trouble(gateway, _words(error)) from error


def _raise(gateway: str, response: httpx.Response, refused: type[Refused]) -> None:
    status, problem = response.status_code, _problem(response)
    asked = f"{gateway}: {response.request.method} {response.url.path} was answered with {status}"  # HEAD has no body
    detail = str(problem.pop("detail", None) or problem.get("title") or asked)
    problem.pop("status", None)
    wait = response.headers.get("Retry-After")
    creation = response.request.method == "POST" and status == 409 and wait is None  # it will not go away by itself
    if (status in RETRY and not creation) or status >= 500:
        raise Trouble(gateway, f"{status}, {detail}", _seconds(wait, response.headers.get("Date")), status)
    if status in NO_ENTRY or (status in GONE and not response.url.path.endswith(OPENING)):
        raise SessionGone(detail, status, **problem)
    raise refused(detail, status, **problem)


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        problem = response.json()
    except ValueError:
        return {}
    return {str(name): value for name, value in problem.items()} if isinstance(problem, dict) else {}


def _seconds(retry_after: str | None, asked_at: str | None = None) -> float:
    """RFC 9110: a number of seconds, or a date. That is by the clock of who answered, and `asked_at`, the answer's own
    date, tells that; ours may be another."""
    if retry_after is None:
        return 0.0
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        now = parsedate_to_datetime(asked_at) if asked_at else datetime.now(UTC)
        return max(0.0, (parsedate_to_datetime(retry_after) - now).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _words(error: httpx.TransportError) -> str:
    match error:
        case httpx.ConnectTimeout() | httpx.PoolTimeout():
            return "does not answer"
        case httpx.TimeoutException():
            return "went silent"
        case httpx.ConnectError():
            return f"cannot be reached ({error})"
        case _:
            return f"the connection broke ({error or type(error).__name__})"


def _refuse_other_scheme(gateway: str, error: httpx.TransportError) -> None:
    """Refuses https to a port that speaks HTTP, and http to one that speaks HTTPS: it would not help to ask again."""
    parts = urlsplit(gateway)
    if parts.scheme == "https":
        if any(sign in str(error) for sign in PLAIN_SIGNS):
            plain = parts._replace(scheme="http").geturl()
            raise WrongUsage(f"{gateway}: HTTP is spoken there, and no HTTPS; write {plain}") from None
    elif isinstance(error, BROKEN) and _speaks_tls(parts.hostname or "", parts.port or 80):
        secure = parts._replace(scheme="https").geturl()
        raise WrongUsage(f"{gateway}: HTTPS is spoken there, and no HTTP; write {secure}") from None


def _speaks_tls(host: str, port: int) -> bool:
    """Whether a handshake gets anywhere. Nothing is sent over it, so the certificate does not matter."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), PROBE_SECONDS) as connection,
            context.wrap_socket(connection, server_hostname=host),
        ):
            return True
    except (OSError, ValueError):
        return False


def _trusting(ca: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:  # ssl.SSLError is one
        raise WrongUsage(f"{ca}: {error.strerror or error}; give a PEM file with the authority's certificate") from None


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise WrongUsage(f"{url!r} is no address of a gateway; write it as http://127.0.0.1:8080")
    return url.rstrip("/")
