"""The tool that says whether a server keeps to tus: it finds the faults of one that does not."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.strangers.tus_checks import CHECKS, Check
from tests.strangers.tus_client import Server
from tests.strangers.tus_conformance import main, verdict


class Yes(BaseHTTPRequestHandler):
    """A server that says yes to everything, and names every extension."""

    def yes(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.send_response(201 if self.command == "POST" else 204)
        self.send_header("Location", "/files/1")
        self.send_header("Tus-Extension", "creation,checksum,termination,expiration,creation-defer-length")
        self.end_headers()

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = yes  # noqa: N815 names of http.server

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def yes() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Yes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/files"
        server.shutdown()


# Of a server that says yes, these are true.
TRUE_OF_YES = {
    "Tus-Extension",
    "Tus-Max-Size",
    "HEAD: 200 or 204",
    "PATCH of the type in capitals",
    "creation is named",
    "creation: 201",
    "metadata smuggles nothing",
    "creation of too much: 413",
    "no deferral of a known length",
    "DELETE: 204",
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name.replace(" ", "-"))
def test_every_check_finds_a_fault(yes: str, check: Check) -> None:
    server = Server(yes, {}, [("filename", "file-{n}.txt")], b"some text\n" * 10)
    named = check.extension.removeprefix("-")
    found = verdict(server, [named], replace(check, extension=named))
    assert found.result == ("holds" if check.name in TRUE_OF_YES else "broken"), str(found)


def test_the_command_prints_a_table_and_says_no(yes: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", yes, "--level", "SHOULD", "--header", "Authorization: Bearer x"]) == 1
    printed = capsys.readouterr().out
    assert "broken" in printed
    assert "“If the resource is not found, the Server SHOULD return either" in printed
    assert "left out" in printed.splitlines()[-1]
