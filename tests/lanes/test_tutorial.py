"""The tutorial is followed, and the pages that go on from its runs: what they print is printed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import ROOT, blocks, console, words_of

pytestmark = pytest.mark.lane
Run = Callable[..., subprocess.CompletedProcess[str]]


def numbers(text: str) -> list[str]:
    """Numbers and names of a line, whatever stands between them."""
    return re.findall(r"[\w.]*\w", text.replace("│", " "))


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory, cli: Run) -> tuple[Path, str]:
    """The folder in which the tutorial was followed, and all that was printed."""
    work, printed = tmp_path_factory.mktemp("tutorial"), ""
    for block in blocks(ROOT / "docs" / "tutorial.md"):
        if block.language == "python":
            (work / "make_images.py").write_text(block.code)
        for line in block.code.splitlines() if block.language == "console" else ():
            words = words_of(line.removeprefix("$ "))
            if line == "$ python make_images.py":
                subprocess.run([sys.executable, "make_images.py"], cwd=work, check=True)
            elif line.startswith("$ ") and words:
                done = cli(*words, cwd=work)
                assert done.returncode == 0, (words, done.stdout, done.stderr)
                printed += done.stdout + done.stderr
    return work, printed


def test_what_the_tutorial_shows_is_printed(followed: tuple[Path, str]) -> None:
    work, printed = followed
    lines = [numbers(line) for line in printed.splitlines()]
    together = numbers(printed)
    shown = []
    for block in blocks(ROOT / "docs" / "tutorial.md"):
        if block.language == "text":
            shown += [numbers(line) for line in block.code.splitlines() if "95 %" not in line]
        if block.language == "console":
            shown += [numbers(x) for x in block.code.splitlines() if not x.startswith("$")]
    assert len(shown) == 8
    for row in shown:
        told = [word for word in row if word != "all"]
        wrapped = any(told == together[start : start + len(told)] for start in range(len(together)))
        assert wrapped or any(told == [w for w in line if w != "all"] for line in lines), told
    assert (work / "site" / "index.html").is_file()


def test_the_prose_of_the_tutorial_repeats_its_numbers(followed: tuple[Path, str]) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text()
    text = " ".join(page.partition("## 7.")[2].split())
    (judged,) = json.loads((followed[0] / "runs" / "mine" / "scores.json").read_text())
    scores = {s["name"]: s for s in judged["scores"] if s["group"] == "all"}
    low, high = scores["hom"]["interval"]
    assert f"`hom` is {scores['hom']['value']:.1f}." in text
    assert f"The interval, {low:.1f} to {high:.1f}," in text
    assert f"gives {scores['hom']['null']:.1f} (`by chance`)" in text
    assert f"`order_effect` is {scores['order_effect']['value']:.1f}" in text
    assert f"`entity_effect` is {scores['entity_effect']['value']:.1f}" in text
    (board,) = json.loads((followed[0] / "site" / "report.json").read_text())["leaderboards"]
    (pair,) = board["comparisons"]
    high, low = (-end for end in pair["interval"])
    told = f"lower by {-pair['difference']:.1f}, with an interval of {low:.1f} to {high:.1f}"
    assert (pair["first"], pair["second"]) == ("fair", "mine") and told in text


def test_the_judge_sees_both_things_in_all_images(followed: tuple[Path, str]) -> None:
    (log,) = (followed[0] / "runs" / "mine" / "verdicts").glob("*/verdicts.jsonl")
    answers = [json.loads(line) for line in log.read_text().splitlines()]
    labels = [a["label"] for a in answers if a["probe"] == "original"]
    assert len(labels) == 80 and set(labels) == {"first_left", "first_right"}
    assert "all 80 images show both things" in " ".join(
        (ROOT / "docs" / "tutorial.md").read_text().split()
    )


def test_the_example_of_a_case_is_one(followed: tuple[Path, str]) -> None:
    (block,) = [b for b in blocks(ROOT / "docs" / "tutorial.md") if b.language == "json"]
    listed = (followed[0] / "prompts.jsonl").read_text().splitlines()
    assert json.loads(block.code) in map(json.loads, listed)


def test_a_judge_is_validated_as_the_page_says(followed: tuple[Path, str], cli: Run) -> None:
    work, _ = followed
    page = ROOT / "docs" / "validate-a-judge.md"
    labels = work / "labels"
    labels.mkdir()
    (verdicts,) = (work / "runs" / "mine" / "verdicts").iterdir()
    said = [json.loads(line) for line in (verdicts / "verdicts.jsonl").read_text().splitlines()]
    original = [v for v in said if v["probe"] == "original"][:60]
    (work / "both").symlink_to(labels)
    for name in ("ann", "bo"):
        with (labels / f"{name}.jsonl").open("w") as file:
            for number, verdict in enumerate(original):
                label = "invalid" if number % 20 == 3 else verdict["label"]
                row = {k: verdict[k] for k in ("case", "question", "image")}
                file.write(json.dumps({**row, "label": label, "annotator": name}) + "\n")
    printed = {}
    for command in console(page):
        words = words_of(command)
        assert words is not None
        if "studies/judges" in words:
            continue  # a study of models; tests/eval/studies/test_labeling_a_study.py walks it
        if "openai:MODEL" in words:
            continue  # needs a key
        if words[1] not in ("serve", "import"):  # what people do, there or in Label Studio
            done = cli(*words, cwd=work)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            printed[words[0] + words[1]] = done.stdout
    assert "hom" in printed["scoreruns/mine"] and "_corrected" in printed["scoreruns/mine"]
    (table,) = [b.code for b in blocks(page) if b.language == "csv"]
    (work / "written.csv").write_text(table)
    done = cli("score", "runs/mine", "--labels", "written.csv", cwd=work)
    assert done.returncode == 0, done.stderr


def test_the_plan_on_the_page_of_statistics(cli: Run, tmp_path: Path) -> None:
    page = ROOT / "docs" / "statistics.md"
    (words,) = filter(None, map(words_of, console(page)))
    done = cli(*words, cwd=tmp_path)
    items = re.search(r"^items +(\d+)", done.stdout, re.MULTILINE)
    assert items and f" {items[1]} items" in page.read_text()
