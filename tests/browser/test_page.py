"""The page in a real Chromium on a real cluster: files in, the oracle's bytes out, whatever falls meanwhile."""

import re
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Browser, expect

from cauce import bundle
from cauce.settings import Settings
from infra import events, keeper, page_link
from infra.generate.datasets import GENERATORS
from infra.oracle.datasets import ORACLES
from infra.oracle.sentiment import Sentiment
from infra.processes import Process, wait_until
from infra.services import Shape
from tests.browser.chromium import PATIENCE_MS, Tab, find_chromium, running

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.timeout(300)]

SHAPE = Shape(brokers=1, workers=2, gateways=2, partitions=4, supervisors=1)
ROWS = {"movies": 5000, "flights": 3000, "coffee": 3000}
CHECKS = Path(__file__).with_name("checks.js").read_text(encoding="utf-8")
WIDTHS = (390, 1280)  # of a phone, of a desk

label_of = cache(Sentiment())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("NO CHROMIUM: the page is not tested; apt-get install chromium, or set CHROMIUM to a browser")
    with running(program) as browser:
        yield browser


@pytest.fixture(scope="module")
def home(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("page") / "home"
    keeper.detach(folder, SHAPE)
    yield folder
    keeper.down(folder)


@pytest.fixture
def tab(browser: Browser, home: Path) -> Iterator[Tab]:
    """The page of the first gateway, as a person who was never here sees it."""
    gateways = gateways_of(home)
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = Tab(context.new_page())
    tab.listen(set(gateways))
    tab.page.goto(gateways[0])
    yield tab
    print(*tab.page.locator(".session").all_inner_texts(), *events.read(home, 20), sep="\n")  # shown if it failed
    context.close()
    assert not tab.complaints


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for dataset, rows in ROWS.items():
        GENERATORS[dataset](folder / dataset, rows, 3, lambda file, all_rows, done: None)
    return folder


def expected(files: Path, dataset: str) -> dict[str, bytes]:
    answers: dict[str, bytes] = ORACLES[dataset].answer(files / dataset, "us", label_of).files
    return answers


def gateways_of(home: Path) -> list[str]:
    found: list[str] = keeper.status(home)["gateways"]
    return found


def state_of(home: Path, role: str, index: int) -> str:
    rows = keeper.status(home)["processes"]
    return next(str(row["state"]) for row in rows if (row["role"], row["index"]) == (role, index))


def process_of(home: Path, role: str, index: int) -> Process:
    rows = keeper.status(home)["processes"]
    return Process.of(next(row["pid"] for row in rows if (row["role"], row["index"]) == (role, index)))


def test_a_folder_dropped_on_the_page_gives_the_oracles_bytes(tab: Tab, files: Path, tmp_path: Path) -> None:
    is_there = bundle.read(Settings.load().cache) is not None
    assert tab.page.evaluate("typeof globalThis.tus !== 'undefined'") == is_there  # tus-js-client did it, if npm had it
    tab.drop(files / "movies")
    tab.start()
    tab.wait_answered()
    assert tab.downloads(tmp_path) == expected(files, "movies")
    rejected = tab.session().locator(".rejected summary").first
    expect(rejected).to_have_text(re.compile(r"^[1-9][0-9]* rejected$"))
    unused = tab.session().locator(".unused:visible").first
    expect(unused).to_have_text(re.compile(r"^[1-9][0-9,]* rows? that no query uses$"))
    tab.session().locator("[data-query=movies-q2] .query").click()
    expect(tab.session().get_by_role("img", name=re.compile("^Budget of films"))).to_be_visible()


def test_ticked_queries_alone_are_asked_for_and_other_files_stay_here(tab: Tab, files: Path, tmp_path: Path) -> None:
    page = tab.page
    boxes = page.get_by_role("group", name="Queries").get_by_role("checkbox")
    expect(boxes).to_have_count(5)
    for number in range(5):
        expect(boxes.nth(number)).to_be_checked()
    tab.choose(files / "movies")
    for number in range(5):
        boxes.nth(number).uncheck()
    expect(page.locator("#start")).to_be_disabled()
    expect(page.locator("#new-note")).to_have_text("tick at least one query")
    for number in (0, 1):
        boxes.nth(number).check()
    expect(page.locator("#options")).to_be_hidden()  # of query 5
    expect(page.locator("#wanted")).to_have_text("movies_metadata.csv")
    expect(page.locator("#chosen")).to_contain_text("ratings.csvstays here: no ticked query reads it")
    tab.start()
    tab.wait_answered()
    expect(tab.session().locator("[data-query]")).to_have_count(2)
    expect(tab.session().locator(".file-name")).to_have_text(["movies_metadata.csv"])
    page.reload()  # the choice outlives it
    tab.wait_answered()
    some = {
        name: text for name, text in expected(files, "movies").items() if name in ("movies-q1.csv", "movies-q2.csv")
    }
    assert tab.downloads(tmp_path) == some


def test_without_the_library_the_page_sends_files_by_its_own_means(tab: Tab, files: Path, tmp_path: Path) -> None:
    tab.page.route("**/tus.min.js", lambda route: route.abort())
    tab.page.reload()
    assert tab.page.evaluate("typeof globalThis.tus === 'undefined'")
    tab.drop(*sorted((files / "flights").iterdir()))
    expect(tab.page.get_by_role("radio", name="Flights")).to_be_checked()  # the names of the files tell
    tab.start()
    tab.wait_answered()
    assert tab.downloads(tmp_path) == expected(files, "flights")
    tab.session().locator("[data-query=flights-q4] .query").click()
    expect(tab.session().get_by_role("img", name=re.compile("by .* destinations"))).to_be_visible()


def test_the_keyboard_alone_is_enough(tab: Tab, files: Path) -> None:
    page = tab.page
    expect(page.get_by_role("radio", name="Films")).to_be_checked()
    reach(tab, "choose-files")
    with page.expect_file_chooser() as asked:
        page.keyboard.press("Enter")
    asked.value.set_files(sorted((files / "coffee").rglob("*.csv")))
    expect(page.get_by_role("radio", name="Coffee shops")).to_be_checked()
    reach(tab, "start")
    page.keyboard.press("Enter")
    tab.wait_answered()
    second = tab.session().locator("[data-query=coffee-q2] button")
    second.focus()
    page.keyboard.press("Enter")
    expect(second).to_have_attribute("aria-expanded", "true")
    expect(tab.session().locator(".answer h4")).to_have_text("Best items of each month")
    expect(page.locator("#say")).not_to_be_empty()  # a screen reader heard of it
    page.get_by_role("tab", name="Sessions").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tabpanel", name="Cluster")).to_be_visible()
    expect(page.get_by_label("Operator's token")).to_be_visible()  # and not the cluster


def reach(tab: Tab, wanted: str) -> None:
    """By Tab, from the top; whoever has the focus shows it."""
    tab.page.evaluate("document.activeElement.blur()")
    for _ in range(40):
        tab.page.keyboard.press("Tab")
        if tab.page.evaluate("document.activeElement.id") == wanted:
            assert tab.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            return
    pytest.fail(f"the Tab key does not lead to {wanted}")


def test_a_reload_keeps_the_session_and_the_upload_goes_on_with_the_same_files(tab: Tab, files: Path) -> None:
    tab.page.route(re.compile("/uploads/ratings$"), lambda route: route.abort())  # it cannot be sent before the reload
    tab.choose(files / "movies")
    tab.start()
    expect(tab.session().locator("[data-query=movies-q2] .query")).to_have_attribute("data-state", "done")
    tab.page.unroute_all()
    tab.page.reload()
    expect(tab.session().locator(".badge")).to_have_attribute("data-state", "paused")
    with tab.page.expect_file_chooser() as asked:
        tab.session().get_by_role("button", name="Choose the same files again…").click()
    asked.value.set_files(files / "movies" / "ratings.csv")
    tab.wait_answered()
    tab.page.reload()
    tab.wait_answered()
    tab.session().get_by_role("button", name=re.compile("^End session")).click()
    expect(tab.page.locator(".session")).to_have_count(0)
    tab.page.reload()
    expect(tab.page.get_by_text("None yet in this tab")).to_be_visible()


def test_a_bad_file_gets_an_error_that_a_person_can_use(tab: Tab, files: Path, tmp_path: Path) -> None:
    for name in ("movies_metadata.csv", "credits.csv"):
        (tmp_path / name).write_bytes((files / "movies" / name).read_bytes())
    (tmp_path / "ratings.csv").write_text("userId,movieId,stars\n1,2,3.0\n", encoding="utf-8")
    tab.choose(tmp_path)
    tab.start()
    trouble = tab.session().locator(".files .trouble:visible")
    expect(trouble).to_contain_text("rating")  # the column that is not there
    expect(trouble).to_contain_text("ratings.csv")
    failed = tab.session().locator("[data-query=movies-q3] .query")
    expect(failed).to_have_attribute("data-state", "failed")
    expect(tab.session().locator("[data-query=movies-q1] .query")).to_have_attribute("data-state", "done")
    expect(tab.session().locator(".badge")).to_have_text("Failed")
    good = (files / "movies" / "ratings.csv").read_bytes()
    (tmp_path / "ratings.csv").write_bytes(good)  # it was put right
    with tab.page.expect_file_chooser() as asked:
        tab.session().get_by_role("button", name="Choose the same files again…").click()
    asked.value.set_files(tmp_path / "ratings.csv")
    tab.wait_answered()
    expect(trouble).to_have_count(0)
    expect(tab.session().get_by_role("button", name="Choose the same files again…")).to_be_hidden()
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    assert tab.downloads(downloads) == expected(files, "movies")


def test_when_its_gateway_is_killed_the_page_goes_on_at_another(
    tab: Tab, home: Path, files: Path, tmp_path: Path
) -> None:
    expect(tab.page.locator("#where")).to_contain_text("2 gateways known")
    tab.choose(files / "movies")
    process_of(home, "gateway", 0).send(signal.SIGKILL)
    tab.start()
    tab.wait_answered()
    assert tab.downloads(tmp_path) == expected(files, "movies")
    other = gateways_of(home)[1].removeprefix("http://")
    expect(tab.page.locator("#where")).to_contain_text(other)
    # The tests that follow begin at the gateway that was killed.
    wait_until(lambda: state_of(home, "gateway", 0) == "ready", seconds=60, otherwise="the gateway is not back")


def test_the_operator_sees_a_worker_die_and_return_and_a_transaction_hang(tab: Tab, home: Path) -> None:
    tab.page.goto(page_link.link(home))
    tab.page.reload()
    assert "operator." not in tab.page.url  # the token does not stay in the address
    worker = tab.page.locator("[data-process=worker-0]")
    expect(worker).to_have_attribute("data-state", "ready")
    expect(tab.page.locator("[data-process]")).to_have_count(6)
    hanging = hang(home)
    before = process_of(home, "worker", 0)
    before.send(signal.SIGKILL)
    expect(worker).not_to_have_attribute("data-state", "ready")
    event = tab.page.locator(".events li", has_text=re.compile("worker 0 ended.*SIGKILL"))
    expect(event.first).to_be_attached()
    expect(worker).to_have_attribute("data-state", "ready")
    expect(worker.locator(".facts")).to_contain_text(re.compile("Restarts[1-9]"))
    assert process_of(home, "worker", 0) != before
    expect(tab.page.locator(".events li", has_text=re.compile("worker 0 ready after")).first).to_be_attached()
    stall = tab.page.get_by_text(re.compile(r"airports-0: stable up to"))
    expect(stall).to_be_visible()
    hanging.abort_transaction()
    expect(stall).to_have_count(0)


def hang(home: Path) -> Producer:
    """A transaction that was begun and is left open."""
    settings = {"bootstrap.servers": keeper.status(home)["bootstrap"], "transactional.id": "hangs"}
    producer = Producer({**settings, "transaction.timeout.ms": PATIENCE_MS})  # longer than a test waits for the stall
    producer.init_transactions(PATIENCE_MS / 1000)
    producer.begin_transaction()
    producer.produce("airports", b"never seen", partition=0)
    assert producer.flush(PATIENCE_MS / 1000) == 0
    return producer


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_has_a_name_is_legible_and_fits_a_phone(theme: str, tab: Tab, home: Path, files: Path) -> None:
    tab.page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    tab.choose(files / "movies")
    look(tab)
    tab.start()
    tab.wait_answered()
    tab.session().locator("[data-query=movies-q2] .query").click()
    expect(tab.session().locator(".answer svg")).to_be_visible()
    look(tab)
    tab.page.goto(page_link.link(home))
    tab.page.reload()
    expect(tab.page.locator("[data-process]")).to_have_count(6)
    look(tab)
    tab.page.get_by_role("button", name=re.compile("Dark|Light")).click()
    assert tab.page.evaluate("document.documentElement.dataset.theme") == {"light": "dark", "dark": "light"}[theme]


def look(tab: Tab) -> None:
    for width in WIDTHS:
        tab.page.set_viewport_size({"width": width, "height": 900})
        assert tab.page.evaluate(CHECKS) == []


def test_the_look_finds_what_is_wrong(tab: Tab) -> None:
    expect(tab.page.get_by_role("radio", name="Films")).to_be_checked()
    assert tab.page.evaluate(CHECKS) == []
    tab.page.evaluate("""() => {
        const pale = Object.assign(document.createElement("p"), { textContent: "pale" })
        pale.style.color = "rgb(200 200 200)"
        const wide = document.createElement("div")
        wide.style.width = "3000px"
        wide.append("wide")
        const [nameless, deep] = ["button", "h4"].map((tag) => document.createElement(tag))
        document.querySelector(".card").append(nameless, pale, wide, deep)
    }""")
    found = " ".join(tab.page.evaluate(CHECKS))
    for complaint in (
        "has no name",
        "pale: contrast 1.",
        "reaches out of its card",
        "h4 follows h2",
        "wide, the window",
    ):
        assert complaint in found
