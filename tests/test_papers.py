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
PREFIXES = ("acon", "cf-world", "ots-bench", "pse", "spatialbench-uc")
"""Starts of the names of recipes that repeat a paper."""
RECIPE = re.compile(r"counterprior study recipes (\S+)")
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
"""Digits as the footnotes of a table's cells have them."""
OFFLINE = [
    command
    for command in dict.fromkeys(row["command"] for row in ROWS)
    if re.search(
        r" --offline | (eval|generate) --(suite|prompts) .* \"?render:| prompts --suite "
        r"| race --suite | judge-check .* \S+:pixels | --replay ",
        command,
    )
]
"""Commands that run without models, keys or labels, each once."""


def test_the_page_counts_the_rows_and_shows_them() -> None:
    page = (ROOT / "docs" / "papers.md").read_text()
    assert f"{len(ROWS)} results" in page and papers_page.counts(ROWS) in " ".join(page.split())
    shown = papers_page.with_tables(page)
    assert re.findall(r"^\| ([A-Z]+-\d+) ", shown, re.MULTILINE) == [row["row"] for row in ROWS]


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
        for command in filter(None, row["command"].split(" && ")):
            words = words_of(command)
            assert words is not None and not fault(words, group), row
            assert "--help" not in words, row
        if named := RECIPE.match(row["command"]):
            assert named[1] in recipe_names(), row
    assert len(OFFLINE) > 60
    shown = {named[1] for row in ROWS if (named := RECIPE.match(row["command"]))}
    beyond = {"acon-fig-5"}  # as its twin
    of_papers = {name for name in recipe_names() if name.startswith(PREFIXES)}
    assert len(of_papers) > 50 and of_papers - shown <= beyond, "recipes that no row shows"


@pytest.mark.lane
@pytest.mark.parametrize("command", OFFLINE)
def test_commands_of_the_table_run(command: str, drawn_release: Path, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "counterprior").symlink_to(drawn_release)
    (tmp_path / "agents").symlink_to(ROOT / "agents")
    (tmp_path / "prompts.txt").write_text("a cat to the top left of a dog\n")

    def run(text: str) -> subprocess.CompletedProcess[str]:
        line = re.sub(r"(^|&& )counterprior ", rf"\1{sys.executable} -m counterprior ", text)
        return subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)

    shown = run(command)
    # Things that the renderer can't draw fail, with exit code 1, and cost nobody else.
    assert shown.returncode in ((0,) if "--offline" in command else (0, 1)), shown.stderr
    assert "Traceback" not in shown.stderr, shown.stderr
    if named := RECIPE.match(command):
        done = run(f"counterprior study run {named[1]}.yaml --out studies/{named[1]}")
        assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
        table = run(f"counterprior study table studies/{named[1]}")
        assert table.returncode == 0, table.stderr
        assert_filled(table.stdout)
        verdicts = list((tmp_path / "studies" / named[1]).rglob("verdicts.jsonl"))
        assert verdicts and all(file.stat().st_size for file in verdicts)


def assert_filled(text: str) -> None:
    """The recipe's table has a number, or lacks nothing but the labels of human annotators."""
    table = text[text.index("\n|") :].split("\n\n")[0]
    lines = [line for line in table.strip().splitlines()[2:] if "*paper*" not in line]
    wanting = {
        number.translate(RAISED)
        for number in re.findall(r"^(\d+)\. .*: no label.* of people$", text, re.MULTILINE)
    }
    assert lines, text
    if not any(re.search(r"\| -?[0-9.]+ ", line) for line in lines):
        cells = [cell for line in lines for cell in line.strip("| ").split("|")[1:]]
        assert cells and all(wanting & set(cell.split()) for cell in cells), text


def test_an_empty_table_passes_only_for_want_of_labels() -> None:
    head = "**T**\n\n| judge | kappa |\n| --- | ---: |\n"
    later = "\n\n**Pairs**\n\n| run | p |\n| --- | ---: |\n| SDXL | 0.5 |\n"
    assert_filled(f"{head}| checker | 12.5 |\n")
    assert_filled(f"{head}| checker | ¹ |\n\n1. kappa: no labels of people{later}")
    assert_filled(f"{head}| scene | ¹ ² |\n\n1. limit 4\n2. kappa: no label `accept` of people")
    for empty in (
        f"{head}| checker | ¹ |\n\n1. kappa: no run{later}",
        f"{head}| checker | ¹ |\n| *paper* | 0.5 |{later}",
        f"{head}{later}",
    ):
        with pytest.raises(AssertionError):
            assert_filled(empty)
