"""`python -m gateway`: one replica, one process. SIGTERM ends it in order. Exit codes as in cauce/process.py."""

import asyncio
import logging
import logging.config
import signal
import sys
from typing import Final

from fastapi import FastAPI
from granian.constants import Interfaces
from granian.server.embed import Server

from cauce import logs
from cauce.errors import CauceError
from cauce.process import EXIT_FAILED, STOPPING_SECONDS, end_within, exit_code, refuse_taken_port, save_memory
from cauce.settings import Settings
from gateway.app import build

log = logging.getLogger("gateway")

# its own loggers would write lines of their own form
GRANIAN: Final = {name: {"level": "WARNING", "propagate": True} for name in ("_granian", "granian.access")}


def main() -> int:
    save_memory()
    try:
        settings = Settings.load()
        logging.config.dictConfig(logs.dict_config(settings.log_level))
        asyncio.run(serve(settings))
    except CauceError as error:
        sys.stderr.write(f"{error}\n")
        return exit_code(error)
    return 0


async def serve(settings: Settings) -> None:
    refuse_taken_port(settings.gateway_host, settings.gateway_port, "CAUCE_GATEWAY_PORT")
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
        end_within(STOPPING_SECONDS, EXIT_FAILED)
        app.state.stopping.set()
        server.stop()  # type: ignore[no-untyped-call]

    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, stop)


if __name__ == "__main__":
    sys.exit(main())
