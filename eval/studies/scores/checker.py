"""`checker:`: why an abstaining checker decides nothing, and how sure it is (SpatialBench-UC)."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

from ....human_labels import Label
from ...core import FAILURES, Score, Verdict, count_excluded
from ...geometry.checker.decide import REASONS, SECONDARY_FAILED
from ...suites import open_suite
from ...suites.scoring import mean_score
from ...suites.spatial import CHECKED
from .scope import LabeledRun, ScoreInputs

CONFIDENCE = "confidence"
UNDECIDABLE = "undecidable"
FAILED = "secondary_failed"
NAMES = (CONFIDENCE, UNDECIDABLE, *REASONS, FAILED)
_WHY = re.compile(
    r"(PASS|FAIL|UNDECIDABLE)(?: ([a-z_]+).*?)?, confidence ([0-9.]+)"
    rf"(; {SECONDARY_FAILED}.*)?",
    re.DOTALL,
)
"""Reason that `judges.checker` records: decision, cause of an abstention, confidence, and whether
the second detector failed."""


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes the mean confidence of all judged images, in [0, 1], or the percentage that is
    undecidable, for one reason or any, or on which the second detector failed.

    None if no verdict is of a checker.
    """
    (cell,) = scope.cells
    verdicts = [outcome.verdict(_question(cell)) for outcome in cell.outcomes]
    values = np.array([_value(name, verdict) for verdict in verdicts], dtype=float)
    if np.isnan(values).all():
        return None
    labels = [verdict.label for verdict in verdicts]
    return mean_score(
        f"checker:{name}",
        values,
        cell.outcomes,
        unit="1" if name == CONFIDENCE else "%",
        excluded=count_excluded(labels, set(labels) - set(FAILURES)),
    )


def labeled_verdicts(cell: LabeledRun) -> tuple[list[dict[str, Any]], list[Label]]:
    """The checker's verdicts on labeled images and the labels, as `judges.checker.analyze` takes
    them."""
    question, rows, labels = _question(cell), [], []
    for outcome in cell.outcomes:
        label = cell.labels.get((outcome.case.id, question), "")
        verdict = outcome.verdict(question)
        confidence = _value(CONFIDENCE, verdict)
        if label in CHECKED and not math.isnan(confidence):
            sample = f"{cell.judged.name}/{outcome.case.id}"
            row = {"sample_id": sample, "verdict_raw": CHECKED[verdict.label], "conf": confidence}
            rows.append(row)
            labels.append(Label(sample, CHECKED[label]))
    return rows, labels


def _question(cell: LabeledRun) -> str:
    return next(iter(open_suite(cell.suite).worths))


def _value(name: str, verdict: Verdict) -> float:
    """Value of a verdict; NaN for a failure, and for a verdict of any other judge."""
    if verdict.failed:
        return math.nan
    try:
        match = _WHY.fullmatch(json.loads(verdict.raw)["why"])
    except (ValueError, KeyError, TypeError):
        return math.nan
    if match is None:
        return math.nan
    decision, reason, confidence, failure = match.groups()
    if name == CONFIDENCE:
        return float(confidence)
    if name == FAILED:
        return float(failure is not None)
    return float(decision == "UNDECIDABLE" if name == UNDECIDABLE else reason == name)
