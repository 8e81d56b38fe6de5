"""The process around an app: logs as configured, one sentence for a known error, exit codes that mean something.

0: stopped, all work committed. 2: the operator has to change something. 70: failed, start it again.
"""

import asyncio
import logging
import os
import sys
import threading

import faust

from cauce.errors import CauceError, ConfigError, Unsupported

log = logging.getLogger(__name__)

EXIT_CONFIG = 2
CLOSING_SECONDS = 3.0  # it takes one when all goes well
EXIT_FAILED = 70  # EX_SOFTWARE: restart me, I go on from the last commit


def exit_code(error: BaseException) -> int:
    return EXIT_CONFIG if isinstance(error, ConfigError | Unsupported) else EXIT_FAILED


def end_soon() -> None:
    """All work is committed; what is left is Faust closing its services, and some never end. Do not wait long."""
    watchdog = threading.Timer(CLOSING_SECONDS, os._exit, [0])
    watchdog.daemon = True
    watchdog.start()


class PlainWorker(faust.Worker):
    """Faust's worker without the spinner, which would filter the logs it sits on."""

    def on_setup_root_logger(self, logger: logging.Logger, level: int) -> None:
        self.spinner = None

    async def start(self) -> None:
        try:
            await super().start()
        except CauceError as error:
            log.error("worker did not start", extra={"reason": str(error)})  # noqa: TRY400 a sentence, no traceback
            sys.stderr.write(f"{error}\n")
            await asyncio.shield(self.app.stop())
            raise SystemExit(exit_code(error)) from None
