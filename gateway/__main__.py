"""`python -m gateway`: one replica, one process. SIGTERM ends it in order. Exit codes as in cauce/process.py."""

import asyncio
import logging
import logging.config
import signal
import ssl
import sys
from collections.abc import Sequence
from typing import Any, Final

from fastapi import FastAPI
from granian.server.embed import Server

from cauce import logs, tracing
from cauce.errors import CauceError, ConfigError
from cauce.process import (
    EXIT_FAILED,
    STOPPING_SECONDS,
    end_within,
    exit_code,
    raise_open_files,
    refuse_taken_port,
    save_memory,
)
from cauce.settings import Settings
from gateway.app import build, build_health
from gateway.connections import (
    HEALTH_CONNECTIONS,
    connections_within,
    end_when_files_run_out,
    new_server,
)

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
    host, port, health_port = settings.gateway_host, settings.gateway_port, settings.gateway_health_port
    refuse_taken_port(host, port, "CAUCE_GATEWAY_PORT")
    connections = connections_within(raise_open_files(), settings.gateway_connections, settings.live_uploads)
    app = build(settings)
    log_config = logs.dict_config(settings.log_level) | {"loggers": GRANIAN}
    servers = [new_server(app, host, port, connections, log_dictconfig=log_config, **tls(settings))]
    if health_port is not None:
        refuse_taken_port(host, health_port, "CAUCE_GATEWAY_HEALTH_PORT")
        if health_port == port:  # the kernel would share the connections out between the two
            raise ConfigError(f"CAUCE_GATEWAY_HEALTH_PORT is {port}, as CAUCE_GATEWAY_PORT; set another, or none")
        health = build_health(app)
        servers.append(new_server(health, host, health_port, HEALTH_CONNECTIONS, log_dictconfig=log_config))
    end_when_files_run_out()
    async with app.router.lifespan_context(app):
        stop_on_signals(app, servers)
        await run(servers)
    tracing.flush()
    log.info("gateway stopped")


async def run(servers: Sequence[Server]) -> None:
    """Serves until one of them ends, which ends the others."""
    tasks = [asyncio.create_task(server.serve()) for server in servers]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    stop(servers)
    await asyncio.gather(*tasks)


def stop(servers: Sequence[Server]) -> None:
    for server in servers:
        server.stop()  # type: ignore[no-untyped-call]


def stop_on_signals(app: FastAPI, servers: Sequence[Server]) -> None:
    def stop_in_time() -> None:
        log.info("gateway stopping")
        end_within(STOPPING_SECONDS, EXIT_FAILED)
        app.state.stopping.set()
        stop(servers)

    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, stop_in_time)


if __name__ == "__main__":
    sys.exit(main())
