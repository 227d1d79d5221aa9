"""`boxes:`: which of two things is drawn at all, by the boxes of a judge by rule (PSE, Figure 13).

A rule's verdict lists the boxes of both things, the first-mentioned first. Where the first one is
found more often, order of mention decides what is drawn, before it decides where.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from ...core import FAILURES, Score, Verdict, count_excluded
from ...geometry.boxes import Box, intersection
from ...suites import open_suite
from ...suites.scoring import mean_score
from .scope import LabeledRun, ScoreInputs

NAMES = ("first", "second", "gap")


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes the percentage of images in which the first-mentioned thing was found, the second
    one, or the first less the second.

    None if no verdict lists boxes.
    """
    (cell,) = scope.cells
    verdicts = [outcome.verdict(question_of(cell)) for outcome in cell.outcomes]
    values = np.array([_value(name, verdict) for verdict in verdicts], dtype=float)
    if np.isnan(values).all():
        return None
    labels = [verdict.label for verdict in verdicts]
    excluded = count_excluded(labels, set(labels) - set(FAILURES))
    ends = (-1, 1) if name == "gap" else (0, 1)
    return mean_score(f"boxes:{name}", values, cell.outcomes, ends=ends, excluded=excluded)


def question_of(cell: LabeledRun) -> str:
    """The question whose verdicts list boxes."""
    return next(iter(open_suite(cell.suite).worths))


def boxes_of(verdict: Verdict) -> list[list[Box]] | None:
    """Boxes of both things of a verdict by rule, best first; None for any other verdict."""
    if verdict.failed:
        return None
    try:
        found: dict[str, Any] = json.loads(verdict.raw)["found"]
        groups = [[Box(*row[1:5]) for row in rows] for rows in found.values()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return groups if len(groups) == 2 else None


def overlaps(verdict: Verdict) -> bool:
    """Whether the best boxes of both things overlap."""
    groups = boxes_of(verdict)
    return bool(groups and all(groups) and intersection(groups[0][0], groups[1][0]) > 0)


def _value(name: str, verdict: Verdict) -> float:
    groups = boxes_of(verdict)
    if groups is None:
        return math.nan
    first, second = (float(bool(group)) for group in groups)
    return {"first": first, "second": second, "gap": first - second}[name]
