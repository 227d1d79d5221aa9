"""The README is run, with the pages that list configs and commands: their examples and numbers."""

import doctest
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from counterprior.builders.suites import SUITES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CONFIGS = (ROOT / "docs" / "configs.md").read_text()
COMMANDS = (ROOT / "docs" / "commands.md").read_text()
SCORING = (ROOT / "docs" / "scoring.md").read_text()


def test_the_examples_print_what_they_say(
    full_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "counterprior").symlink_to(full_release)
    monkeypatch.chdir(tmp_path)
    together = README + CONFIGS
    examples = doctest.DocTestParser().get_doctest(together, {}, "README.md", "README.md", 0)
    assert len(examples.examples) >= 8
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(examples)
    assert runner.failures == 0


def test_the_table_has_every_config_and_its_rows() -> None:
    table = dict(re.findall(r"^\| `(\w+)` \| ([\d,]+|all) \|", CONFIGS, re.MULTILINE))
    assert table == {
        name: f"{suite.rows:,}" if suite.rows else "all" for name, suite in SUITES.items()
    }
    (told,) = re.findall(r"The (\d+) \[configs\].* more than ([\d,]+) rows", README)
    rows = sum(suite.rows or 0 for suite in SUITES.values())
    assert int(told[0]) == len(SUITES) and 0.9 * rows < int(told[1].replace(",", "")) < rows
    relations = sum(suite.rows or 0 for name, suite in SUITES.items() if name.startswith("spatial"))
    assert f"{relations // 1000},000 prompts with relations" in README


NEED_MORE = {
    "quality",
    "gate",
    "audit",
    "author",
    "corpus",
    "spatial",
    "report",
    "study",
    "organism",
    "judge-check",
    "doctor",
    "tune",
    "push",
    "publish",
}
"""Commands that want data or a while, and have tests of their own."""


@pytest.mark.lane  # which `.ci/run` runs
def test_the_commands_run(text_release: Path, tmp_path: Path, cli: Callable[..., object]) -> None:
    """Those of the README, of the page on scoring, which continues it, and of all commands."""
    pages = README + SCORING + COMMANDS
    shown = re.findall(r"^\$ (?:\.venv/bin/)?counterprior ([\w-]+)([^#\n]*)", pages, re.MULTILINE)
    commands = [
        (name, shlex.split(arguments)) for name, arguments in shown if name not in NEED_MORE
    ]
    commands = [
        (name, words)
        for name, words in commands
        if "MODEL" not in " ".join(words) and "--holdout" not in words
    ]
    assert {name for name, _ in commands} == {
        *("build", "validate", "diff", "verify", "prompts"),
        *("eval", "generate", "judge", "score"),
    }
    for folder in ("published", "counterprior"):
        shutil.copytree(text_release, tmp_path / "dist" / folder)
    printed = []
    for name, words in dict.fromkeys((name, tuple(words)) for name, words in commands):
        if name == "build":  # the whole release is built once, by its fixture
            small = () if "--only" in words else ("--config", "spatial_multi")
            words = (*words, *small, "--out", f"built-{len(printed)}")
        done = cli(name, *words, cwd=tmp_path)
        assert getattr(done, "returncode", None) == 0, done
        printed.append(re.findall(r"[\w.]*\w", getattr(done, "stdout", "").replace("│", " ")))
    (output,) = re.findall(r"^```text\nscore.*\n(.*)\n```$", README, re.MULTILINE)
    told = re.findall(r"[\w.]*\w", output)
    assert told[0] == "hom"
    assert any(told == line[n : n + len(told)] for line in printed for n in range(len(line)))
    table = re.findall(
        r"^\| `(runs/\w+)` \| (.*) \| (.*) to (.*) \| (.*) \|$", README, re.MULTILINE
    )
    assert len(table) == 4
    for folder, *numbers in table:
        (judged,) = json.loads((tmp_path / folder / "scores.json").read_text())
        scores = {score["name"]: score for score in judged["scores"] if score["group"] == "all"}
        effect, valid = scores["order_effect"], scores["valid"]
        measured = [effect["value"], *effect["interval"], valid["value"]]
        # Another processor may round to another pixel, and so to another verdict on an image.
        assert measured == pytest.approx([float(number) for number in numbers], abs=2.5), folder


def test_its_images_and_links_exist() -> None:
    docs = ROOT / "docs"
    for folder, page in ((ROOT, README), (docs, SCORING), (docs, CONFIGS)):
        for target in re.findall(r"\[[^\]]*\]\(([^)]+)\)", page):
            assert (folder / target.partition("#")[0]).is_file(), target
    for make in re.findall(r"`?make (\w+)", README):
        assert re.search(rf"^{make}:", (ROOT / "Makefile").read_text(), re.MULTILINE), make
