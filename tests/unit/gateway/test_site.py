"""The page's files: which are served, with which orders to the browser, and that they need nothing from elsewhere."""

import json
import re
from pathlib import Path

import pytest

from cauce import bundle
from cauce.settings import Settings
from gateway.problems import Problem
from gateway.site import FOLDER, Site, headers

ROOT = Path(__file__).parents[3]
GATEWAYS = ("http://127.0.0.1:8080", "http://127.0.0.1:8081")
FILES = sorted(file.name for file in FOLDER.iterdir())


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(Settings.load(cache=tmp_path, gateways=GATEWAYS))


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_served_with_the_policy_and_not_sent_twice(site: Site, name: str) -> None:
    answer = site.answer(name)
    assert bytes(answer.body) == (FOLDER / name).read_bytes()
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    again = site.answer(name, answer.headers["etag"])
    assert (again.status_code, bytes(again.body)) == (304, b"")


@pytest.mark.parametrize("name", ["", "..", "../app.py", "nothing.js", "/etc/passwd"])
def test_nothing_else_is_served(site: Site, name: str) -> None:
    with pytest.raises(Problem) as refused:
        site.answer(name)
    assert refused.value.status == 404


def test_a_browser_may_run_our_scripts_only_and_ask_gateways_only() -> None:
    policy = dict(part.split(" ", 1) for part in headers(GATEWAYS)["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"].split() == ["'self'", *GATEWAYS]
    assert "unsafe" not in str(policy)


@pytest.mark.parametrize("name", FILES)
def test_no_file_needs_another_host_or_makes_markup_of_text(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    hosts = set(re.findall(r"https?://[\w.]+", text)) - {"http://www.w3.org"}  # the name of a vocabulary
    assert not hosts
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)


def test_the_first_page_names_files_that_there_are() -> None:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    named = set(re.findall(r'(?:src|href)="/page/([^"]+)"', page))
    assert named <= {*FILES, bundle.NAME}
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=", page)  # the policy would stop them


def test_imports_name_files_that_there_are() -> None:
    for name in FILES:
        imported = re.findall(r'from "\./([^"]+)"', (FOLDER / name).read_text(encoding="utf-8"))
        assert set(imported) <= set(FILES), name


def test_the_library_is_served_if_it_is_the_pinned_one(tmp_path: Path) -> None:
    place = bundle.place(tmp_path)
    place.parent.mkdir()
    place.write_bytes(b"something else")
    assert bundle.read(tmp_path) is None
    with pytest.raises(Problem):
        Site(Settings.load(cache=tmp_path)).answer(bundle.NAME)


def test_the_library_is_kept_if_it_is_the_pinned_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "tus.min.js"
    source.write_bytes(b"a library")
    assert not bundle.keep(source, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
    monkeypatch.setattr(bundle, "is_pinned", lambda content: content == b"a library")
    assert bundle.keep(source, tmp_path / "cache")
    assert bundle.read(tmp_path / "cache") == b"a library"
    assert bytes(Site(Settings.load(cache=tmp_path / "cache")).answer(bundle.NAME).body) == b"a library"


def test_npm_is_asked_for_the_version_that_is_pinned() -> None:
    wanted = json.loads((ROOT / "tests" / "js" / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert wanted["tus-js-client"] == bundle.VERSION
