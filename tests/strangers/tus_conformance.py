"""Says whether a server keeps to tus 1.0.0. Any server, by raw HTTP:

python -m tests.strangers.tus_conformance --url URL --header 'Name: value' --metadata 'filename {n}.csv' --body FILE

Only the address is needed. `{n}` in a value of the metadata is another number for each upload, for a server that wants
other names. Not checked, as they take long or few servers name them: uploads that expire, timeouts, checksum-trailer,
concatenation.
"""

import argparse
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.strangers.tus_checks import CHECKS, Check
from tests.strangers.tus_client import Broken, Server

LEVELS = ("MUST", "SHOULD", "strict")


@dataclass(frozen=True, slots=True)
class Verdict:
    check: Check
    result: Literal["holds", "broken", "left out"]
    why: str = ""

    def __str__(self) -> str:
        where = self.check.extension.removeprefix("-")
        depends = ", depends on content" if self.check.of_content else ""
        line = f"{self.result:9} {self.check.level:7} {where:22} {self.check.name}{depends}"
        return line if self.result != "broken" else f"{line}\n          “{self.check.quote}”\n          {self.why}"


def verdict(server: Server, extensions: Collection[str], check: Check) -> Verdict:
    """Runs a check, unless it is about what the server's Tus-Extension does not name."""
    wanted = check.extension.removeprefix("-")
    if wanted != "core" and (wanted in extensions) is check.extension.startswith("-"):
        return Verdict(check, "left out")
    try:
        check.run(server)
    except (Broken, OSError) as error:
        return Verdict(check, "broken", str(error))
    return Verdict(check, "holds")


def pair(text: str, separator: str) -> tuple[str, str]:
    name, found, value = text.partition(separator)
    if not found:
        raise SystemExit(f"{text!r}: wanted is NAME{separator}VALUE")
    return name.strip(), value.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("tus_conformance", description="Does a server keep to tus 1.0.0?")
    parser.add_argument("--url", required=True, help="where uploads are created")
    parser.add_argument("--header", action="append", default=[], help="'Name: value', of every request")
    parser.add_argument("--metadata", action="append", default=[], help="'key value', of every upload; {n} is a number")
    parser.add_argument("--body", type=Path, help="a file that the server takes; else some text")
    parser.add_argument("--level", action="append", choices=LEVELS, help="only these; else all")
    given = parser.parse_args(arguments)
    server = Server(
        given.url,
        dict(pair(text, ":") for text in given.header),
        [pair(text, " ") for text in given.metadata or ["filename file-{n}.txt"]],
        given.body.read_bytes() if given.body else b"some text\n" * 100,
    )
    found = []
    extensions = server.extensions()
    for check in CHECKS:
        if not given.level or check.level in given.level:
            print(one := verdict(server, extensions, check), flush=True)
            found.append(one.result)
    print(", ".join(f"{found.count(result)} {result}" for result in ("holds", "broken", "left out")))
    return 1 if "broken" in found else 0


if __name__ == "__main__":
    sys.exit(main())
