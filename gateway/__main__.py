"""`python -m gateway`: one replica, one process. SIGTERM ends it in order: 0 when all that was begun is committed.

2: the operator has to change something. 70: failed, start it again.
"""

import asyncio
import logging
import logging.config
import os
import signal
import socket
import sys
import threading
from typing import Final

from fastapi import FastAPI
from granian.constants import Interfaces
from granian.server.embed import Server

from cauce import logs
from cauce.errors import CauceError, ConfigError
from cauce.settings import Settings
from gateway.app import build

log = logging.getLogger("gateway")

EXIT_CONFIG: Final = 2
EXIT_FAILED: Final = 70
# its own loggers would write lines of their own form
GRANIAN: Final = {name: {"level": "WARNING", "propagate": True} for name in ("_granian", "granian.access")}
STOPPING_SECONDS: Final = 9.0  # supervisors and orchestrators kill after ten


def main() -> int:
    try:
        settings = Settings.load()
        logging.config.dictConfig(logs.dict_config(settings.log_level))
        asyncio.run(serve(settings))
    except CauceError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_CONFIG if isinstance(error, ConfigError) else EXIT_FAILED
    return 0


async def serve(settings: Settings) -> None:
    refuse_taken_port(settings.gateway_host, settings.gateway_port)
    app = build(settings)
    server = Server(
        app,
        address=settings.gateway_host,
        port=settings.gateway_port,
        interface=Interfaces.ASGINL,  # start-up is ours: its errors are to be seen, and to have an exit code
        websockets=False,
        log_dictconfig=logs.dict_config(settings.log_level) | {"loggers": GRANIAN},
    )
    async with app.router.lifespan_context(app):
        stop_on_signals(app, server)
        await server.serve()
    log.info("gateway stopped")


def stop_on_signals(app: FastAPI, server: Server) -> None:
    def stop() -> None:
        log.info("gateway stopping")
        watchdog = threading.Timer(STOPPING_SECONDS, os._exit, [EXIT_FAILED])
        watchdog.daemon = True
        watchdog.start()
        app.state.stopping.set()
        server.stop()  # type: ignore[no-untyped-call]

    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, stop)


def refuse_taken_port(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"{host}:{port}: {error.strerror}; every gateway of a machine needs its own CAUCE_GATEWAY_PORT"
            ) from None


if __name__ == "__main__":
    sys.exit(main())
