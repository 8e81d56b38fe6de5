"""The process around an app: logs as configured, one sentence for a known error, exit codes as in cauce/process.py."""

import asyncio
import logging
import sys
from typing import Any

import faust

from cauce.errors import CauceError
from cauce.process import EXIT_FAILED, STOPPING_SECONDS, end_within, exit_code, raise_open_files, save_memory

log = logging.getLogger(__name__)

CLOSING_SECONDS = 3.0  # it takes one when all goes well


def end_soon(code: int) -> None:
    """All work is committed; what is left is Faust closing its services, and some never end. Do not wait long."""
    end_within(CLOSING_SECONDS, code)


class PlainWorker(faust.Worker):
    """Faust's worker without the spinner, which would filter the logs it sits on."""

    def on_setup_root_logger(self, logger: logging.Logger, level: int) -> None:
        self.spinner = None

    def _schedule_shutdown(self, signal: Any) -> None:
        """Asked to stop: it commits what was begun and ends with 0, or, should Kafka not answer in time, it just ends.
        Nothing is lost: the next one goes on from the last commit."""
        end_within(STOPPING_SECONDS, EXIT_FAILED)
        self.app.is_asked_to_stop |= self.crash_reason is None  # type: ignore[attr-defined]
        super()._schedule_shutdown(signal)

    def stop_and_shutdown(self) -> None:
        try:
            super().stop_and_shutdown()
        finally:
            if self.app.engine.has_failed:  # type: ignore[attr-defined]
                raise SystemExit(EXIT_FAILED)  # and not 0, although Faust came to its end before the failure ended us

    def _shutdown_loop(self) -> None:
        try:
            super()._shutdown_loop()
        except BaseException as error:  # a timer that called sys.exit() crashed, like any other
            if not (self.app.is_asked_to_stop and self.app.all_is_committed):  # type: ignore[attr-defined]
                raise self._ended_by(error) from error
            # services that are asked to stop in the middle of their start may crash on the way down
            log.info("a service crashed while stopping, after the last commit", extra={"reason": repr(error)})

    def _ended_by(self, error: BaseException) -> SystemExit:
        if isinstance(error, CauceError):
            sys.stderr.write(f"{error}\n")
        return SystemExit(exit_code(error))

    async def start(self) -> None:
        save_memory()
        raise_open_files()
        try:
            await super().start()
        except Exception as error:
            is_known = isinstance(error, CauceError)  # then a sentence will do
            log.error(  # noqa: TRY400
                "worker did not start", extra={"reason": str(error)}, exc_info=None if is_known else error
            )
            self.app.crash_reason = error
            await asyncio.shield(self.app.stop())
            raise self._ended_by(error) from None
