"""The exactly-once core, and the Faust app that runs on it: `faust -A streams worker`."""

import sys
from typing import Any

from cauce.errors import ConfigError


def __getattr__(name: str) -> Any:
    """`streams.app`, built when somebody asks: importing a part of the core must not read settings or build an app."""
    if name != "app":
        raise AttributeError(f"module 'streams' has no attribute {name!r}")
    from streams.wiring import build_app  # noqa: PLC0415 the reason for this function

    try:
        return build_app()
    except ConfigError as error:  # Faust's command line would print where it was raised, not what to do
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None
