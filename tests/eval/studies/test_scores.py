"""Scores that take more than one run's own: each kind finds what was put there."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import variance
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from refusals import raises
from scored import cases, image_run

from counterprior.errors import UsageError
from counterprior.eval.core import Case, Outcome, Score, Verdict
from counterprior.eval.engine.run import RunHeader
from counterprior.eval.results.judge_card import judge_card
from counterprior.eval.results.scoring import JudgedRun, Result
from counterprior.eval.studies.figures import FIGURES
from counterprior.eval.studies.scores import KINDS, find_score, name_problem
from counterprior.eval.studies.scores.scope import LabeledRun, ScoreInputs
from counterprior.eval.suites import open_suite

HOM, VISOR, UC, WORLD = (
    "t2i_homogenization",
    "spatial_visor",
    "spatial_uc",
    "counterfactual",
)


def cell(
    suite: str,
    outcomes: Sequence[Outcome],
    told: Mapping[tuple[str, str], str] | None = None,
    folder: str = "runs/a",
    method: str = "",
) -> LabeledRun:
    """A judged run that is nowhere on disk."""
    generator = {"kind": "double", **({"method": method} if method else {})}
    header = RunHeader(
        suite=suite,
        data="d",
        rows_sha256="0",
        rows=1,
        seeds=1,
        limit=None,
        generator=generator,
    )
    card = judge_card({"kind": "double"}, open_suite(suite), [])
    result = Result(
        run=header, folder=folder, judge="j", card=card, scores=[], cases=len(outcomes), alpha={}
    )
    log: Any = None
    return LabeledRun(JudgedRun(result, outcomes, log), told or {})


def outcome(
    row: str, question: str, verdict: Verdict, variant: str = "plain", **about: Any
) -> Outcome:
    case = Case(row, variant, 7, 0, "p", about.pop("clusters", (row,)), **about)
    return Outcome(case, {(question, "original"): verdict})


def score(what: str, /, *own: LabeledRun, **around: Any) -> Score:
    found = find_score(what, "all", ScoreInputs(own, **around))
    assert found is not None
    return found


def test_success_of_a_switch_is_over_the_cases_that_were_biased() -> None:
    def run(labels: str, method: str = "") -> LabeledRun:
        said = {"l": "first_left", "r": "first_right", "i": "invalid"}
        outcomes = [
            outcome(
                f"r{number // 2}", "order", Verdict(said[sign]), ("plain", "swapped")[number % 2]
            )
            for number, sign in enumerate(labels)
        ]
        return cell(HOM, outcomes, method=method)

    base = run("ll" + "lr" + "ll" + "ll" + "ll")  # four of five pairs are biased
    switched = run("lr" + "rr" + "rr" + "il" + "ll", "switch:a2b?at=2")
    # A2B: of the plain cases of pairs 0, 2, 3, 4 one is invalid and one of three follows B.
    a2b = score("switched:success:plain", switched, base=base)
    assert (a2b.n, a2b.value) == (3, pytest.approx(100 / 3)) and a2b.excluded == {"invalid": 1}
    b2a = score("switched:success:swapped", switched, base=base)
    assert (b2a.n, b2a.value) == (4, 50.0)
    assert score("switched:success:plain", base, base=base).value == 100
    toward_a = run("lr" + "rr" + "rr" + "il" + "ll", "switch:b2a?at=2")
    back = score("switched:success:plain", toward_a, base=base)
    assert back.value == pytest.approx(200 / 3)  # b2a ends with the case's own prompt
    # Hom is over all pairs, biased or not.
    assert score("switched:hom:plain", switched, base=base).value == pytest.approx(0)
    assert score("switched:hom:swapped", switched, base=base).value == pytest.approx(20)
    assert find_score("switched:success:plain", "all", ScoreInputs([switched])) is None


def test_a_layout_is_settled_once_no_later_preview_differs() -> None:
    def run(name: str, labels: str) -> LabeledRun:
        said = {"l": "first_left", "r": "first_right", "i": "invalid", "e": "error"}
        outcomes = [outcome(f"r{n}", "order", Verdict(said[sign])) for n, sign in enumerate(labels)]
        method = f"preview:?at={name.rpartition('-')[2]}" if "+" in name else ""
        made = cell(HOM, outcomes, method=method)
        return replace(made, judged=replace(made.judged, name=name))

    # Settled at 0, not before 2 in two cases, and at 1, where 0 shows no layout. The
    # fifth is not judged at 1, and the sixth has no final layout.
    labels = {"g+p-0": "lrrill", "g+p-1": "llrlel", "g+p-2": "lrlllr", "g": "lrllli"}
    runs = {name: run(name, text) for name, text in labels.items()}
    found = [
        score("replicates:settled", runs[name], rivals=runs) for name in ("g+p-0", "g+p-1", "g+p-2")
    ]
    assert [s.value for s in found] == [25, 50, 100]
    assert [s.excluded for s in found] == [{"error": 1, "invalid": 1}] * 2 + [{"invalid": 1}]


def test_trainings_are_pooled_by_stated_relations() -> None:
    def run(name: str, labels: str, suite: str = "own_prompts") -> LabeledRun:
        said = {"h": "holds", "o": "opposite", "i": "invalid", "e": "error"}
        weights = {"relation_1": 1.0}
        outcomes = [
            outcome(f"r{n}", "relation_1", Verdict(said[sign]), weights=weights)
            for n, sign in enumerate(labels)
        ]
        made = cell(suite, outcomes)
        return replace(made, judged=replace(made.judged, name=name))

    trainings = run("g-1", "hhoie"), run("g-2", "hhhio")
    share = score("replicates:all_right", *trainings)
    assert (share.value, share.n, share.excluded) == (pytest.approx(500 / 9), 9, {"error": 1})
    assert score("replicates:decided", *trainings).value == pytest.approx(700 / 9)
    less = score("replicates:all_right", trainings[1], less=[trainings[0]])
    assert less.value == pytest.approx(60 - 50) and less.interval.low < 0 < less.interval.high
    with raises("unsupported", "has none"):
        score("replicates:decided", run("g-1", "hh", HOM))


def test_the_checker_s_reasons_are_counted() -> None:
    def said(label: str, why: str) -> Verdict:
        return Verdict(label, json.dumps({"relation": "left_of", "why": why}))

    verdicts = [
        said("holds", "PASS, confidence 0.8000"),
        said(
            "opposite",
            "FAIL, confidence 0.4000; the second detector failed, agreement 0.5: no memory",
        ),
        said("invalid", "UNDECIDABLE missing: cat, unstable, confidence 0.0000"),
        said(
            "invalid", "UNDECIDABLE near_boundary (|delta|=0.050 <= margin=0.1), confidence 0.0010"
        ),
        Verdict("error", "no such class"),
    ]
    one = cell(UC, [outcome(f"r{n}", "order", v) for n, v in enumerate(verdicts)])
    shares = {name: score(f"checker:{name}", one) for name in KINDS["checker"].patterns}
    assert {n: s.value for n, s in shares.items() if n != "confidence"} == {
        "undecidable": 50,
        "missing": 25,
        "ambiguous": 0,
        "high_overlap": 0,
        "near_boundary": 25,
        "unstable": 0,
        "secondary_failed": 25,
    }
    assert shares["confidence"].value == pytest.approx(1.201 / 4)
    assert all(s.n == 4 and s.excluded == {"error": 1} for s in shares.values())
    talked = cell(UC, [outcome("r", "order", Verdict("holds", "the cat is left"))])
    assert find_score("checker:missing", "all", ScoreInputs([talked])) is None


def test_a_gate_is_compared_with_what_people_accept() -> None:
    def plain(row: str, answers: str, level: str = "L1") -> Outcome:
        names = ("visual_integrity", "assessment", "logic_consistency")
        weights = dict(zip(names, (2.0, 14.0, 8.0), strict=True))
        case = Case(row, level, 7, 0, "p", (row, row), weights=weights)
        says = {"y": "yes", "n": "no"}
        return Outcome(
            case,
            {(n, "original"): Verdict(says[a]) for n, a in zip(names, answers, strict=True)},
        )

    outcomes = [plain("a", "yyy"), plain("b", "yny"), plain("c", "nnn"), plain("d", "yyy", "L2")]
    told = {
        (o.case.id, "accept"): said
        for o, said in zip(outcomes, ("yes", "yes", "no", "no"), strict=True)
    }
    one = cell(WORLD, outcomes, told)
    shares = {gate: score(f"gate:{gate}", one).value for gate in ("0.3", "0.5")}
    # b scores (2 + 8) / 24 = 0.417: a gate of 0.3 passes it as people do, one of 0.5 doesn't.
    assert shares == {"0.3": 100, "0.5": pytest.approx(200 / 3)}
    assert score("gate:0.3", one).excluded == {"of another level": 1}
    # F1 doesn't count what both reject: of a and b, 0.3 passes both, and 0.5 one.
    f1 = {gate: score(f"gate:f1:{gate}", one).value for gate in ("0.3", "0.5")}
    assert f1 == {"0.3": 100, "0.5": pytest.approx(100 * 2 / 3)}
    # Of the three, b alone is borderline.
    border = {gate: score(f"gate:borderline:{gate}", one) for gate in ("0.3", "0.5", "f1:0.3")}
    assert {gate: of.value for gate, of in border.items()} == {"0.3": 100, "0.5": 0, "f1:0.3": 100}
    assert border["0.5"].n == 1
    assert border["0.5"].excluded == {"of another level": 1, "not borderline": 2}
    rejected = cell(WORLD, outcomes[2:3], {(outcomes[2].case.id, "accept"): "no"}, "runs/c")
    assert find_score("gate:borderline:0.3", "all", ScoreInputs([rejected])) is None
    assert score("gate:0.3", rejected).value == 100
    assert find_score("gate:f1:0.3", "all", ScoreInputs([rejected])) is None
    # Cells are pooled.
    other = cell(WORLD, outcomes[2:3], {(outcomes[2].case.id, "accept"): "yes"}, "runs/b")
    assert score("gate:0.3", one, other).value == 75
    assert score("gate:f1:0.3", one, other).value == pytest.approx(80)
    assert find_score("gate:0.3", "all", ScoreInputs([cell(WORLD, outcomes)])) is None


def test_people_and_metrics_are_pooled_over_generators() -> None:
    def run(folder: str, rows: Sequence[tuple[str, float, str]]) -> LabeledRun:
        outcomes = [
            outcome(f"r{n}", "order", Verdict(label, number=number))
            for n, (label, number, _) in enumerate(rows)
        ]
        told = {(o.case.id, "order"): row[2] for o, row in zip(outcomes, rows, strict=True)}
        return cell(VISOR, outcomes, told, folder)

    first = run("runs/a", [("holds", 0.9, "holds"), ("opposite", 0.2, "opposite")])
    second = run("runs/b", [("invalid", 0.0, "invalid"), ("opposite", 0.4, "holds")])
    found = {n: score(f"people:{n}", first, second).value for n in ("precision", "recall")}
    # A missing thing counts as wrong, for people as for the metric.
    assert found == {"precision": 1.0, "recall": 0.5}
    assert score("people:accuracy", first, second).n == 4
    by_number = score("people:spearman", first, second)
    by_verdict = score("people:spearman", first, second, by_verdict=True)
    assert by_number.value != by_verdict.value == pytest.approx(1 / 3**0.5)
    difference = score("people:difference", first, second)
    # The judge calls wrong what people call right: CF-World's difference is negative.
    assert (difference.value, difference.n) == (-0.25, 4)
    assert score("people:within", first, second).value == 0.75
    drawn = FIGURES["differences"]({"j": {"s a": first, "s b": second}}, "T")
    assert "n 4" in "".join(ElementTree.fromstring(drawn).itertext())
    assert FIGURES["differences"]({"j": {"s a": cell(VISOR, first.outcomes)}}, "T") == ""


def by_boxes(label: str, number: float, first: list[float], second: list[float]) -> Verdict:
    """A verdict by rule whose boxes are listed."""
    boxes = {"cat": [[0.9, *first]] if first else [], "dog": [[0.9, *second]] if second else []}
    return Verdict(label, json.dumps({"found": boxes}), number)


def test_things_that_are_found_count_by_order_of_mention() -> None:
    box = [0.0, 0.0, 9.0, 9.0]
    verdicts = [
        by_boxes("holds", 1, box, [10, 0, 19, 9]),
        by_boxes("invalid", 0, box, []),
        by_boxes("invalid", 0, box, []),
        by_boxes("invalid", 0, [], []),
        Verdict("error", "away"),
    ]
    of_boxes = cell(VISOR, [outcome(f"r{n}", "order", v) for n, v in enumerate(verdicts)])
    found = {name: score(f"boxes:{name}", of_boxes) for name in ("first", "second", "gap")}
    assert {n: s.value for n, s in found.items()} == {"first": 75, "second": 25, "gap": 50}
    assert found["first"].n == 4 and found["first"].excluded == {"error": 1}
    bare = cell(VISOR, [outcome("r0", "order", Verdict("holds", "yes"))])
    assert find_score("boxes:first", "all", ScoreInputs([bare])) is None


def test_distances_of_centers_are_in_pixels_and_by_what_is_stated(tmp_path: Path) -> None:
    sides = [(30, 40), (60, 80), (0, 100), (0, 0)]  # from one center to the other
    relations = ["near", "near", "far", "far"]
    stated = [
        replace(case, groups={"relation": relation})
        for case, relation in zip(cases(4), relations, strict=True)
    ]
    run = image_run(tmp_path / "run", stated, {case.id: 9 for case in stated})
    for case in stated:
        Image.new("RGB", (200, 100)).save(run / "images" / case.file)
    (question,) = open_suite("spatial_distance").worths
    boxes = [[10.0 + x, 10.0 + y, 30.0 + x, 20.0 + y] for x, y in sides]
    verdicts = [by_boxes("holds", 1, [0.0, 0.0, 40.0, 30.0], box) for box in boxes[:3]]
    verdicts.append(by_boxes("invalid", 0, [0.0, 0.0, 40.0, 30.0], []))
    outcomes = [
        Outcome(case, {(question, "original"): verdict})
        for case, verdict in zip(stated, verdicts, strict=True)
    ]
    of_boxes = cell("spatial_distance", outcomes, folder=str(run))
    found = {name: score(f"boxes:distance{name}", of_boxes) for name in ("", ":near", ":far")}
    assert {n: s.value for n, s in found.items()} == {"": 250 / 3, ":near": 75, ":far": 100}
    assert [s.n for s in found.values()] == [3, 2, 1]
    assert found[""].excluded == found[":far"].excluded == {"fewer than 2 boxes": 1}
    assert found[":near"].unit == "pixels" and not found[":near"].excluded
    assert max(s.interval.high for s in found.values()) <= math.hypot(200, 100) + 1e-9


def test_variances_of_boxes_are_the_planted_ones(tmp_path: Path) -> None:
    rng, pairs = np.random.default_rng(4), cases(6)
    many = [replace(case, seed=seed) for case in pairs for seed in range(8)]
    # Centers and sizes of both things, as shares of the image: (cases, center or size, x and y).
    first = 0.5 + rng.normal(size=(48, 2, 2)) * [[0.02], [0.05]]
    second = 0.5 + rng.normal(size=(48, 2, 2)) * [[0.1], [0.01]]

    def box(thing: Any) -> list[float]:
        (x, y), (width, height) = thing * (128, 64)
        return [x - width / 2, y - height / 2, x + width / 2, y + height / 2]

    run = image_run(tmp_path / "run", many, {case.id: 9 for case in many})
    for case in many:  # an image that is wider than high
        Image.new("RGB", (128, 64)).save(run / "images" / case.file)
    (question,) = open_suite(VISOR).worths
    outcomes = [
        Outcome(case, {(question, "original"): by_boxes("holds", 1, box(a), box(b))})
        for case, a, b in zip(many, first, second, strict=True)
    ]
    of_boxes = cell(VISOR, outcomes, folder=str(run))
    for thing, places in (("first", first), ("second", second)):
        for number, quantity in enumerate(("center", "size")):
            by_prompt = places[:, number].reshape(6, 8, 2)
            expected = [sum(variance([*map(float, row)]) for row in rows.T) for rows in by_prompt]
            found = score(f"boxes:{quantity}:{thing}", of_boxes)
            assert found.value == pytest.approx(np.mean(expected), rel=1e-9), (quantity, thing)
            assert (found.n, found.unit) == (6, "1") and not found.excluded
    spread = score("boxes:center:second", of_boxes).value
    assert spread == pytest.approx(2 * 0.1**2, rel=0.3)
    # A prompt that has one box and an image that can't be read has no variance.
    outcomes[1] = replace(outcomes[1], verdicts={(question, "original"): Verdict("invalid")})
    (run / "images" / many[0].file).write_bytes(b"no image")
    few = score("boxes:size:first", cell(VISOR, [*outcomes[:3], *outcomes[8:]], folder=str(run)))
    assert few.n == 5 and few.excluded == {"fewer than 2 boxes": 1}
    alone = ScoreInputs([cell(VISOR, outcomes[::8], folder=str(run))])
    assert find_score("boxes:center:first", "all", alone) is None
    assert "boxes:center:first" in name_problem("boxes:centre:first")


def test_thresholds_and_overlapping_boxes_meet_people() -> None:
    apart, over = [10.0, 0.0, 19.0, 9.0], [5.0, 0.0, 14.0, 9.0]
    rows = [  # label, number, second box, what people say
        ("holds", 0.9, apart, "holds"),
        ("holds", 0.6, over, "opposite"),
        ("opposite", 0.3, over, "holds"),
        ("opposite", 0.1, over, "opposite"),
    ]
    outcomes = [
        outcome(f"r{n}", "order", by_boxes(label, number, [0.0, 0.0, 9.0, 9.0], second))
        for n, (label, number, second, _) in enumerate(rows)
    ]
    told = {(o.case.id, "order"): row[3] for o, row in zip(outcomes, rows, strict=True)}
    labeled = cell(VISOR, outcomes, told)
    shares = {t: score(f"people:accuracy:{t}", labeled).value for t in ("0.2", "0.5", "0.7")}
    assert shares == {"0.2": 0.75, "0.5": 0.5, "0.7": 0.75}
    hidden = score("people:pearson:overlapping", labeled)
    expected = np.corrcoef([0.6, 0.3, 0.1], [0, 1, 0])[0, 1]
    assert (hidden.n, hidden.value) == (3, pytest.approx(expected))
    assert score("people:pearson", labeled).n == 4


def test_people_are_not_asked_about_what_a_check_left_out() -> None:
    outcomes = [outcome(f"r{n}", "order", Verdict("holds", number=n / 4)) for n in range(5)]
    told = {(o.case.id, "order"): ("opposite", "holds")[n % 2] for n, o in enumerate(outcomes)}
    believed, all_labeled = outcomes[:4], cell(VISOR, outcomes[:4], told)
    labeled = cell(
        VISOR, believed, {(o.case.id, "order"): told[o.case.id, "order"] for o in believed}
    )
    for name in ("people:pearson", "people:accuracy:0.5", "people:difference"):
        assert score(name, all_labeled) == score(name, labeled)


def test_a_bandit_pulls_whoever_measures_best() -> None:
    def run(mean: float) -> LabeledRun:
        verdicts = [Verdict("holds", number=mean), Verdict("error", "away")]
        return cell(
            VISOR, [outcome(f"r{n}", "order", v) for n, v in enumerate([*verdicts, *verdicts[:1]])]
        )

    rivals = {"low": run(0.1), "high": run(0.9), "mid": run(0.5)}
    found = {
        name: [
            score(f"ucb:{what}", rivals[name], rivals=rivals, name=name)
            for what in ("pulls", "mean", "regret")
        ]
        for name in rivals
    }
    pulls = {name: scores[0].value for name, scores in found.items()}
    assert sum(pulls.values()) == 103 and max(pulls, key=lambda n: pulls[n]) == "high"
    assert {n: s[1].value for n, s in found.items()} == pytest.approx(
        {"low": 0.1, "high": 0.9, "mid": 0.5}
    )
    assert found["high"][2].value == 0
    assert found["low"][2].value == pytest.approx(0.8 * (pulls["low"] - 1))
    assert found["low"][0].excluded == {"not scored": 1} and found["low"][0].n == 2
    again = score("ucb:pulls", rivals["low"], rivals=dict(reversed(rivals.items())), name="low")
    assert again.unit == "pulls"
    drawn = FIGURES["pulls"]({"j": {f"s {n}": c for n, c in rivals.items()}}, "T")
    assert f"high: {pulls['high']:.0f} pulls" in "".join(ElementTree.fromstring(drawn).itertext())
    alone = ScoreInputs([rivals["low"]], rivals={"low": rivals["low"]}, name="low")
    assert find_score("ucb:pulls", "all", alone) is None


def test_an_unknown_score_of_a_kind_is_named() -> None:
    assert name_problem("gate:0.31").startswith("no score 'gate:0.31': choose from gate:0.05")
    assert not any(name_problem(f"{p}:{n}") for p, kind in KINDS.items() for n in kind.patterns)
    with raises("unknown-name", "people:luck", error=UsageError):
        find_score("people:luck", "all", ScoreInputs([]))
