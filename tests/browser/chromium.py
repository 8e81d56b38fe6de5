"""A real Chromium, and what a test sees through it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect, sync_playwright

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
PATIENCE_MS: Final = 120_000  # a machine so busy that a broker is missed and workers have to start again
EXPECTED: Final = "Failed to load resource"  # the browser says so of every answer of 400 and more, which tests provoke


def find_chromium() -> str | None:
    given = os.environ.get("CHROMIUM")
    return given or next((found for program in PROGRAMS if (found := shutil.which(program))), None)


@contextmanager
def running(program: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Tab:
    """A page that must not complain: no script that fails, nothing that its policy forbids, no foreign host."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def listen(self, origins: set[str]) -> None:
        def heard(message: ConsoleMessage) -> None:
            if message.type == "error" and EXPECTED not in message.text:
                self.complaints.append(message.text)

        self.page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        # From the start: asked for with the key that opens a chooser, the browser was seen to be told too late.
        self.page.on("filechooser", lambda chooser: None)
        self.page.on("console", heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "request",
            lambda request: (
                None
                if any(request.url.startswith(origin) for origin in origins)
                else self.complaints.append(request.url)
            ),
        )

    def session(self, number: int = 0) -> Locator:
        """The newest is the first."""
        return self.page.locator(".session").nth(number)

    def choose(self, folder: Path) -> None:
        self.page.locator("#folder").set_input_files(folder)

    def start(self) -> None:
        self.page.get_by_role("button", name="Upload and ask").click()

    def drop(self, *paths: Path) -> None:
        """As a hand does it: the browser itself opens the folders."""
        box = self.page.locator("#drop").bounding_box()
        assert box is not None
        hand = self.page.context.new_cdp_session(self.page)
        what: dict[str, Any] = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        for step in ("dragEnter", "dragOver", "drop"):
            at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + 20}
            hand.send("Input.dispatchDragEvent", {"type": step, **at, "data": what})

    def downloads(self, into: Path, number: int = 0) -> dict[str, bytes]:
        """Every answer of a session as the link saves it; each is opened, looked at and downloaded."""
        session, found = self.session(number), {}
        for query in session.locator(".query").all():
            if query.get_attribute("aria-expanded") != "true":
                query.click()
            link = session.locator(".answer a.button")
            expect(session.locator(".answer tbody")).to_be_attached()
            with self.page.expect_download() as saved:
                link.click()
            path = into / saved.value.suggested_filename
            saved.value.save_as(path)
            found[path.name] = path.read_bytes()
        return found

    def wait_answered(self, number: int = 0) -> None:
        expect(self.session(number).locator(".badge")).to_have_attribute("data-state", "done")
