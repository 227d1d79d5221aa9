"""By which score a suite ranks generators, and the values per item that two are compared on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ..core import Outcome
from ..stats.bootstrap import Array
from . import assessed, correctness, counterfactual, spatial
from . import i2i_homogenization as edits
from . import t2i_homogenization as pictures
from .asking import INVALID
from .worlds import gated, premise_ratio


class Item(NamedTuple):
    """What one generator did on one item."""

    values: tuple[float, ...]
    """What the statistic takes the means of; NaN where there is no value."""
    cluster: str
    """What the item belongs to."""


Items = Mapping[Hashable, Item]
"""By a key that is the same for every generator."""


@dataclass(frozen=True)
class Headline:
    """The score that a suite's leaderboard stands on."""

    score: str
    """Its name among the suite's scores."""
    better: Literal["higher", "lower"]
    """Which end is the better one."""
    meaning: str
    """A sentence for the reader."""
    items: Callable[[Sequence[Outcome]], Items]
    """The values per item."""
    statistic: Callable[[Array], Array] = lambda means: means
    """From their means, shape (..., k), to the score, shape (..., 1), up to a constant factor."""
    broken_down: tuple[str, ...] = ()
    """Scores that are drawn for every group, where the suite has groups."""


def _labelled(
    question: str, values: Mapping[str, float], variant: str | None = None
) -> Callable[[Sequence[Outcome]], Items]:
    """A number for each label of one question, among the pictures of one variant or of all."""

    def items(outcomes: Sequence[Outcome]) -> Items:
        return {
            outcome.case.id: Item(
                (values.get(outcome.label(question), np.nan),), outcome.case.clusters[0]
            )
            for outcome in outcomes
            if variant is None or outcome.case.variant == variant
        }

    return items


def _groups(outcomes: Sequence[Outcome]) -> Items:
    """Gated scores of the levels of every group of worlds."""
    keys, table, laws = counterfactual.score_table(outcomes)
    return {
        key: Item(tuple(float(value) for value in row), str(law))
        for key, row, law in zip(keys, gated(table), laws, strict=True)
    }


def _premise_ratio(means: Array) -> Array:
    return premise_ratio(means[..., 0], means[..., 1])[..., None]


def _homogenization(question: str, signs: Mapping[str, float], meaning: str) -> Headline:
    return Headline(
        "hom", "lower", meaning, _labelled(question, signs), np.abs, ("signed_index",)
    )  # fmt: skip


def _correctness(question: str) -> Headline:
    return Headline(
        "accuracy_reverse",
        "higher",
        "Share of right pictures where the order of mention speaks against the right one.",
        _labelled(question, correctness.RIGHT, "reverse"),
        broken_down=("accuracy_aligned", "accuracy_reverse"),
    )


def _shown(variant: str, meaning: str) -> Headline:
    items = _labelled(assessed.QUESTION, counterfactual.ANSWERS, variant)
    return Headline(f"shown_{variant}", "higher", meaning, items, broken_down=("shown",))


_SPATIAL = Headline(
    "accuracy_unconditional",
    "higher",
    "Share of pictures with the stated relation, of all that could be judged.",
    _labelled(spatial.QUESTION, {**spatial.VALUES, INVALID: 0.0}),
    broken_down=("accuracy_unconditional",),
)

HEADLINES: dict[str, Headline] = {
    "t2i_homogenization": _homogenization(
        pictures.QUESTION,
        pictures.SIGNS,
        "How far the first-mentioned entity always stands on the same side; 0 without a prior. The "
        "tick is what chance alone gives.",
    ),
    "t2i_correctness": _correctness("arrangement"),
    "i2i_homogenization": _homogenization(
        edits.QUESTION,
        edits.SIGNS,
        "How far it is always the same side that acts; 0 without a prior. The tick is what chance "
        "alone gives.",
    ),
    "i2i_correctness": _correctness("binding"),
    "counterfactual": Headline(
        "prr",
        "higher",
        "What is left of the score of the plain scene under an altered law.",
        _groups,
        _premise_ratio,
        ("prr",),
    ),
    "counterfactual_denominalized": _shown(
        "described", "Share of pictures that show an outcome which is described, not named."
    ),
    "rule_decoupling": _shown(
        "counterfactual", "Share of pictures that obey a rule which doesn't hold here."
    ),
    "attribute_decoupling": _shown("rare", "Share of pictures that show a rare attribute."),
    "spatial_uc": _SPATIAL,
    "spatial_visor": _SPATIAL,
}
"""By config; a suite without one has no leaderboard."""
