"""The address of the page, with the operator's token behind the #: browsers send that part to nobody."""

import time
import webbrowser
from pathlib import Path
from typing import Final

from cauce.errors import ConfigError
from cauce.tokens import OPERATOR, Tokens
from infra.processes import State
from infra.services import secret_of
from infra.state import Running

LINK_SECONDS: Final = 12 * 3600.0  # a working day; whoever can read the home can make another


def link(home: Path) -> str:
    running = Running.read(home)
    gateways = running.of_role("gateway") if running else []
    ready = [gateway for gateway in gateways if gateway.state is State.READY]
    if not ready:
        raise ConfigError(f"no gateway is ready in {home}; start a cluster with `cauce up`, or give its --home")
    token = Tokens(secret_of(home).encode()).issue(OPERATOR, time.time() + LINK_SECONDS)
    return f"http://{ready[0].address}/#operator={token}"


def open_in_browser(address: str) -> None:
    if not webbrowser.open(address):
        raise ConfigError("there is no browser on this machine; open the address above in one that reaches it")
