"""Suites with one question a picture: does it show its assessment point?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL.Image import Image

from ..core import Case, Outcome, count_excluded
from ..judges import Question
from ..prompts import Prompt
from ..stats.bootstrap import Array, cluster_bootstrap
from .asking import ask_yes_no
from .counterfactual import ANSWERS
from .scores import ALL, Score, cluster_labels, mean_score

QUESTION = "shows"


def ask_point(
    case: Case, point: str, images: Sequence[Image], probe: str, prompt: Prompt
) -> list[Question]:
    """Whether the picture shows the assessment point."""
    if probe != "original":
        return []
    question = f"Does the picture show the following? {point}"
    return [ask_yes_no(case, QUESTION, prompt, question, images[-1])]


def answers_of(outcomes: Sequence[Outcome]) -> Array:
    """Shape (n,): 1 shown, 0 not shown, NaN no answer."""
    return np.array([ANSWERS.get(outcome.label(QUESTION), np.nan) for outcome in outcomes])


def shown_share(outcomes: Sequence[Outcome], name: str, group: str) -> Score:
    """Share of pictures that show their point."""
    excluded = count_excluded([outcome.label(QUESTION) for outcome in outcomes], ANSWERS)
    return mean_score(name, answers_of(outcomes), outcomes, excluded, "1", group)


def shown_by_variant(
    outcomes: Sequence[Outcome], variants: tuple[str, str], gap: str
) -> list[Score]:
    """The share of each variant, and the first minus the second under the name `gap`."""
    shares = [
        shown_share([o for o in outcomes if o.case.variant == variant], f"shown_{variant}", ALL)
        for variant in variants
    ]
    return [*shares, _shown_gap(outcomes, variants, gap, ALL)]


def _shown_gap(
    outcomes: Sequence[Outcome], variants: tuple[str, str], name: str, group: str
) -> Score:
    """Share of the first variant minus that of the second, over the clusters that they share."""
    values = answers_of(outcomes)
    columns = np.full((len(outcomes), 2), np.nan)
    for row, outcome in enumerate(outcomes):
        columns[row, variants.index(outcome.case.variant)] = values[row]
    found = cluster_bootstrap(
        columns, cluster_labels(outcomes), lambda means: means[..., :1] - means[..., 1:]
    )
    n = int((~np.isnan(values)).sum())
    excluded = count_excluded([outcome.label(QUESTION) for outcome in outcomes], ANSWERS)
    return Score(name, float(found.estimate[0]), found.interval(), n, "1", excluded, group)
