"""The site is built as `make docs` does, without a warning, and fetches nothing from elsewhere.

COUNTERPRIOR_NODE_MODULES: a folder with puppeteer-core and axe-core, for the test of every page on
phones and of its accessibility.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pages import ROOT, fault, words_of
from typer.main import get_command

import counterprior
from counterprior.cli.main import app

pytestmark = pytest.mark.lane
PAGES = Path(__file__).with_name("site_pages.mjs")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="make docs installs what builds it")
    pytest.importorskip("mkdocstrings")
    root = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", root)
    (root / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "fenced_examples.py", root / "tools")
    for command in (
        [sys.executable, str(ROOT / "tools" / "docs_site.py"), str(root / "build" / "docs")],
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"],
    ):
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout, done.stderr)
    return root / "build" / "site"


class Fetched(HTMLParser):
    """Addresses that a browser asks for by itself, not those that a reader clicks on."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        names = {"link": "href", "a": ""}.get(tag, "src")
        if (address := given.get(names)) and given.get("rel") != "canonical":
            self.found.append(address)


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        reader = Fetched()
        reader.feed(page.read_text())
        assert reader.found
        assert [a for a in reader.found if re.match(r"(https?:)?//", a)] == [], page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text()), style.name


def test_every_command_and_public_name_is_in_the_reference(site: Path) -> None:
    group = get_command(app)
    text = "".join(page.read_text() for page in (site / "reference").glob("cli-*.html"))
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        for part in getattr(command, "commands", {"": command}):
            assert f"<code>{f'counterprior {name} {part}'.strip()}</code>" in text, (name, part)
    public = (site / "reference" / "api-counterprior.html").read_text()
    missing = [n for n in counterprior.__all__ if f"counterprior.{n}" not in public]
    assert missing == ["__version__"]


def test_every_module_is_described_once(site: Path) -> None:
    pages = (site.parent / "docs" / "reference").glob("api-*.md")
    modules = [
        line for page in pages for line in page.read_text().splitlines() if line[:3] == "## "
    ]
    assert len(modules) > 200
    assert [module for module, times in Counter(modules).items() if times > 1] == []


def test_examples_of_the_commands_parse(site: Path) -> None:
    group = get_command(app)
    pages = sorted((site.parent / "docs" / "reference").glob("cli-*.md"))
    lines = [line for page in pages for line in page.read_text().splitlines()]
    shown = [w for line in lines if line[:2] == "$ " and (w := words_of(line[2:])) is not None]
    assert len(shown) > 40
    assert [(words, why) for words in shown if (why := fault(words, group))] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_fits_a_phone_and_is_accessible(site: Path, theme: str) -> None:
    modules = os.environ.get("COUNTERPRIOR_NODE_MODULES")
    if CHROMIUM is None or modules is None:
        pytest.skip("no Chromium on the path, or COUNTERPRIOR_NODE_MODULES is not set")
    done = subprocess.run(
        ["node", PAGES, modules, CHROMIUM, site, theme], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["problems"] == []
    names = {page.relative_to(site).as_posix() for page in site.rglob("*.html")} - {"404.html"}
    shown = {(page["name"], page["width"]) for page in seen["pages"]}
    assert shown == {(name, width) for name in names for width in (390, 1280)}
    for page in seen["pages"]:
        where = (page["name"], page["width"])
        assert page["scheme"] == {"light": "default", "dark": "slate"}[theme], where
        assert page["needed"] <= page["width"], where
        assert page["cut"] == [], where
        assert page["torn"] == [], where
        assert page["faults"] == [], where
