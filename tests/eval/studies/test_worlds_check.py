"""Judges on gold images of altered worlds: who knows the usual, or always says yes, is found."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import gold_judges
import pytest
from refusals import raises
from small_worlds import GOLD, ICE, TREE, WORLDS, told, write_bank, write_worlds

from counterprior.errors import DataError, UsageError
from counterprior.eval.api import evaluate
from counterprior.eval.core import Question, Score, Verdict
from counterprior.eval.engine.data import read_rows
from counterprior.eval.results.judge_check import JudgeCheck, read_checks
from counterprior.eval.results.scoring import JudgedRun, ScoreSettings, score_run
from counterprior.eval.studies.judge_check import check_judges
from counterprior.eval.studies.preflight import plan_study
from counterprior.eval.suites import SUITES


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three groups of altered worlds, two of which have gold images."""
    root = tmp_path_factory.mktemp("worlds")
    return write_worlds(write_bank(root / "bank"), root / "release")


def checked(
    release: Path, out: Path, judge: Callable[[Question], str | Verdict]
) -> tuple[JudgeCheck, JudgedRun]:
    (found,) = check_judges(str(release), out, [judge])
    (check,), (judged,) = found.checks, found.judged
    return check, judged


def percent(judged: JudgedRun) -> dict[str, float]:
    return {name: score.value for name, score in judged.whole.items()}


@pytest.mark.slow
def test_who_looks_is_told_from_who_does_not(release: Path, tmp_path: Path) -> None:
    judges = [f"python:small_worlds:{name}" for name in ("seeing", "usual", "yes", "unusual")]
    (found,) = check_judges(str(release), tmp_path, judges)
    checks = {check.judge: check for check in found.checks}
    judged = {one.result.judge: one for one in found.judged}
    seeing, usual, yes, unusual = (checks[name] for name in judges)
    scores = [percent(judged[name]) for name in judges]

    assert scores[0] == dict.fromkeys(scores[0], 100.0) | {"taken_for_other": 0, "yes_bias": 0}
    assert {"recognized", "as_keyed", "presence", "logic_counterfactual"} < set(scores[0])
    assert seeing.items == 2 and not seeing.misled and not seeing.unchecked
    assert seeing.confusion == {"real": {"real": 4}, "altered": {"altered": 4}}

    assert usual.excluded == sorted([ICE, TREE]) and usual.items == 2
    assert len(usual.misled) == 8, "every level of a group"
    assert usual.parts["Physics"]["altered"] == {"real": 2}
    names = ("recognized", "taken_for_other", "as_keyed", "yes_bias")
    assert [scores[1][name] for name in names] == [50, 50, 50, 0]
    by_world = {s.group: s for s in judged[judges[1]].result.scores if s.name == "recognized"}
    assert (by_world["world=real"].value, by_world["world=altered"].value) == (100, 0)
    assert by_world["world=altered"].n == by_world["discipline=Biology"].n == 4

    assert unusual.excluded == usual.excluded
    assert unusual.confusion == {"real": {"altered": 4}, "altered": {"altered": 4}}

    assert [scores[2][name] for name in names] == [0, 0, 50, 0.5]
    assert yes.confusion["altered"] == {"both": 4} and not yes.misled
    recognized = judged[judges[2]].whole["recognized"]
    assert recognized.n == 8 and recognized.interval[1] < 100, "of two laws"


@pytest.mark.slow
def test_a_group_whose_worlds_are_mistaken_counts_nowhere(release: Path, tmp_path: Path) -> None:
    rows = {row.id: row for row in read_rows(str(release), WORLDS).rows}
    golds = {row.id: row for row in read_rows(str(release), GOLD).rows}
    asked: list[str] = []

    def careless(question: Question) -> str:
        """Takes the blue tree for a green one, and draws of a run for altered ones."""
        asked.append(question.case)
        name, variant = question.case.rsplit("-", 2)[:2]
        gold = golds.get(name)
        if gold is None:
            return told(question, "altered")
        return told(question, "real" if gold.group == TREE else variant)

    found = evaluate(WORLDS, gold_judges.draw_nothing, careless, data=str(release), out=tmp_path)
    assert len(asked) == 8 * 5 + 12 * 5
    assert f"1 groups are excluded, since {found.card.identity['kind']}" in " ".join(found.notes)
    assert "takes a gold image of one of their worlds for the other: " + TREE in str(found.notes)
    assert "no check on gold images for 4 of the 12 rows, which stay in: " in str(found.notes)
    assert "the check has none of 4" in str(found.notes)
    assert found.scores["compliance_L2"].n == 2
    assert found.card.gold["Biology"] == {"real": {"real": 2}, "altered": {"real": 2}}
    (check,) = read_checks(tmp_path / "gold" / GOLD)
    assert {rows[row].group for row in check.misled} == {TREE} and len(check.misled) == 4
    again = score_run(tmp_path, ScoreSettings(gold=tmp_path / "gold"))
    assert again[0].whole["compliance_L2"].n == 2
    (tmp_path / "gold" / GOLD / "judge_check.json").write_text("[]")
    with raises("judge-unchecked", "none", error=DataError):
        score_run(tmp_path, ScoreSettings(gold=tmp_path / "gold"))


def test_a_group_without_an_answer_about_both_worlds_is_unchecked(
    release: Path, tmp_path: Path
) -> None:
    def shy(question: Question) -> str | Verdict:
        altered = "-altered-" in question.case
        point = question.name == "point_counterfactual"
        return Verdict("refused") if altered and point else told(question, "real")

    check, judged = checked(release, tmp_path, shy)
    assert check.items == 0 and not check.misled
    assert sorted(set(check.unchecked.values())) == sorted([ICE, TREE])
    assert check.confusion["altered"] == {"refused": 4}
    scores: dict[str, Score] = judged.whole
    assert scores["recognized"].n == 4 and scores["recognized"].excluded == {"refused": 4}
    assert scores["point_counterfactual"].excluded == {"refused": 4}
    assert scores["logic_counterfactual"].n == 8 and scores["presence"].value == 100
    group = next(s for s in judged.result.scores if s.group == "world=altered")
    assert math.isnan(group.value)


def test_a_plan_counts_the_questions_and_a_suite_without_gold_is_named(
    release: Path, tmp_path: Path
) -> None:
    plain = {"data": str(release), "suites": {WORLDS: {}}, "judges": {"a": "pixels"}}
    file = tmp_path / "s.yaml"
    file.write_text(json.dumps(plain | {"generators": {"one": "python:gold_judges:painter"}}))
    planned = {p.what: p.count for p in plan_study(file).questions}
    assert planned[f"gold images of {WORLDS}"] == 8 * 5
    known = plain | {"judges": {"a": "scene"}, "generators": {"one": "render:"}}
    file.write_text(json.dumps(known))
    assert f"gold images of {WORLDS}" not in {p.what for p in plan_study(file).questions}
    with raises("no-gold", "spatial_uc", "t2i_corr", error=UsageError):
        check_judges(str(release), tmp_path, ["pixels"], suites=["spatial_uc"])
    assert SUITES[WORLDS].gold == GOLD


@pytest.mark.lane  # `test_judge_check` has the command in the default suite
def test_the_command_prints_how_worlds_are_told(
    release: Path, tmp_path: Path, cli: Callable[..., CompletedProcess[str]]
) -> None:
    judges = ("--judge", "python:small_worlds:usual", "--judge", "python:small_worlds:seeing")
    done = cli("judge-check", *judges, "--data", release, "--out", tmp_path / "gold")
    assert done.returncode == 0, done.stderr
    assert "0 of 2 groups are excluded for this judge" in done.stdout
    assert "2 of 2 groups are excluded for this judge, since it takes a gold image" in done.stdout
    assert "world=altered" in done.stdout and "logic_counterfactual: 100.0" in done.stdout
