"""`forward:`: forward equivariance between two models of one direction (ACON, Table 3).

One captioner tells edited images; the texts of another one are edited. Where both models are one,
it is the suite's own score `forward`.
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
    """The runs that it needs besides its own: one of them is in a study."""
    start = generator.partition(JOINT)[0]
    return [f"{start}{JOINT}{one}" for one in name.removeprefix(CHANCE).split("|")]


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Pearson's r of this model's `edit_first` and the `edit_last` of another one, by its name.

    Several names, ``Flux|LLaVA``, stand for the one among them that starts where this one starts;
    ``chance:NAME`` is r of shuffled pairs. None where there is no such model, or no such criterion.
    """
    wanted = int(name.startswith(CHANCE))
    other = next((scope.rivals[n] for n in reads(name, scope.name) if n in scope.rivals), None)
    if other is None:
        return None
    (own,) = scope.own
    first, last = answers_of(own.outcomes, "edit_first"), answers_of(other.outcomes, "edit_last")
    if not len(first.right) or not _alike(first, last):
        return None
    label = f"forward:{name}"
    return forward_scores(first, last, (label, label))[wanted]


def _alike(first: CriterionAnswers, last: CriterionAnswers) -> bool:
    """Whether both were asked the same questions, in the same order."""
    return np.array_equal(first.rows, last.rows) and np.array_equal(first.true, last.true)
