"""docs/extend.md is done in a copy of the package: its files, its examples, its commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import ROOT, blocks, words_of

PAGE = ROOT / "docs" / "extend.md"
EXAMPLES = ROOT / "examples" / "extend"
COPY = "$ cp -r examples/extend/* ."
"""Line of the page that puts the examples into the package, and `patches.py` where it is run."""
LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".venv", "build", "dist", "tests", "docs", "tools", "benchmarks", "__pycache__"),
    *(".*_cache", "*.egg-info", "examples"),
)


def patch(path: Path, diff: str) -> None:
    """Applies a diff to a text in which its old lines must be there once."""
    before = "".join(line[1:] for line in diff.splitlines(True) if not line.startswith("+"))
    after = "".join(line[1:] for line in diff.splitlines(True) if not line.startswith("-"))
    text = path.read_text()
    assert text.count(before) == 1, (path, before)
    path.write_text(text.replace(before, after))


def followed(work: Path, package: Path) -> Iterator[tuple[list[str], Path | None]]:
    """Does what the page says, block by block, and yields the commands to run in between, each with
    the file that gets its output."""
    for block in blocks(PAGE):
        if block.language == "diff":
            patch(package / block.title, block.code)
        elif block.language in ("python", "yaml"):
            path = (package if "/" in block.title else work) / block.title
            assert not path.exists(), f"{block.title} is no new file"
            path.write_text(block.code)
        elif block.language == "console":
            for line in block.code.splitlines():
                if line == COPY:
                    shutil.copytree(EXAMPLES, package, dirs_exist_ok=True)
                    shutil.copy(EXAMPLES / "patches.py", work)
                if words := words_of(line.removeprefix("$ ")):
                    _, redirected, name = line.partition(" > ")
                    yield words, work / name if redirected else None


@pytest.mark.lane
def test_the_page_on_extending_does_what_it_says(tmp_path: Path) -> None:
    package = shutil.copytree(ROOT, tmp_path / "source" / "counterprior", ignore=LEFT_OUT)
    work = tmp_path / "work"
    work.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    for words, file in followed(work, package):
        done = subprocess.run(
            [sys.executable, "-m", "counterprior", *words],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        if file is not None:
            file.write_text(done.stdout)

    def value(run: str, name: str) -> float:
        (judged,) = json.loads((work / "runs" / run / "scores.json").read_text())
        scores = {s["name"]: s["value"] for s in judged["scores"] if s["group"] == "all"}
        return float(scores[name])

    assert value("squares", "hom") == 100
    assert value("flipped", "hom") < 60
    assert value("patches", "hom") == 100
    assert value("gap", "accuracy") == 100
    assert value("sizes", "gap") == 0
    assert re.search(r"biased.*100", done.stdout), "the table of the recipe, by the last command"
    modules = [b.title for b in blocks(PAGE) if b.language == "python" and "/" in b.title]
    examples = [path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*/*.py")]
    assert len(modules) == 2 and len(examples) == 5, "on the page; in examples/extend"
    modules += examples
    command = [sys.executable, "-m", "mypy", *modules]
    types = subprocess.run(command, cwd=package, capture_output=True, text=True)
    assert types.returncode == 0, types.stdout
    assert {p.name for p in (work / "runs" / "squares" / "scorers").iterdir()}
