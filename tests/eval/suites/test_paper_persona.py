"""The persona `paper`: the papers' own instruments, with their rules and without counterbalance."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import trip_doubles as doubles
from PIL import Image
from refusals import raises
from typer.testing import CliRunner

from counterprior.cli.main import app
from counterprior.eval.core import Question
from counterprior.eval.engine.data import read_rows
from counterprior.eval.judges.chat import parse_answer
from counterprior.eval.results.judge_card import prompt_versions
from counterprior.eval.suites import open_gold, open_suite

IMAGE = Image.new("RGB", (8, 8))


def reply(question: Question, left: str, mirrored: bool) -> str:
    """The digit of who follows the template, of an image with `left` on the left before it was
    mirrored, and in which the left one acts."""
    prompt = question.prompt
    (a,) = re.findall(r"^A: (.*?) \(", prompt, re.MULTILINE)
    if question.task == "actor":
        return "1" if a == left else "2"
    if question.task == "binding":
        return "2"  # aligned
    if question.task == "arrangement":
        (told,) = re.findall(r"Right is: (.*) on the left, ", prompt)
        return "1" if (told == left) != mirrored else "2"
    return "1" if (a == left) != mirrored else "2"


@pytest.mark.parametrize(
    ("suite_name", "labels"),
    [
        ("t2i_homogenization", ("first_left", "first_right")),
        ("t2i_correctness", ("correct", "correct")),
        ("i2i_homogenization", ("left_acts", "left_acts")),
        ("i2i_correctness", ("correct", "correct")),
    ],
)
@pytest.mark.parametrize("probe", ["original", "swap", "mirror", "mirror_swap"])
def test_who_follows_the_template_gives_the_true_label(
    full_release: Path, suite_name: str, labels: tuple[str, str], probe: str
) -> None:
    """Whatever the control; `labels` are those of the first two cases, with one layout."""
    suite = open_suite(suite_name, "paper")
    row = next(
        row
        for row in read_rows(str(full_release), suite_name).rows
        if getattr(row, "mirror_safe", True)
    )
    left = getattr(row, "first", None) or row.left
    images = [IMAGE] * (2 if suite_name.startswith("i2i") else 1)
    for case, label in zip(suite.cases(row, 1), labels, strict=False):
        (question,) = suite.questions(row, case, images, probe)
        assert "image analyst" in question.prompt and "$" not in question.prompt
        assert question.answers["3"] == "invalid" and list(sorted(question.answers)) == list("123")
        digit = reply(question, getattr(left, "name", left), "mirror" in probe)
        assert question.answers[digit] == label
    assert all(name.endswith("_paper") for name in prompt_versions(suite))


def test_a_is_the_first_mentioned_and_its_prominence_counts(full_release: Path) -> None:
    row = read_rows(str(full_release), "t2i_homogenization").rows[0]
    suite = open_suite("t2i_homogenization", "paper")
    names = {}
    for case in suite.cases(row, 1):
        (question,) = suite.questions(row, case, [IMAGE], "original")
        names[case.variant] = question.subjects[0]
        assert question.answers == {"1": "first_left", "2": "first_right", "3": "invalid"}
    assert names == {"plain": row.first.name, "swapped": row.second.name}
    row = read_rows(str(full_release), "i2i_homogenization").rows[0]
    suite = open_suite("i2i_homogenization", "paper")
    (question,) = suite.questions(row, next(suite.cases(row, 1)), [IMAGE] * 2, "original")
    assert "1: only A does or has it, or A shows it with greater prominence" in question.prompt
    assert question.answers["1"] == "left_acts"
    usual = open_suite("i2i_homogenization")
    (question,) = usual.questions(row, next(usual.cases(row, 1)), [IMAGE] * 2, "original")
    assert "more prominent does not count" in question.prompt


def test_acon_s_evaluator_gets_the_question_alone() -> None:
    (row,) = doubles.rows(1)
    suite = open_suite("consistency", "paper")
    case = next(suite.cases(row, 1))
    questions = suite.questions(row, case, [IMAGE], "original")
    assert [q.prompt.strip() for q in questions] == row.questions[:10]
    assert questions[0].answers == {"Yes": "yes", "No": "no"}
    assert suite.questions(row, case, [IMAGE], "swap") == []  # nothing could be exchanged


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes", "Yes"),
        ("no.", "No"),
        ("Yes, the cup is red.", "Yes"),
        ("Yes or no?", None),
        ("Yesterday", None),
        ("It is yes", None),
    ],
)
def test_reads_the_answer_to_a_bare_question(text: str, answer: str | None) -> None:
    assert parse_answer(text, {"Yes": "yes", "No": "no"}) == answer
    assert parse_answer(text, {"1": "yes", "2": "no"}) is None


def test_the_paper_s_persona_by_command(full_release: Path, tmp_path: Path) -> None:
    """A judge that measures gives the same labels, whoever is called A."""

    def scores(suite: str, persona: str) -> dict[str, float]:
        out = tmp_path / f"{suite}-{persona}"
        command = ["eval", "--suite", suite, "--data", str(full_release), "--limit", "3"]
        command += ["--generator", "render:?order_bias=9", "--judge", "pixels", "--out", str(out)]
        done = CliRunner().invoke(app, [*command, "--persona", persona])
        assert done.exit_code == 0, done.output
        scored = CliRunner().invoke(app, ["score", str(out), "--json"])
        (result,) = json.loads(scored.output)
        return {s["name"]: s["value"] for s in result["scores"] if s["group"] == "all"}

    paper = scores("t2i_homogenization", "paper")
    assert paper["hom"] == 100 and paper == scores("t2i_homogenization", "standard")


def test_suites_of_other_papers_have_no_such_persona() -> None:
    for suite in ("counterfactual", "spatial_uc"):
        with raises("unknown-name", suite, "paper", "strict"):
            open_suite(suite, "paper")
    gold = open_gold("t2i_correctness", "paper")
    assert gold is not None and gold.prompts == ("arrangement_paper",)
    assert open_gold("altered_worlds", "standard") and not open_gold("altered_worlds", "paper")
