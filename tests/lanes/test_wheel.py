"""The wheel on an empty machine: docs/python.md runs after nothing but `pip install`."""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from wheels import CONSTRAINTS, ROOT, build_wheel, copy_source, run

pytestmark = [pytest.mark.lane, pytest.mark.online]
PAGE = ROOT / "docs" / "python.md"
RUN = """
import doctest, sys
import counterprior
assert "site-packages" in counterprior.__file__, counterprior.__file__
found = doctest.testfile(
    sys.argv[1],
    module_relative=False,
    optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    globs={"__name__": "__main__"},
)
print(found)
sys.exit(found.failed > 0 or found.attempted < 30)
"""


def test_the_python_page_runs_on_the_installed_wheel(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    bin_ = tmp_path / "venv" / "bin"
    run(bin_ / "pip", "install", "--quiet", "-c", CONSTRAINTS, wheel, cwd=tmp_path)

    work = tmp_path / "work"
    work.mkdir()
    for words in re.findall(r"^\$ counterprior (.*)$", PAGE.read_text(), re.MULTILINE):
        run(bin_ / "counterprior", *words.split(), cwd=work)
    (work / "page.py").write_text(RUN)
    print(run(bin_ / "python", "page.py", PAGE, cwd=work))


def test_the_organisms_are_in_the_wheel(tmp_path: Path) -> None:
    pytest.importorskip("diffusers")
    wheel = build_wheel(tmp_path)
    assert wheel.stat().st_size < 30e6
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    shipped = Path("eval", "checkpoints", "organisms")
    files = sorted(p.relative_to(ROOT) for p in (ROOT / shipped).rglob("*") if p.is_file())
    assert len(files) > 20
    for file in files:
        packed = tmp_path / "site" / "counterprior" / file
        assert packed.read_bytes() == (ROOT / file).read_bytes(), file
    words = ("generate", "--suite", "t2i_homogenization", "--data", "organism:held_out", "--limit")
    site = str(tmp_path / "site")
    start = f"import sys; sys.path.insert(0, {site!r})"
    there = f"assert main.__file__.startswith({site!r})"
    program = f"{start}; import counterprior.cli.main as main; {there}; main.app()"
    for name in ("even", "biased"):
        made = tmp_path / name
        options = (*words, 1, "--generator", f"organism:{name}?steps=2", "--out", made)
        run(sys.executable, "-c", program, *options, cwd=tmp_path)
        assert len([*made.rglob("*.png")]) == 2


def test_wheel_and_sdist_can_be_published(tmp_path: Path) -> None:
    pytest.importorskip("build", reason="pip install 'counterprior[publishing]'")
    pytest.importorskip("twine")
    source = copy_source(tmp_path)
    out = tmp_path / "made"
    run(sys.executable, "-m", "build", "--outdir", out, source, cwd=tmp_path)
    made = sorted(out.iterdir())
    assert [path.suffix for path in made] == [".whl", ".gz"]
    checked = run(sys.executable, "-m", "twine", "check", "--strict", *made, cwd=tmp_path)
    assert checked.count("PASSED") == 2

    with tarfile.open(made[1]) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("README.md", "LICENSE", "eval/core.py", "builders/bank", "cards/templates"):
        assert any(name == needed or name.startswith(f"{needed}/") for name in packed), needed
