"""`switched:`: does the layout follow the prompt that was switched to? (OTS-Bench, Table 7)

A is the prompt of the variant `plain`, B that of `swapped`. Both are cases, so one run with
``switch:a2b`` holds A2B (its plain cases) and B2A (its swapped ones), and one with ``switch:n2a``
N2A and N2B; a second run with the protocols reversed would draw the same images again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....errors import UsageError
from ...core import Case, Outcome, Score, count_excluded
from ...stats.clusters import cluster_interval
from ...stats.intervals import NOTHING, Interval, folded
from ...suites import open_suite
from ...suites.base import Suite
from .scope import ScoreInputs

NAMES = ("success:plain", "success:swapped", "hom:plain", "hom:swapped")
_TO_OTHER = re.compile(r"switch:[an]2b\b")


def find(name: str, scope: ScoreInputs) -> Score | None:
    """``success:VARIANT`` or ``hom:VARIANT``, of the cases of one variant; percent.

    Success is over the cases that are biased without the switch, see `biased`: the share
    of valid images whose layout is that of the last prompt. Hom is over all. Without the switch,
    success is how many follow the only prompt: all, because they were chosen for it. None where no
    case is biased. Raises UsageError for a suite without a prior.
    """
    what, _, variant = name.partition(":")
    (cell,) = scope.own
    if scope.base is None:
        return None
    suite = open_suite(cell.suite)
    question, label = prior_of(suite)
    said = [o for o in cell.outcomes if o.case.variant == variant]
    if what == "success":
        chosen = {case.id for case in biased(scope.base.outcomes, question, label)}
        said = [o for o in said if o.case.id in chosen]
    if not said:
        return None
    found = mean_sign(said, question, suite.worths[question].values)
    if what == "success":
        # Labels speak of each case's own prompt; after `a2b` and `n2b` the last one is the other.
        method = cell.judged.result.run.generator.get("method", "")
        value, interval = followed(found, -1 if _TO_OTHER.search(method) else 1)
    else:
        value, interval = 100 * abs(found.mean), folded(found.interval.scaled(100))
    return Score(f"switched:{name}", value, interval, n=found.n, unit="%", excluded=found.excluded)


def biased(said: Sequence[Outcome], question: str, label: str) -> list[Case]:
    """Cases of rows and seeds in which every order of mention follows the prior, by id.

    That the first-mentioned stands left in one order alone may be the entities' own doing.
    """
    groups: dict[tuple[str, int], list[Outcome]] = {}
    for outcome in said:
        groups.setdefault((outcome.case.row, outcome.case.seed), []).append(outcome)
    return [
        outcome.case
        for _, group in sorted(groups.items())
        if len(group) > 1 and all(o.label(question) == label for o in group)
        for outcome in group
    ]


def prior_of(suite: Suite[Any]) -> tuple[str, str]:
    """The one question of a suite and its label that follows the prior. Raises UsageError."""
    priors = [(name, worth.prior) for name, worth in suite.worths.items() if worth.prior]
    if len(priors) != 1 or len(suite.variants) < 2:
        raise UsageError(
            f"{suite.name} does not ask about a prior in both orders of mention", code="unsupported"
        )
    return priors[0]


class MeanSign(NamedTuple):
    """How far images follow the prior of their own prompt."""

    mean: float
    """In [-1, 1]; NaN without a valid image."""
    interval: Interval
    """95 %, over pairs."""
    n: int
    """Valid images."""
    excluded: Mapping[str, int]
    """The others, by label."""


def mean_sign(said: Sequence[Outcome], question: str, worth: Mapping[str, float]) -> MeanSign:
    """worth: label -> +1 where the image follows the prior of its own prompt, -1 where not."""
    signs = np.array([worth.get(o.label(question), math.nan) for o in said])
    known = ~np.isnan(signs)
    clusters = [o.case.clusters[0] for o, is_known in zip(said, known, strict=True) if is_known]
    mean, interval = math.nan, NOTHING
    if clusters:
        (estimate,) = cluster_interval(signs[known], clusters, (-1.0, 1.0))
        mean, interval = estimate.value, estimate.interval
    excluded = count_excluded([o.label(question) for o in said], worth)
    return MeanSign(mean, interval, int(known.sum()), excluded)


def followed(found: MeanSign, toward: int) -> tuple[float, Interval]:
    """Percent of images with the sign `toward`, +1 or -1, and its interval."""
    low, high = sorted(50 * (1 + toward * end) for end in found.interval)
    return 50 * (1 + toward * found.mean), Interval(low, high)
