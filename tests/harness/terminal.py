"""A command on a terminal of its own: what it writes there, control codes and all."""

import os
import pty
import re
import subprocess
from collections.abc import Sequence

CONTROL = re.compile(r"\x1b|\r|\x08")
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")


def on_a_terminal(command: Sequence[str], **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "CI"}}
    ours, its = pty.openpty()
    child = subprocess.Popen(
        command,
        stdin=its,
        stdout=its,
        stderr=its,
        env={**kept, "TERM": "xterm-256color", "COLUMNS": "100", **variables},
    )
    os.close(its)
    pieces = []
    try:
        while piece := os.read(ours, 65536):
            pieces.append(piece)
    except OSError:
        pass  # Linux says so where the other end is closed
    finally:
        os.close(ours)
    assert child.wait(60) == 0, b"".join(pieces).decode()
    return b"".join(pieces).decode()
