"""A judge beside people's boxes on the same images: how much its bias adds to a rate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ....eval.core import without_nan
from ....eval.stats.correction import ppi
from ....eval.stats.estimate import Estimate
from ..layout_judge import ASPECTS
from ..rates import JudgedPair
from .boxed_pairs import BoxedPair, side
from .subsets import interval_over_clusters

_KEYS = {"by_judge": "said", "by_boxes": "true"}
"""Fields of `JudgeBias` whose JSON key differs from their name."""


@dataclass(frozen=True)
class JudgeBias:
    """A judge's answers on pairs whose order the boxes show.

    `n` of an estimate counts pairs; its interval is over images and undefined below two.
    """

    judge: Mapping[str, str]
    """Identity of the judge."""
    gate: Mapping[str, Mapping[str, int]]
    """`beside` or `not_beside` by the boxes -> pairs that the judge `accepted`, `rejected` or
    `failed`."""
    failed: Mapping[str, int]
    """Answers that name no side about pairs that the judge accepts, by label."""
    by_judge: Estimate
    """Share of first-mentioned things that the judge sees on the left: the paper's measure."""
    by_boxes: Estimate
    """The same share of the same pairs, by the boxes."""
    agrees: Estimate
    """Share of pairs in which the judge agrees with the boxes."""
    bias: Estimate
    """`by_judge - by_boxes`, pair by pair: how much the judge adds."""
    four_probes: Estimate
    """Bias of the mean over the four probes, which a preference can only pull toward one half."""
    left_if_left: Estimate
    """Share of "first is left" where it is."""
    left_if_right: Estimate
    """Share of "first is left" where it isn't."""
    unboxed: Estimate
    """`by_judge` for images without boxes."""
    corrected: Estimate
    """The share in all images by PPI++, with the boxes as labels; n counts the labels. Holds where
    the images with boxes are a random part of all."""

    def to_json(self) -> dict[str, Any]:
        """Plain values under the keys of the control's result; NaN as None."""
        plain: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Estimate):
                value = {"n": value.n, "value": value.value, "interval": value.interval}
            plain[_KEYS.get(field.name, field.name)] = value
        cleaned: dict[str, Any] = without_nan(plain)
        return cleaned


def measure_bias(
    judge: Mapping[str, str],
    boxed: Sequence[tuple[BoxedPair, JudgedPair]],
    unboxed: Iterable[JudgedPair],
) -> JudgeBias:
    """Compares a judge's answers with the boxes. unboxed: answers on images without boxes."""
    gate = {"beside": Counter[str](), "not_beside": Counter[str]()}
    for pair, judged in boxed:
        labels = {judged.answers.gate.get((aspect, "original")) for aspect in ASPECTS}
        decision = "accepted" if judged.answers.valid else "rejected"
        if not labels <= {"yes", "no"}:
            decision = "failed"
        gate["beside" if pair.beside else "not_beside"][decision] += 1
    accepted = [
        (pair, judged)
        for pair, judged in boxed
        if judged.answers.valid and side(pair.first.box, pair.second.box) != 0.5
    ]
    failed = Counter(
        judged.answers.order.get("original", "missing")
        for _, judged in accepted
        if math.isnan(judged.side)
    )
    answered = [(pair, judged) for pair, judged in accepted if not math.isnan(judged.side)]
    truth = np.array([side(pair.first.box, pair.second.box) for pair, _ in answered])
    judged_left = np.array([judged.side for _, judged in answered])
    probed = np.array([judged.probed for _, judged in answered])
    images = [pair.image for pair, _ in answered]
    unboxed_sided = [
        judged for judged in unboxed if judged.answers.valid and not math.isnan(judged.side)
    ]
    unboxed_sides = np.array([judged.side for judged in unboxed_sided])
    clusters = [*images, *(judged.image for judged in unboxed_sided)]
    corrected = ppi(unboxed_sides, judged_left, truth, (0.0, 1.0), np.array(clusters))
    return JudgeBias(
        judge=dict(judge),
        gate={name: dict(counts) for name, counts in gate.items()},
        failed=dict(failed),
        by_judge=_measured(judged_left, images),
        by_boxes=_measured(truth, images),
        agrees=_measured((judged_left == truth).astype(float), images),
        bias=_measured(judged_left - truth, images, (-1.0, 1.0)),
        four_probes=_measured(probed - truth, images, (-1.0, 1.0)),
        left_if_left=_measured(np.where(truth == 1, judged_left, math.nan), images),
        left_if_right=_measured(np.where(truth == 0, judged_left, math.nan), images),
        unboxed=_measured(unboxed_sides, [judged.image for judged in unboxed_sided]),
        corrected=Estimate(corrected.value, corrected.interval, n=len(truth)),
    )


def _measured(
    values: np.ndarray, clusters: Sequence[str], ends: tuple[float, float] = (0.0, 1.0)
) -> Estimate:
    """Computes the mean of the values that are not NaN, with its interval over clusters."""
    defined = [(v, c) for v, c in zip(values, clusters, strict=True) if not math.isnan(v)]
    numbers = np.array([v for v, _ in defined])
    value = float(numbers.mean()) if defined else math.nan
    interval = interval_over_clusters(numbers, [c for _, c in defined], ends)
    return Estimate(value, interval, n=len(defined))
