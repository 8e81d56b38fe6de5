"""Who asks too often is told to wait, and nobody else; and nothing is remembered for long."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from cryptography.hazmat.primitives.serialization import load_pem_private_key as load_key
from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from cauce.errors import BadUpload, ConfigError
from cauce.settings import Settings
from gateway import shim
from gateway.__main__ import tls
from gateway.answers import Stream
from gateway.intake import MAX_COLUMNS, MAX_HEADER_LENGTH, refuse_wide
from gateway.limits import REMEMBERED, AtOnce, Rates
from gateway.metrics import Metrics
from gateway.problems import Problem
from gateway.shim import Shim
from gateway.tus import METADATA_LENGTH, metadata, number, which_file
from infra.ports import Ports
from infra.processes import accepts, wait_until
from queries.movies import MOVIES_DATASET, RATINGS


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def allowed(rates: Rates, key: str, tries: int) -> int:
    def taken() -> bool:
        try:
            rates.take(key)
        except Problem as problem:
            if (problem.status, problem.kind) != (429, "too-often") or int(problem.headers["Retry-After"]) < 1:
                raise
            return False
        return True

    return sum(taken() for _ in range(tries))


def test_a_burst_is_taken_then_so_many_a_second() -> None:
    clock = Clock()
    rates = Rates(10, "x", clock)
    assert allowed(rates, "ada", 50) == 20
    clock.now += 1
    assert allowed(rates, "ada", 50) == 10
    clock.now += 1000
    assert allowed(rates, "ada", 50) == 20


def test_who_waits_learns_how_long_and_what_is_given_back_may_be_taken_again() -> None:
    clock = Clock()
    rates = Rates(0.5, "x", clock, at_once=2)
    assert [rates.wait("ada") for _ in range(3)] == [0.0, 0.0, 2.0]
    clock.now += 1
    assert rates.wait("ada") == 1.0
    rates.give_back("ada")
    assert [rates.wait("ada") for _ in range(2)] == [0.0, 1.0]
    for _ in range(9):
        rates.give_back("ada")
        rates.give_back("bob")
    assert [rates.wait("ada") for _ in range(3)] == [0.0, 0.0, 2.0]
    assert [rates.wait("bob") for _ in range(3)] == [0.0, 0.0, 2.0]


def test_one_that_asks_too_often_takes_nothing_from_the_others() -> None:
    rates = Rates(10, "x", Clock())
    assert allowed(rates, "mallory", 500) == 20
    assert allowed(rates, "ada", 10) == 10


def test_who_has_not_asked_for_a_while_is_forgotten_and_who_has_is_not() -> None:
    clock = Clock()
    rates = Rates(1, "x", clock)
    assert allowed(rates, "mallory", 5) == 2
    for each in range(3 * REMEMBERED):
        clock.now += 0.0001
        rates.take(each)
        clock.now += 0.0001
    assert allowed(rates, "mallory", 5) == 0
    clock.now += 60
    for each in range(3 * REMEMBERED):
        rates.take(f"later {each}")
    assert len(rates._left) <= 3 * REMEMBERED, "the first ones are gone"


def test_so_many_at_once_and_again_when_one_has_ended() -> None:
    downloads = AtOnce(2, "downloads of a session")
    refused = pytest.raises(Problem, match="2 downloads of a session are open")
    with downloads.one("ada"), downloads.one("ada"), downloads.one("bob"), refused, downloads.one("ada"):
        pass
    with downloads.one("ada"):
        pass
    assert not downloads._now


@pytest.mark.parametrize("header", [["c"] * (MAX_COLUMNS + 1), ["c" * (MAX_HEADER_LENGTH + 1)]])
def test_a_header_that_is_too_wide_is_refused_in_a_short_sentence(header: list[str]) -> None:
    refuse_wide(RATINGS, ["c"] * MAX_COLUMNS)
    with pytest.raises(BadUpload, match="at most 1000") as caught:
        refuse_wide(RATINGS, header)
    assert len(str(caught.value)) < 300


def test_metadata_is_short_and_a_message_too() -> None:
    with pytest.raises(Problem) as caught:
        metadata(Headers({"Upload-Metadata": "x" * (METADATA_LENGTH + 1)}))
    assert caught.value.status == 431
    with pytest.raises(Problem) as caught:
        number(Headers({"Upload-Offset": "9" * 5000}), "Upload-Offset")
    assert len(caught.value.detail) < 200


@pytest.mark.parametrize("name", ["../../x/ratings.csv", "..\\..\\ratings.csv", "C:\\data\\ratings.csv"])
def test_a_path_in_a_name_says_the_kind_and_nothing_else(name: str) -> None:
    assert which_file(MOVIES_DATASET, {"filename": name}) == (MOVIES_DATASET.file("ratings"), name)


@pytest.mark.parametrize(
    "name", ["ratings.csv\r\nX-Evil: 1", "ratings\n.csv", "a\0b", "a\x1b[31m", "a\u202eb", "", "x" * 256]
)
def test_a_name_that_cannot_be_printed_is_refused(name: str) -> None:
    with pytest.raises(Problem, match="printable"):
        which_file(MOVIES_DATASET, {"filename": name, "kind": "ratings"})


@pytest.mark.parametrize("name", ["影評.csv", "reseñas 2024 – copia.csv", "🎬"])
def test_a_name_in_any_language_is_kept(name: str) -> None:
    assert which_file(MOVIES_DATASET, {"filename": name, "kind": "ratings"})[1] == name


# ---- slow clients, below FastAPI

Message = MutableMapping[str, Any]


def run(app: Any, receive: Callable[[], Any], take: Callable[[Message], Any], method: str = "POST") -> None:
    scope = {"type": "http", "method": method, "path": "/sessions", "headers": []}
    asyncio.run(asyncio.wait_for(Shim(app, Metrics())(scope, receive, take), 20))


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


def test_a_body_that_never_comes_is_answered_with_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shim, "SMALL_SECONDS", 0.1)
    told: list[Message] = []

    async def app(scope: object, receive: Any, send: Any) -> None:
        await receive()

    async def take(message: Message) -> None:
        told.append(message)

    run(app, never, take)
    assert [message.get("status") for message in told if message["type"] == "http.response.start"] == [408]


def test_an_answer_that_nobody_takes_ends_and_gives_back_what_it_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shim, "TAKE_SECONDS", 0.1)
    ended: list[str] = []

    async def app(scope: object, receive: Any, send: Any) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
        finally:
            ended.append("ended")

    async def take(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    run(app, never, take, "GET")
    assert ended == ["ended"]


def test_a_stream_whose_client_is_gone_before_its_first_byte_gives_back_what_it_held() -> None:
    downloads, begun = AtOnce(1, "downloads"), list[str]()

    async def content() -> AsyncIterator[bytes]:
        begun.append("begun")
        yield b"x"

    async def broken(message: Message) -> None:
        raise OSError("the client is gone")

    async def serve() -> None:
        held = contextlib.AsyncExitStack()
        held.enter_context(downloads.one("ada"))
        scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
        with pytest.raises((OSError, ClientDisconnect)):
            await Stream(content(), held)(scope, never, broken)

    asyncio.run(serve())
    assert not begun
    with downloads.one("ada"):
        pass


def test_a_real_server_hangs_up_on_a_client_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does so only if the server holds `send` back while the client's side is full: that is granian's part."""
    monkeypatch.setattr(shim, "TAKE_SECONDS", 1.0)
    ports, sent = Ports(tmp_path), 0

    async def app(scope: object, receive: Any, send: Any) -> None:
        nonlocal sent
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for sent in range(1000):  # noqa: B007 how far it came
            await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})

    def read_late(port: int, ended: threading.Event) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
            wire.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert ended.wait(30)
            while wire.recv(1 << 20):
                pass

    async def serve(port: int) -> None:
        ended = threading.Event()

        async def watched(*call: Any) -> None:
            await Shim(app, Metrics())(*call)
            ended.set()

        server = Server(watched, port=port, interface=Interfaces.ASGINL, http=HTTPModes.http1, log_enabled=False)
        serving = asyncio.create_task(server.serve())
        await asyncio.to_thread(wait_until, lambda: accepts(port), seconds=30, otherwise="the server does not listen")
        await asyncio.to_thread(read_late, port, ended)
        server.stop()  # type: ignore[no-untyped-call]
        await asyncio.wait_for(serving, 30)

    asyncio.run(serve(ports.take()))
    ports.release()
    assert sent < 500


# ---- TLS


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    issued = trustme.CA().issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "certificate.pem")
    key = load_key(issued.private_key_pem.bytes(), None)
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"sesame"))
    )
    return tmp_path / "certificate.pem", tmp_path / "key.pem"


def test_a_certificate_with_its_key_is_what_granian_is_told(files: tuple[Path, Path]) -> None:
    certificate, key = files
    settings = Settings.load(
        gateway_tls_certificate=certificate, gateway_tls_key=key, gateway_tls_key_password="sesame"
    )
    assert tls(settings) == {"ssl_cert": certificate, "ssl_key": key, "ssl_key_password": "sesame"}
    assert tls(Settings.load()) == {}


def test_a_certificate_that_cannot_be_used_is_one_sentence(files: tuple[Path, Path]) -> None:
    certificate, key = files
    wrong: list[dict[str, Any]] = [
        {"gateway_tls_certificate": certificate},
        {"gateway_tls_key": key},
        {"gateway_tls_certificate": certificate, "gateway_tls_key": key, "gateway_tls_key_password": "open"},
        {"gateway_tls_certificate": certificate, "gateway_tls_key": key},
        {"gateway_tls_certificate": certificate, "gateway_tls_key": certificate},
        {"gateway_tls_certificate": certificate.with_name("nowhere.pem"), "gateway_tls_key": key},
    ]
    for given in wrong:
        with pytest.raises(ConfigError, match="CAUCE_GATEWAY_TLS_CERTIFICATE and CAUCE_GATEWAY_TLS_KEY"):
            tls(Settings.load(**given))
