"""The report as a browser shows it: opened from disk in headless Chromium, without network.

COUNTERPRIOR_NODE_MODULES: a folder with puppeteer-core and axe-core, for the tests of phones, of
accessibility and of buttons.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.lane

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FITS = 'class="image fits"'
PAGES = Path(__file__).with_name("report_pages.mjs")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="module")
def site(text_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of one run of 60 images; read only."""
    import sys

    root = tmp_path_factory.mktemp("browser")
    command = [sys.executable, "-m", "counterprior"]
    suite = ["--suite", "t2i_homogenization", "--data", text_release, "--limit", 30]
    spec = ["--generator", "render:?order_bias=1&missing=0.3", "--judge", "pixels"]
    for arguments in (
        ["eval", *suite, *spec, "--out", root / "run"],
        ["report", root / "run", "--out", root / "site"],
    ):
        done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return root / "site"


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., str]:
    """Chromium on one page: its document after the script has run, or another output."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on the path")

    def run(address: str, *options: str) -> str:
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu"]
        command += ["--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}"]
        command += ["--virtual-time-budget=3000", *(options or ["--dump-dom"]), address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        assert not complaints, complaints
        return done.stdout

    return run


def test_every_page_opens_without_a_complaint(site: Path, browse: Callable[..., str]) -> None:
    for page in site.glob("*.html"):
        assert "<h1>" in browse(page.as_uri()), page.name


def test_the_gallery_shows_and_filters(site: Path, browse: Callable[..., str]) -> None:
    address = (site / "gallery-run.html").as_uri()
    whole = browse(address)
    # Both orders of one item stand side by side.
    assert whole.count(FITS) == 48 and whole.count('class="sides"') == 24
    assert "60 images in 30 items" in whole and "page 1 of 2" in whole
    assert whole.count('class="prompt" dir="auto"') == 48  # prompts may be read from the right
    assert 'loading="lazy"' not in whole  # else what is below the window is printed as a blank
    assert browse(f"{address}#page=2").count(FITS) == 12
    badge = re.search(r'value="invalid"> invalid <span class="badge">(\d+)<', whole)
    assert badge is not None and int(badge[1]) > 0
    assert browse(f"{address}#flag=invalid").count(FITS) == int(badge[1])
    swapped = browse(f"{address}#flag=invalid&variant=swapped")
    assert 0 < swapped.count(FITS) < int(badge[1])
    assert swapped.count('class="variant">plain') == swapped.count('class="variant">swapped')
    assert "No image matches." in browse(f"{address}#text=zzz-nothing")


def test_pages_print(site: Path, tmp_path: Path, browse: Callable[..., str]) -> None:
    pdf = tmp_path / "page.pdf"
    browse((site / "index.html").as_uri(), f"--print-to-pdf={pdf}")
    assert pdf.read_bytes().startswith(b"%PDF")


def test_pages_fit_a_phone_are_accessible_and_their_buttons_work(site: Path) -> None:
    modules = os.environ.get("COUNTERPRIOR_NODE_MODULES")
    if CHROMIUM is None or modules is None:
        pytest.skip("no Chromium on the path, or COUNTERPRIOR_NODE_MODULES is not set")
    done = subprocess.run(
        ["node", PAGES, modules, CHROMIUM, site], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["problems"] == []
    shown = {(page, width, theme) for page, width, theme, *_ in seen["pages"]}
    names = {path.name for path in site.glob("*.html")}
    assert shown == {(n, w, t) for n in names for w in (390, 1280) for t in ("light", "dark")}
    for page, width, theme, needed, faults, misplaced in seen["pages"]:
        assert needed <= width, (page, needed)
        assert misplaced == [], (page, width)
        assert faults == [], (page, theme)
    (result,) = json.loads((site / "report.json").read_text())["results"]
    scores = result["scores"]
    headline = next(s for s in scores if (s["name"], s["group"]) == ("order_bias", "all"))
    head, row = seen["csv"].strip().splitlines()
    told = dict(zip(head.split(","), row.split(","), strict=True))
    assert (float(told["value"]), int(told["n"])) == (headline["value"], headline["n"])
    assert [float(told["low"]), float(told["high"])] == headline["interval"]
    assert seen["markdown"].splitlines()[1] == "| --- | --- |"
    assert seen["latex"].splitlines()[1:3] == ["\\begin{tabular}{ll}", "\\toprule"]
    assert "t2i\\_homogenization" in seen["latex"]
    shown, whole = seen["rows"]
    assert 0 < shown < whole == len(scores)
    assert "How far mention order decides" in seen["meaning"]
    large, preview = seen["large"]
    assert large == 512 > preview == 256 and seen["mirrored"] == 0
