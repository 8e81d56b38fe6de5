"""`python -m gateway`: one replica, one process. SIGTERM ends it in order. Exit codes as in cauce/process.py."""

import asyncio
import logging
import logging.config
import signal
import ssl
import sys
from typing import Any, Final

from fastapi import FastAPI
from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server

from cauce import logs, tracing
from cauce.errors import CauceError, ConfigError
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
        tracing.start(settings.trace, "gateway")
        asyncio.run(serve(settings))
    except CauceError as error:
        sys.stderr.write(f"{error}\n")
        return exit_code(error)
    return 0


def tls(settings: Settings) -> dict[str, Any]:
    """What granian has to know for HTTPS; nothing where no certificate is set. Its own errors come late and say little:
    the files are read here first, as it will read them."""
    certificate, key = settings.gateway_tls_certificate, settings.gateway_tls_key
    if certificate is None and key is None:
        return {}
    if certificate is None or key is None:
        raise ConfigError("CAUCE_GATEWAY_TLS_CERTIFICATE and CAUCE_GATEWAY_TLS_KEY go together; set both, or none")
    secret = settings.gateway_tls_key_password
    password = secret.get_secret_value() if secret else None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: password or "")
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"TLS: {certificate} with the key {key} cannot be used ({error.strerror or error}); "
            "set CAUCE_GATEWAY_TLS_CERTIFICATE and CAUCE_GATEWAY_TLS_KEY to PEM files that belong together"
        ) from None
    return {"ssl_cert": certificate, "ssl_key": key, "ssl_key_password": password}


async def serve(settings: Settings) -> None:
    refuse_taken_port(settings.gateway_host, settings.gateway_port, "CAUCE_GATEWAY_PORT")
    app = build(settings)
    server = Server(
        app,
        address=settings.gateway_host,
        port=settings.gateway_port,
        interface=Interfaces.ASGINL,  # start-up is ours: its errors are to be seen, and to have an exit code
        http=HTTPModes.http1,  # with TLS, browsers would choose 2, and what we know of slow clients was tried on 1.1
        websockets=False,
        log_dictconfig=logs.dict_config(settings.log_level) | {"loggers": GRANIAN},
        **tls(settings),
    )
    async with app.router.lifespan_context(app):
        stop_on_signals(app, server)
        await server.serve()
    tracing.flush()
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
