"""`checker:`: why an abstaining checker decides nothing, and how sure it is (SpatialBench-UC)."""

from __future__ import annotations

import json
import math
import re

import numpy as np

from ...core import FAILURES, Score, Verdict, count_excluded
from ...geometry.checker.decide import REASONS
from ...suites import open_suite
from ...suites.scoring import mean_score
from .scope import ScoreInputs

CONFIDENCE = "confidence"
UNDECIDABLE = "undecidable"
NAMES = (CONFIDENCE, UNDECIDABLE, *REASONS)
_WHY = re.compile(r"(PASS|FAIL|UNDECIDABLE)(?: ([a-z_]+).*)?, confidence ([0-9.]+)", re.DOTALL)
"""What `judges.checker` gives as its reason: verdict, why it abstains, and how sure it is."""


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Mean confidence of all judged images, in [0, 1], or the share that is undecidable, for one
    reason or at all; percent.

    None where no verdict is of a checker.
    """
    (cell,) = scope.own
    (question, *_) = open_suite(cell.suite).worths
    verdicts = [outcome.verdict(question) for outcome in cell.outcomes]
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


def _value(name: str, verdict: Verdict) -> float:
    """NaN for a failure, and for what is no checker's."""
    if verdict.failed:
        return math.nan
    try:
        told = _WHY.fullmatch(json.loads(verdict.raw)["why"])
    except (ValueError, KeyError, TypeError):
        return math.nan
    if told is None:
        return math.nan
    said, reason, sure = told.groups()
    if name == CONFIDENCE:
        return float(sure)
    return float(said == "UNDECIDABLE" if name == UNDECIDABLE else reason == name)
