"""docs/papers.md: a row for each thing in the five papers, with a command that shows it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, fault, words_of
from typer.main import get_command

from counterprior.cli.main import app
from counterprior.eval.studies.recipes import recipe_names

sys.path.append(str(ROOT / "tools"))
import papers_page

ROWS = papers_page.read_rows()
COUNTS = {"PSE": (1, 69), "ACON": (70, 96), "CF": (97, 120), "OTS": (1, 68), "UC": (69, 102)}
"""Paper -> first and last number of its rows."""
RECIPE = re.compile(r"counterprior study recipes (\S+)")
OFFLINE = [
    command
    for command in dict.fromkeys(row["command"] for row in ROWS)
    if re.search(r" --offline | eval --suite .* render:| prompts --suite | race --suite ", command)
]
"""Commands that run without models, keys or labels, each once."""


def test_the_page_is_that_of_the_table() -> None:
    assert papers_page.PAGE.read_text() == papers_page.page(ROWS), "tools/papers_page.py"


def test_every_thing_in_the_papers_has_a_row() -> None:
    expected = [f"{paper}-{n}" for paper, (a, b) in COUNTS.items() for n in range(a, b + 1)]
    assert [row["row"] for row in ROWS] == expected and len(expected) == 222
    for row in ROWS:
        assert row["paper"] and row["state"] in papers_page.STATES, row
        # What is here has a command; what is missing or differs has a reason.
        assert row["command"] or row["state"] in ("not yet", "differs"), row
        assert row["note"] or row["state"] == "as published", row


def test_commands_of_the_table_exist() -> None:
    group = get_command(app)
    for row in ROWS:
        words = words_of(row["command"])
        if words is not None:
            assert not fault(words, group), row
        if named := RECIPE.match(row["command"]):
            assert named[1] in recipe_names(), row
    assert len(OFFLINE) > 40
    shown = {named[1] for row in ROWS if (named := RECIPE.match(row["command"]))}
    beyond = {"acon-fig-5"}  # as its twin
    assert set(recipe_names()) - shown <= beyond, "recipes that no row shows"


@pytest.mark.lane
@pytest.mark.parametrize("command", OFFLINE)
def test_commands_of_the_table_run(command: str, full_release: Path, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "counterprior").symlink_to(full_release)

    def run(text: str) -> subprocess.CompletedProcess[str]:
        line = text.replace("counterprior ", f"{sys.executable} -m counterprior ", 1)
        return subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)

    shown = run(command)
    # Things that the renderer can't draw fail, with exit code 1, and cost nobody else.
    assert shown.returncode in ((0,) if "--offline" in command else (0, 1)), shown.stderr
    if named := RECIPE.match(command):
        done = run(f"counterprior study run {named[1]}.yaml --out studies/{named[1]}")
        assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
        table = run(f"counterprior study table studies/{named[1]}")
        assert table.returncode == 0 and re.search(r"\| [0-9.]+ ", table.stdout), table.stderr
