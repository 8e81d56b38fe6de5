"""tus-js-client, which the page sends files with: npm fetches it at set-up, and every gateway of the machine finds it.

Invariant: only the pinned bytes are kept and served, since browsers run them. Where there is no npm there is no bundle,
and the page sends files by its own means.
"""

import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Final

from cauce.settings import Settings

NAME: Final = "tus.min.js"
VERSION: Final = "4.3.1"  # the same number is in tests/js/package.json; a unit test holds the two equal
SHA256: Final = "8cbb1b63fccc3bba0ae73ad1deb160ce046c3750851d0c3e94921ae3ef070eb8"


def place(cache: Path) -> Path:
    return cache / f"tus-js-client-{VERSION}" / NAME


def read(cache: Path) -> bytes | None:
    """None where it is not there, or is not what was pinned."""
    try:
        content = place(cache).read_bytes()
    except OSError:
        return None
    return content if is_pinned(content) else None


def keep(source: Path, cache: Path) -> bool:
    """Copy it to where gateways look; False if it is not what was pinned. Two at once do no harm."""
    content = source.read_bytes()
    if is_pinned(content) and read(cache) is None:
        place(cache).parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place(cache).parent, delete=False) as new:
            new.write(content)
        Path(new.name).chmod(0o644)
        Path(new.name).replace(place(cache))
    return is_pinned(content)


def is_pinned(content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == SHA256


def main(arguments: list[str]) -> int:
    source = Path(arguments[0]) / "dist" / NAME
    if not source.is_file():
        sys.stderr.write("no tus-js-client here: the page will send files by its own means\n")
        return 0
    if keep(source, Settings.load().cache):
        return 0
    sys.stderr.write(f"{source} is not the pinned one and was not taken; remove node_modules and run make setup\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
