"""`forward:`: forward equivariance between two models of one direction (ACON, Table 3).

One captioner describes edited images; the captions of another one are edited. With the same model
in both places it is the suite's own score `forward`.
"""

from __future__ import annotations

import numpy as np

from ...core import Score
from ...roundtrips.routes import JOINT
from ...suites.consistency import CriterionAnswers, answers_of, forward_scores
from .scope import ScoreInputs

CHANCE = "chance:"
NAMES = ("*",)


def reads(name: str, generator: str) -> list[str]:
    """Names of the runs of which it needs one besides its own."""
    start = generator.partition(JOINT)[0]
    return [f"{start}{JOINT}{model}" for model in name.removeprefix(CHANCE).split("|")]


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes Pearson's r of this model's `edit_first` and the `edit_last` of a named one.

    Several names, ``Flux|LLaVA``, stand for the one among them that starts where this one starts;
    ``chance:NAME`` is r of shuffled pairs. None without such a model or criterion.
    """
    wanted = int(name.startswith(CHANCE))
    partner = next((scope.rivals[n] for n in reads(name, scope.name) if n in scope.rivals), None)
    if partner is None:
        return None
    (cell,) = scope.cells
    first, last = answers_of(cell.outcomes, "edit_first"), answers_of(partner.outcomes, "edit_last")
    if not len(first.right) or not _alike(first, last):
        return None
    label = f"forward:{name}"
    return forward_scores(first, last, (label, label))[wanted]


def _alike(first: CriterionAnswers, last: CriterionAnswers) -> bool:
    """Whether the judge was asked the same questions about both, in the same order."""
    return np.array_equal(first.rows, last.rows) and np.array_equal(first.true, last.true)
