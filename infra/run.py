"""`cauce run`: a cluster for the time of one upload. It ends with us, however we end."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from infra import keeper
from infra.services import Shape


def run_once(upload: list[str], shape: Shape, home: Path | None, options: tuple[str, ...]) -> int:
    """Runs an upload in a cluster of its own; `options` are those of `cauce run` that a resumed run needs again."""
    from producer_client.cli import Caller, run  # noqa: PLC0415 `cauce --help` loads no client

    with a_home(home) as folder:
        keeper.detach(folder, shape, leash=True)
        try:
            gateways = [word for url in keeper.status(folder)["gateways"] for word in ("--gateway", url)]
            return run([*upload, *gateways], program="cauce run", caller=Caller(home is not None, options))
        finally:
            keeper.down(folder)


@contextlib.contextmanager
def a_home(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="cauce-run-") as folder:
        yield Path(folder)
