"""Connections to the pages of supervisors and workers that say nothing: they go, and who asks is answered."""

import asyncio
import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cauce.settings import Settings
from infra.cluster import Cluster
from infra.ports import Ports
from infra.processes import wait_until
from infra.service import WorkerProcess, page
from infra.supervisor_metrics import serve
from streams import pages

SILENT = 300
FEW = 140  # connections to a page, and what the process has of its own


@pytest.fixture
def port() -> Iterator[int]:
    ports = Ports(Settings.load().cache / "ports")
    yield ports.take()
    ports.release()


@contextlib.contextmanager
def silent(port: int, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as held:
        yield [held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)) for _ in range(count)]


def closed(wires: list[socket.socket]) -> int:
    """How many of them the other side has ended."""
    found = 0
    for wire in wires:
        wire.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            try:
                found += wire.recv(1) == b""
            except ConnectionError:
                found += 1
    return found


def test_silent_sockets_take_no_thread_of_a_supervisor_for_long(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = threading.active_count()
    serve(tmp_path, port)
    with silent(port, SILENT) as wires:
        wait_until(lambda: closed(wires) >= SILENT - FEW, seconds=5, otherwise="as many threads as connections")
        assert page(port, "/metrics", 1.0)[0] == 200
        assert threading.active_count() - before < FEW
        monkeypatch.setattr("infra.supervisor_metrics.CONNECTION_SECONDS", 0.5)
        wait_until(lambda: threading.active_count() - before < 5, seconds=5, otherwise="old connections stay")


def test_silent_sockets_take_few_descriptors_of_a_worker_and_not_for_long(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application of aiohttp as a worker has it, without the worker."""

    async def livez(request: web.Request) -> web.Response:
        return web.Response(text="alive")

    async def scenario() -> None:
        application = web.Application()
        application.router.add_get("/livez", livez)
        runner = web.AppRunner(application)
        application.cleanup_ctx.append(pages.short_connections(lambda: runner.server))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            await asyncio.to_thread(look)
        finally:
            await runner.cleanup()

    def look() -> None:
        with silent(port, SILENT) as wires:
            wait_until(lambda: closed(wires) >= SILENT - FEW, seconds=5, otherwise="any number of connections stays")
            assert page(port, "/livez", 1.0) == (200, "alive")
            monkeypatch.setattr(pages, "CONNECTION_SECONDS", 0.5)
            wait_until(lambda: closed(wires) == SILENT, seconds=5, otherwise="old connections stay")

    asyncio.run(scenario())


@pytest.mark.kafka
@pytest.mark.strangers
def test_a_real_worker_has_its_descriptors_for_itself(kafka: Cluster, prefix: str, port: int, tmp_path: Path) -> None:
    variables = {"CAUCE_BOOTSTRAP": kafka.bootstrap, "CAUCE_HOME": str(tmp_path), "CAUCE_TOPIC_PREFIX": prefix}
    with WorkerProcess("w0", port, tmp_path / "w0.log", {**variables, "CAUCE_PARTITIONS": "2"}) as worker:
        resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (1024, 1024))
        for _ in range(2):
            with silent(port, 1500):
                time.sleep(2)
                assert worker.ready
                files = len(os.listdir(f"/proc/{worker.pid}/fd"))  # noqa: PTH208 names will do
                assert files < 300, "of these it has about 70 at rest"
        assert worker.stop() == 0


@pytest.mark.kafka
@pytest.mark.strangers
def test_a_gateway_without_a_free_connection_is_ready_to_its_supervisor_and_not_restarted(tmp_path: Path) -> None:
    home, limit = str(tmp_path / "home"), 32

    def cauce(*arguments: str) -> str:
        environment = {**os.environ, "CAUCE_GATEWAY_CONNECTIONS": str(limit)}
        command = [sys.executable, "-m", "infra", *arguments, "--home", home]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True).stdout

    def gateway() -> dict[str, Any]:
        (row,) = [row for row in json.loads(cauce("status", "--json"))["processes"] if row["role"] == "gateway"]
        return dict(row)

    try:
        cauce("up", "--brokers", "1", "--workers", "0", "--gateways", "1", "--detach")
        before = gateway()
        port = int(before["address"].rpartition(":")[2])
        for _ in range(3):  # longer than a supervisor waits for one that does not answer
            with silent(port, limit + 10):
                time.sleep(6)
                assert page(port, "/livez", 0.5)[0] == 0, "this test would say nothing"
                assert gateway() == before
        assert page(port, "/livez") == (200, "alive")
    finally:
        cauce("down")
