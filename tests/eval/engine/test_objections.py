"""What a model can't do is said before the first image."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import raises

from counterprior.errors import UsageError
from counterprior.eval.core import Case, Question
from counterprior.eval.engine.run import Run
from counterprior.eval.generators.render import RenderGenerator
from counterprior.eval.judges.pixels import PixelJudge
from counterprior.eval.studies.preflight import plan_study
from counterprior.eval.studies.runner import run_study
from counterprior.scenes.language import loses_layout, mentions

COR = "t2i_correctness"
Cli = Callable[..., subprocess.CompletedProcess[str]]


def case_of(prompt: str, row: str = "r") -> Case:
    return Case(row, "plain", 1, 0, prompt, ("",))


def test_a_judge_that_can_answer_nothing_ends_an_evaluation_without_an_image(
    text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "run"
    options = ("--suite", COR, "--limit", 3, "--generator", "render:", "--judge", "pixels")
    done = cli("eval", "--data", text_release, *options, "--out", out)
    assert done.returncode == 2 and "[unsupported]" in done.stderr
    assert f"pixels can't answer the questions of {COR} (" in done.stderr
    assert not Run.open(out).images()


def test_a_study_draws_nothing_that_its_only_judge_can_t_judge(
    text_release: Path, tmp_path: Path
) -> None:
    study: dict[str, Any] = {
        "data": str(text_release),
        "suites": {COR: {"limit": 2}},
        "generators": {"fair": "render:"},
        "judges": {"p": "pixels"},
        "unchecked": True,
    }
    done = run_study(study, tmp_path / "out")
    ((failure,), text) = done.failures, f"can't answer the questions of {COR}"
    assert text in failure.cause and not Run.open(tmp_path / "out/runs" / COR / "fair").images()
    both = study | {"judges": {"p": "pixels", "s": "scene:"}}
    done = run_study(both, tmp_path / "both")
    assert [failure.cell.judge for failure in done.failures] == ["p"]
    assert len(Run.open(tmp_path / "both/runs" / COR / "fair").images()) >= 4


def test_a_plan_counts_the_questions_that_a_judge_can_t_answer(
    text_release: Path, tmp_path: Path
) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(
        f"data: {text_release}\nsuites: {{spatial_uc: {{limit: 40}}}}\n"
        "generators: {a: 'render:'}\njudges: {p: pixels, q: 'pse:pixels'}\nunchecked: true\n"
    )
    (problem,) = plan_study(file).problems
    assert (
        problem.startswith("judge p can't answer ")
        and " of 40 questions of spatial_uc (" in problem
    )
    file.write_text(file.read_text() + problem.split("`")[1])  # what it says to write
    plan = plan_study(file)
    assert (plan.problems, plan.cells) == ([], 1)


def test_the_renderer_says_which_prompts_it_can_t_draw(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cat, quark = case_of("A cat."), case_of("A quark.", "q")
    RenderGenerator().check([cat])
    assert not caplog.records
    RenderGenerator().check([cat, quark])
    assert "can't draw 1 of 2 prompts, the first of q: no entity of the atlas" in caplog.text
    with raises("unsupported", "2 of 2 prompts", "A quark.", error=UsageError):
        RenderGenerator().check([quark, quark])


@pytest.mark.slow
def test_layouts_that_the_renderer_can_t_draw_are_said_before_the_first_image(
    full_release: Path, tmp_path: Path, cli: Cli
) -> None:
    options = ("--data", full_release, "--generator", "render:", "--judge", "pixels")
    done = cli(
        "eval", "--suite", "spatial_clauses", "--limit", 12, *options, "--out", tmp_path / "run"
    )
    said = "prompts side by side, not as stated, since the atlas lacks what they relate to"
    assert done.returncode == 0 and said in done.stderr
    assert done.stderr.index(said) < done.stderr.index("images:")
    file = tmp_path / "s.yaml"
    file.write_text(
        f"data: {full_release}\nsuites: {{spatial_clauses: {{limit: 12}}}}\n"
        "generators: {a: 'render:'}\njudges: {p: pixels}\nunchecked: true\n"
    )
    planned = cli("study", "plan", file)
    assert said in planned.stderr  # it ends with 1 for what the judge can't answer


@pytest.mark.parametrize(
    ("prompt", "loses"),
    [
        ("A cat on the left of a dog.", False),
        ("A cat on the left of a sink and on the top of a dog.", True),
        ("One cat and one dog, one above the other.", False),
        ("A cat and a dog.", False),
        ("A cat above a sink.", False),  # one figure stands anywhere
    ],
)
def test_prompts_whose_layout_is_lost(prompt: str, loses: bool) -> None:
    assert loses_layout(prompt, mentions(prompt)) is loses


@pytest.mark.parametrize(
    ("changes", "objection"),
    [
        ({}, ""),
        ({"subjects": ("a cat", "Hawaii")}, "'Hawaii' does not name one entity of the atlas"),
        ({"facts": {"axis": "depth"}}, "can't measure the axis 'depth': choose a judge by rule"),
    ],
)
def test_objections_to_a_question(changes: dict[str, Any], objection: str) -> None:
    plain: dict[str, Any] = {"task": "order", "subjects": ("a cat", "a dog"), "facts": {}}
    settings = plain | changes
    question = Question(
        "c", "order", "original", **settings, labels=(), prompt="", answers={}, images=()
    )
    assert PixelJudge().objection(question) == objection
