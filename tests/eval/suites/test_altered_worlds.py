"""Which of two worlds: biased judges gain nothing, and what a generator does comes back."""

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from counterprior.builders.build import rebuilt
from counterprior.eval.core import ALL, ORIGINAL, Case, Outcome, Score, Verdict
from counterprior.eval.engine.data import sample_rows
from counterprior.eval.suites import open_suite
from counterprior.eval.suites.altered import BY_LOGIC, KEYED, LOGICS, POINTS, PRESENCE, SHOWN
from counterprior.schema import AlteredWorld

SUITE = open_suite("altered_worlds")
GROUPS = 72
KIND = "logic_kind"
TELLS = ("knows_real", "lock_in", "compliance", "compliance_L2", "over_application")
"""Scores of one world alone."""
Answers = Callable[[Case, str], str]


@cache
def cases() -> tuple[Case, ...]:
    rows = sample_rows(rebuilt()("altered_worlds", 0) or [], 4 * GROUPS, SUITE.together)
    assert len(rows) == 4 * GROUPS and all(isinstance(row, AlteredWorld) for row in rows)
    planned = (case for row in rows for case in SUITE.cases(row, 1))
    return tuple(case for case in planned if case.variant not in SUITE.optional)


def judged(answer: Answers, some: Sequence[Case] = ()) -> list[Outcome]:
    return [
        Outcome(
            case, {(name, ORIGINAL): Verdict(answer(case, name)) for name in (PRESENCE, *KEYED)}
        )
        for case in some or cases()
    ]


def scores(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], Score]:
    return {(score.name, score.group): score for score in SUITE.score(outcomes)}


def of_all(outcomes: Sequence[Outcome]) -> dict[str, Score]:
    # Without other groups there is less to compute.
    plain = [replace(o, case=replace(o.case, groups={KIND: o.case.groups[KIND]})) for o in outcomes]
    return {name: score for (name, group), score in scores(plain).items() if group == ALL}


def honest(shown: Callable[[Case], str]) -> Answers:
    """Answers as the image is: the scene is there, in one world."""
    asked = {"real": (PRESENCE, *KEYED[::2]), "altered": (PRESENCE, *KEYED[1::2])}
    return lambda case, name: "yes" if name in asked[shown(case)] else "no"


def test_who_always_says_yes_gains_nothing() -> None:
    found = of_all(judged(lambda case, name: "yes"))
    assert found["presence"].value == 1 and found["confusion"].value == 1
    assert [found[name].value for name in TELLS] == [0] * len(TELLS)
    assert found["yes_bias"].value == 0.5 and found["yes_bias"].n == 4 * GROUPS
    assert found["coherence"].n == 0 and math.isnan(found["coherence"].value)


def test_who_always_says_no_gains_nothing() -> None:
    found = of_all(judged(lambda case, name: "no"))
    assert found["presence"].value == 0 and found["yes_bias"].value == -0.5
    for name in (*TELLS, "confusion"):
        assert math.isnan(found[name].value) and found[name].n == 0
    assert found["compliance"].excluded == {"absent": 2 * GROUPS}
    seen = of_all(judged(lambda case, name: "yes" if name == PRESENCE else "no"))
    assert seen["confusion"].value == 1
    assert [seen[name].value for name in TELLS] == [0] * len(TELLS)


def test_a_coin_scores_what_is_named_as_chance() -> None:
    def coin(case: Case, name: str) -> str:
        return random.Random(f"{case.id} {name}").choice(["yes", "no"])

    found = of_all(judged(coin))
    assert {name: found[name].null for name in SHOWN} == {
        **dict.fromkeys(TELLS, 0.25),
        "confusion": 0.5,
    }
    judged_by = [found[name] for name in (*SHOWN, *BY_LOGIC)]
    missed = [s for s in judged_by if not s.interval.low <= s.null <= s.interval.high]
    assert len(missed) <= 1, "each misses in one of twenty"
    for score in judged_by:
        deviation = math.sqrt(score.null * (1 - score.null) / score.n)
        assert abs(score.value - score.null) < 3.5 * deviation, score.name
    assert abs(found["yes_bias"].value) < 0.05 and abs(found["presence"].value - 0.5) < 0.15


def test_what_a_generator_does_comes_back_from_an_honest_judge() -> None:
    perfect = of_all(
        judged(honest(lambda case: "altered" if case.variant in ("L2", "L3") else "real"))
    )
    locked = of_all(judged(honest(lambda case: "real")))
    eager = of_all(judged(honest(lambda case: "altered")))
    told = {
        name: [found[name].value for found in (perfect, locked, eager)]
        for name in ("presence", *SHOWN, *BY_LOGIC, "yes_bias")
    }
    assert told == {
        "presence": [1, 1, 1],
        "knows_real": [1, 1, 0],
        "lock_in": [0, 1, 0],
        "compliance": [1, 0, 1],
        "compliance_L2": [1, 0, 1],
        "confusion": [0, 0, 0],
        "over_application": [0, 0, 1],
        **{name: [1, 1, 1] for name in BY_LOGIC},
        "yes_bias": [0, 0, 0],
    }


def test_levels_and_groups_are_told_apart() -> None:
    """Complies where the outcome is told, where it is no deduction, and under the other law."""

    def shown(case: Case) -> str:
        flat = case.groups["depth"] == "0"
        complies = case.variant in ("L0", "L2") or (case.variant == "L3" and flat)
        return "altered" if complies else "real"

    outcomes = judged(honest(shown))
    found = scores(outcomes)
    assert found["compliance", "level=L2"].value == found["compliance_L2", "all"].value == 1
    assert found["over_application", "all"].value == found["knows_real", "all"].value == 1
    flat = [case for case in cases() if case.variant == "L3" and case.groups["depth"] == "0"]
    assert found["compliance", "level=L3"].value == pytest.approx(len(flat) / GROUPS)
    assert found["compliance", "depth=0"].value == 1 and found["lock_in", "depth=1"].value == 0.5
    columns = {group.split("=")[0] for _, group in found}
    assert columns == {
        "all",
        "level",
        "discipline",
        "depth",
        "phrasing",
        "naive_outcome",
        "timed",
        KIND,
    }
    assert ("compliance", "level=L0") not in found and ("presence", "level=L1") in found
    assert [SUITE.correctness(o) for o in outcomes if o.case.variant == "L2"] == [1] * GROUPS


def test_a_further_consequence_and_another_instance_are_scored_apart() -> None:
    """Draws every point right, and of the logic questions those of one kind alone."""

    def answers(case: Case, name: str) -> str:
        real = name in (PRESENCE, POINTS[0], LOGICS[0])
        wrong = name in LOGICS and case.groups[KIND] == "consequence"
        return "yes" if real != wrong else "no"

    found = of_all(judged(answers))
    kinds = Counter(case.groups[KIND] for case in cases())
    for name, kind in BY_LOGIC.items():
        assert (found[name].value, found[name].n) == (kind != "consequence", kinds[kind])


@pytest.mark.parametrize("question", [PRESENCE, *KEYED])
def test_a_failure_is_no_world_and_moves_no_value(question: str) -> None:
    kind = "coherence"
    some = [c for c in cases() if c.variant == "L3" and c.groups[KIND] == BY_LOGIC[kind]][:12]
    worlds = honest(lambda case: "altered" if some.index(case) % 3 else "real")
    broken = judged(
        lambda case, name: "refused" if (case, name) == (some[0], question) else worlds(case, name),
        some,
    )
    found, rest = of_all(broken), of_all(judged(worlds, some)[1:])
    decides = question in (PRESENCE, *POINTS)
    for name in ("lock_in", "compliance", "confusion") if decides else (kind, "yes_bias"):
        assert (found[name].value, found[name].n) == (rest[name].value, 11)
        assert found[name].excluded == {"refused": 1}
    if not decides:
        assert found["compliance"].n == 12


MODULE = """
from PIL import Image

def painter():
    return lambda prompt, seed: Image.new("RGB", (32, 32), (seed % 256,) * 3)

def locked():
    real = ("presence", "point_factual", "logic_factual")
    return lambda question: "yes" if question.name in real else "no"
"""


def test_the_command_asks_five_questions_at_four_levels(
    full_release: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Callable[..., CompletedProcess[str]],
) -> None:
    (tmp_path / "doubles.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    options = ["--suite", "altered_worlds", "--data", full_release, "--limit", 2]
    made = ["--generator", "python:doubles:painter", "--judge", "python:doubles:locked"]
    done = cli("eval", *options, *made, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads((tmp_path / "run" / "scores.json").read_text("utf-8"))
    values = {s["name"]: s["value"] for s in result["scores"] if s["group"] == "all"}
    assert values["lock_in"] == values["presence"] == 1 and values["compliance_L2"] == 0
    (log,) = (tmp_path / "run").glob("verdicts/*/verdicts.jsonl")
    asked = [json.loads(line)["question"] for line in log.read_text("utf-8").splitlines()]
    assert sorted(asked) == sorted([PRESENCE, *KEYED] * 4)
