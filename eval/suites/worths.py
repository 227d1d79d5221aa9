"""Values of the labels of a question in its scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core import ORIGINAL, Outcome, Verdict
from ..stats.bootstrap import Array
from .columns import labels_of


@dataclass(frozen=True)
class Worth:
    """Values of the labels of one question in its scores."""

    values: Mapping[str, float]
    """Label -> value; a label without one is not scored."""
    prior: str = ""
    """The label that follows the prior; empty if none does."""
    unscored: tuple[str, ...] = ()
    """Labels that are answers but not scored."""

    @property
    def ends(self) -> tuple[float, float]:
        """Least and largest value."""
        return min(self.values.values()), max(self.values.values())

    def of(self, verdict: Verdict) -> float:
        """The value of a verdict's label; NaN for one that is not scored."""
        return self.of_label(verdict.label)

    def of_label(self, label: str) -> float:
        """The value of a label; NaN for one that is not scored."""
        return self.values.get(label, math.nan)

    def of_labels(self, labels: Sequence[str]) -> Array:
        """Shape (n,): the value of each label, NaN for one that is not scored."""
        return np.array([self.of_label(label) for label in labels], dtype=float)


YES_NO = Worth({"yes": 1.0, "no": 0.0})


def degree(verdict: Verdict) -> float:
    """How far a judge says yes, in [0, 1]; NaN for a failure.

    Its number on a scale, else its probability of yes, else 1 or 0 by its label.
    """
    if verdict.failed:
        return math.nan
    if verdict.number is not None:
        return verdict.number
    share = verdict.share("yes")
    return YES_NO.of(verdict) if share is None else share


def values_of(
    outcomes: Sequence[Outcome], question: str, worth: Worth, probe: str = ORIGINAL
) -> Array:
    """Shape (n,): the worth of each outcome's label, NaN for those without one."""
    return labels_of(outcomes, question, probe).values(worth.of_label)
