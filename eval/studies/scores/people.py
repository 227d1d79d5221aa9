"""`people:`: a judge against human labels, pooled over suites and generators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core import FAILURES, ORIGINAL, Outcome, Score, Verdict
from ...results.agree import KINDS, agreement
from ...results.judge_card import HumanAgreement
from ...results.selection import CLOSE, OutcomesOfRun, score_differences
from ...stats.clusters import cluster_interval
from ...stats.estimate import Estimate, share_of
from ...stats.intervals import NOTHING, Interval
from ...suites import open_suite
from ...suites.base import Suite
from ...suites.worths import Worth
from .boxes import overlaps
from .scope import LabeledRun, ScoreInputs

CODES = ("0", "1", "2")
"""Codes of labels in OTS-Bench's analysis: invalid; left or as expected; the other."""
COUNTS = tuple(f"count:{people}:{judge}" for people in CODES for judge in CODES)
ESTIMATES = (
    *KINDS,
    *("precision", "recall", "specificity", "npv", "accuracy", "f1"),
)
"""Estimates over the judge's numbers and human ones, see `results.agree`."""
DIFFERENCES = {"difference": "mean", "within": f"within_{CLOSE}", "deviation": "deviation"}
"""Summaries of the judge's scores less human ones, see `results.selection`."""
LIMITS = ("limit_low", "limit_high")
RISKS = ("coverage", "risk", "risk_undecided")
"""Scores of a judge that may abstain: share of the labeled images that it decides, and share of
wrong answers among them. Images that human annotators can't decide are left out of `risk`, as in
SpatialBench-UC, and wrong in `risk_undecided`."""
THRESHOLDS = tuple(f"accuracy:{tenth / 10:g}" for tenth in range(1, 10))
"""Share of images that the judge's number decides as people do, from this threshold on a yes."""
OVERLAPPING = ":overlapping"
"""After an estimate: only of images in which the judge's boxes of both things overlap."""
NAMES = (
    *("kappa", "agreement", *RISKS, *ESTIMATES, *THRESHOLDS, *DIFFERENCES, *LIMITS, *COUNTS),
    *(f"{name}{OVERLAPPING}" for name in KINDS),
)


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes one of `NAMES`; None without any labeled image.

    ``kappa`` and ``agreement`` are over the three codes of a label; ``count:1:2`` counts images
    that people call 1 and the judge 2. The estimates compare the judge's number with the worth of
    the human label, ``difference`` and the others the scores of each image.
    """
    if name in (*DIFFERENCES, *LIMITS):
        return _difference(name, scope.cells)
    if name in THRESHOLDS:
        return _at_threshold(name, scope)
    if name.removesuffix(OVERLAPPING) in ESTIMATES:
        return _estimate(name, scope)
    codes, failed = _codes(scope.cells)
    if not codes.n:
        return None
    estimate, unit = codes.kappa, "1"
    if name == "agreement":
        estimate = Estimate(codes.observed, n=codes.n)
    elif name in RISKS:
        estimate = _risk(name, codes)
    elif name in COUNTS:
        _, people, judge = name.split(":")
        count = codes.matrix[CODES.index(people)][CODES.index(judge)]
        estimate, unit = Estimate(float(count), n=codes.n), "images"
    return Score.of(estimate, excluded=failed, name=name, unit=unit)


def _risk(name: str, codes: HumanAgreement) -> Estimate:
    """One of `RISKS` with Wilson's interval, in [0, 1]."""
    decided = np.array(codes.matrix)[:, 1:]  # the judge's codes are the columns
    considered = decided[1:] if name == "risk" else decided
    right = int(decided[1:].trace())
    count, of = int(considered.sum()) - right, int(considered.sum())
    if name == "coverage":
        count, of = int(decided.sum()), codes.n
    return share_of(count, of)


def _at_threshold(name: str, scope: ScoreInputs) -> Score | None:
    """Share of labeled images that a threshold of the number and people decide alike, in [0, 1]."""
    human, numbers, cluster_of, failed = _numbers(scope)
    decided = {key: worth for key, worth in human.items() if worth is not None and key in numbers}
    if not decided:
        return None
    threshold = float(name.partition(":")[2])
    alike = [float((numbers[k] >= threshold) == (worth >= 0.5)) for k, worth in decided.items()]
    (share,) = cluster_interval(np.array(alike), [cluster_of[k] for k in decided], (0.0, 1.0))
    undecided = sum(worth is None for key, worth in human.items() if key in numbers)
    excluded = _some({**failed, "undecided": undecided})
    return Score.of(share, excluded=excluded, name=name, unit="1")


def _estimate(name: str, scope: ScoreInputs) -> Score | None:
    human, numbers, cluster_of, failed = _numbers(scope, name.endswith(OVERLAPPING))
    if not human:
        return None
    statistic = name.removesuffix(OVERLAPPING)
    kinds = [kind for kind in KINDS if kind == statistic]
    result = agreement(statistic, numbers, human, kinds=kinds, cluster_of=cluster_of)
    estimate = result["estimates"][statistic]
    value = math.nan if estimate["value"] is None else estimate["value"]
    ends = NOTHING if estimate["interval"] is None else Interval(*estimate["interval"])
    excluded = {**failed, "undecided": result["undecided"]}
    return Score(
        value,
        ends,
        estimate["n"],
        excluded=_some(excluded),
        name=name,
        unit="1",
        warning="; ".join(result["warnings"]),
    )


def _difference(name: str, cells: Sequence[LabeledRun]) -> Score | None:
    """Summary of the judge's scores less human ones by image, each in [0, 1]."""
    labels = {cell.judged.result.folder: cell.labels for cell in cells}
    gaps = score_differences([OutcomesOfRun.of(cell.judged) for cell in cells], labels)
    if gaps is None:
        return None
    if name in LIMITS:
        return Score(gaps["limits"][LIMITS.index(name)], n=gaps["n"], name=name, unit="1")
    ends = Interval(*gaps["interval"]) if name == "difference" else NOTHING
    return Score(gaps[DIFFERENCES[name]], ends, n=gaps["n"], name=name, unit="1")


def _codes(cells: Sequence[LabeledRun]) -> tuple[HumanAgreement, dict[str, int]]:
    """Counts of human codes (rows) and the judge's, and labels without a code by reason."""
    matrix = np.zeros((3, 3), dtype=np.int64)
    failed: dict[str, int] = {}
    for cell in cells:
        worths = open_suite(cell.suite).worths
        for question, agreement_table in cell.judged.result.card.agreement.items():
            for people, row in zip(agreement_table.labels, agreement_table.matrix, strict=True):
                for judge, count in zip(agreement_table.labels, row, strict=True):
                    failure = next((label for label in (people, judge) if label in FAILURES), "")
                    if failure:
                        failed[failure] = failed.get(failure, 0) + count
                        continue
                    first, second = (_code(worths[question], label) for label in (people, judge))
                    matrix[first, second] += count
    return HumanAgreement(CODES, matrix.tolist()), _some(failed)


def _code(worth: Worth, label: str) -> int:
    if label not in worth.values:
        return 0
    return 1 if worth.values[label] > 0 else 2


def _numbers(
    scope: ScoreInputs, overlapping: bool = False
) -> tuple[dict[str, float | None], dict[str, float], dict[str, str], dict[str, int]]:
    """Human worth of each labeled image, the judge's number, the image's cluster, and images
    without a number by reason.

    The number is the judge's measurement, or else the worth of its label. overlapping: only images
    in which the boxes of both things overlap.
    """
    human: dict[str, float | None] = {}
    numbers: dict[str, float] = {}
    cluster_of: dict[str, str] = {}
    failed: dict[str, int] = {}
    for cell in scope.cells:
        suite = open_suite(cell.suite)
        outcomes = {outcome.case.id: outcome for outcome in cell.outcomes}
        for (case, question), label in cell.labels.items():
            outcome = outcomes.get(case)  # None where a check on gold images left it out
            if outcome is None or question not in suite.worths:
                continue
            verdict = outcome.verdict(question)
            if overlapping and not overlaps(verdict):
                continue
            key = f"{cell.judged.result.folder}/{case}/{question}"
            human[key] = _worth(suite, outcome, question, label)
            cluster_of[key] = f"{cell.suite}/{outcome.case.clusters[0]}"
            number = None if scope.by_verdict else verdict.number
            if number is None and not verdict.failed:
                number = _worth(suite, outcome, question, verdict.label)
            if number is None:
                failed[verdict.label] = failed.get(verdict.label, 0) + 1
            else:
                numbers[key] = number
    return human, numbers, cluster_of, failed


def _worth(suite: Suite[Any], outcome: Outcome, question: str, label: str) -> float | None:
    """Worth of a label, in [0, 1]; None for a label that decides nothing.

    If a single question decides whether an image is right, it is the suite's own correctness, which
    may count a missing thing as wrong.
    """
    worth = suite.worths[question]
    if suite.has_right_images and len(suite.worths) == 1:
        verdicts = {(question, ORIGINAL): Verdict(label)}
        correctness = suite.correctness(Outcome(outcome.case, verdicts))
        return None if math.isnan(correctness) else correctness
    low, high = worth.ends
    value = worth.values.get(label)
    return None if value is None else (value - low) / (high - low)


def _some(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in sorted(counts.items()) if count}
