"""`switched:`: does the layout follow the prompt that was switched to? (OTS-Bench, Table 7)

A is the prompt of the variant `plain`, B that of `swapped`. Both are cases, so one run with
``switch:a2b`` holds A2B (its plain cases) and B2A (its swapped ones), and one with ``switch:n2a``
N2A and N2B; a second run with the protocols reversed would draw the same images again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....errors import UsageError
from ...core import Case, Outcome, Score, count_excluded
from ...results.scoring import JudgedRun
from ...stats.clusters import cluster_interval
from ...stats.estimate import Estimate
from ...stats.intervals import Interval, folded
from ...suites import open_suite
from ...suites.base import Suite
from .scope import ScoreInputs

NAMES = ("success", "hom", "success:plain", "success:swapped", "hom:plain", "hom:swapped")
_TO_OTHER = re.compile(r"switch:[an]2b\b")


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes ``success`` or ``hom`` of all cases, or with ``:VARIANT`` of one variant; percent.

    Success is over the cases that are biased without the switch, see `biased`: the share
    of valid images whose layout is that of the last prompt. Hom is over all. Without the switch,
    success is the share that follows the only prompt: all, because they were chosen for it. None
    without any biased case. Raises UsageError for a suite without a prior.
    """
    kind, _, variant = name.partition(":")
    (cell,) = scope.cells
    if scope.base is None:
        return None
    suite = open_suite(cell.suite)
    question, label = prior_of(suite)
    outcomes = [o for o in cell.outcomes if variant in ("", o.case.variant)]
    if kind == "success":
        biased_ids = {case.id for case in biased(scope.base.outcomes, question, label)}
        outcomes = [o for o in outcomes if o.case.id in biased_ids]
    if not outcomes:
        return None
    sign = mean_sign(outcomes, question, suite.worths[question].values)
    if kind == "success":
        percent = followed(sign, followed_last(cell.judged))
    else:
        percent = sign.scaled(100)
        percent = replace(percent, value=abs(percent.value), interval=folded(percent.interval))
    return Score.of(percent, name=f"switched:{name}", unit="%")


def biased(outcomes: Sequence[Outcome], question: str, label: str) -> list[Case]:
    """Cases of rows and seeds in which every order of mention follows the prior, by id.

    If the first-mentioned stands left in one order only, the entities themselves may be the cause.
    """
    groups: dict[tuple[str, int], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.case.row, outcome.case.seed), []).append(outcome)
    return [
        outcome.case
        for _, group in sorted(groups.items())
        if len(group) > 1 and all(o.label(question) == label for o in group)
        for outcome in group
    ]


def prior_of(suite: Suite[Any]) -> tuple[str, str]:
    """Question of a suite and its label that follows the prior. Raises UsageError without one."""
    priors = [(name, worth.prior) for name, worth in suite.worths.items() if worth.prior]
    if len(priors) != 1 or len(suite.variants) < 2:
        raise UsageError(
            f"{suite.name} does not ask about a prior in both orders of mention", code="unsupported"
        )
    return priors[0]


def mean_sign(outcomes: Sequence[Outcome], question: str, worth: Mapping[str, float]) -> Estimate:
    """Mean sign by which images follow the prior of their own prompt, in [-1, 1], over pairs.

    worth: label -> +1 if the image follows the prior of its own prompt, -1 if not. NaN without a
    valid image.
    """
    signs = np.array([worth.get(o.label(question), math.nan) for o in outcomes])
    valid = ~np.isnan(signs)
    clusters = [o.case.clusters[0] for o, is_valid in zip(outcomes, valid, strict=True) if is_valid]
    mean = Estimate(math.nan)
    if clusters:
        (mean,) = cluster_interval(signs[valid], clusters, (-1.0, 1.0))
    excluded = count_excluded([o.label(question) for o in outcomes], worth)
    return replace(mean, excluded=excluded, warning="")


def followed_last(judged: JudgedRun) -> int:
    """Sign of an image that follows the last prompt of a run's switch, +1 or -1.

    Labels speak of each case's own prompt; after `a2b` and `n2b` the last one is the other.
    """
    method = judged.result.run.generator.get("method", "")
    return -1 if _TO_OTHER.search(method) else 1


def followed(sign: Estimate, toward: int) -> Estimate:
    """Percent of images with the sign `toward`, +1 or -1."""
    low, high = sorted(50 * (1 + toward * end) for end in sign.interval)
    return replace(sign, value=50 * (1 + toward * sign.value), interval=Interval(low, high))
