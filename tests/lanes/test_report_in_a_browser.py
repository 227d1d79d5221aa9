"""The report as a browser shows it: opened from disk in headless Chromium, without network."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.lane

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
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
    assert whole.count('<li id="') == 48 and "page 1 of 2" in whole
    assert whole.count('class="prompt" dir="auto"') == 48  # prompts may be read from the right
    assert browse(f"{address}#page=2").count('<li id="') == 12
    badge = re.search(r'value="invalid"> invalid <span class="badge">(\d+)<', whole)
    assert badge is not None and int(badge[1]) > 0
    assert browse(f"{address}#flag=invalid").count('<li id="') == int(badge[1])
    swapped = browse(f"{address}#flag=invalid&variant=swapped")
    assert 0 < swapped.count('<li id="') < int(badge[1])
    assert "No image matches." in browse(f"{address}#text=zzz-nothing")


def test_pages_print(site: Path, tmp_path: Path, browse: Callable[..., str]) -> None:
    pdf = tmp_path / "page.pdf"
    browse((site / "index.html").as_uri(), f"--print-to-pdf={pdf}")
    assert pdf.read_bytes().startswith(b"%PDF")
