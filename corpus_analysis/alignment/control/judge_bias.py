"""A judge beside people's boxes on the same images: how much its bias adds to a rate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ....eval.stats.correction import ppi
from ....eval.stats.intervals import Interval
from ..layout_judge import ASPECTS
from ..rates import JudgedPair
from .boxed_pairs import BoxedPair, side
from .subsets import interval_over_clusters


@dataclass(frozen=True)
class JudgeMeasure:
    """A number with its uncertainty."""

    n: int
    """Pairs that it rests on."""
    value: float
    """NaN if n is 0."""
    interval: Interval
    """95 %, over images; NaN below two."""


@dataclass(frozen=True)
class JudgeBias:
    """A judge's answers on pairs whose order the boxes show."""

    judge: Mapping[str, str]
    """Identity of the judge."""
    gate: Mapping[str, Mapping[str, int]]
    """By the boxes, `beside` or `not_beside` -> the judge's `accepted`, `rejected` or `failed`."""
    failed: Mapping[str, int]
    """Of the pairs that the judge accepts, answers that name no side, by label."""
    said: JudgeMeasure
    """Share of first-mentioned things that the judge sees on the left: the paper's measure."""
    true: JudgeMeasure
    """The same share of the same pairs, by the boxes."""
    agrees: JudgeMeasure
    """Share of pairs in which the judge agrees with the boxes."""
    bias: JudgeMeasure
    """`said - true`, pair by pair: how much the judge adds."""
    four_probes: JudgeMeasure
    """Bias of the mean over the four probes, which a preference can only pull toward one half."""
    left_if_left: JudgeMeasure
    """Share of "first is left" where it is."""
    left_if_right: JudgeMeasure
    """Share of "first is left" where it isn't."""
    unboxed: JudgeMeasure
    """`said` for images without boxes."""
    corrected: JudgeMeasure
    """The share in all images by PPI++, with the boxes as labels; n counts the labels. Holds where
    the images with boxes are a random part of all."""


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
    said_left = np.array([judged.side for _, judged in answered])
    probed = np.array([judged.probed for _, judged in answered])
    images = [pair.image for pair, _ in answered]
    others = [judged for judged in unboxed if judged.answers.valid and not math.isnan(judged.side)]
    other_sides = np.array([judged.side for judged in others])
    clusters = [*images, *(judged.image for judged in others)]
    corrected = ppi(other_sides, said_left, truth, (0.0, 1.0), np.array(clusters))
    return JudgeBias(
        judge=dict(judge),
        gate={name: dict(counts) for name, counts in gate.items()},
        failed=dict(failed),
        said=_measured(said_left, images),
        true=_measured(truth, images),
        agrees=_measured((said_left == truth).astype(float), images),
        bias=_measured(said_left - truth, images, (-1.0, 1.0)),
        four_probes=_measured(probed - truth, images, (-1.0, 1.0)),
        left_if_left=_measured(np.where(truth == 1, said_left, math.nan), images),
        left_if_right=_measured(np.where(truth == 0, said_left, math.nan), images),
        unboxed=_measured(other_sides, [judged.image for judged in others]),
        corrected=JudgeMeasure(len(truth), corrected.value, corrected.interval),
    )


def _measured(
    values: np.ndarray, clusters: Sequence[str], ends: tuple[float, float] = (0.0, 1.0)
) -> JudgeMeasure:
    """Computes the mean of the values that are not NaN, with its interval over clusters."""
    defined = [(v, c) for v, c in zip(values, clusters, strict=True) if not math.isnan(v)]
    numbers = np.array([v for v, _ in defined])
    value = float(numbers.mean()) if defined else math.nan
    interval = interval_over_clusters(numbers, [c for _, c in defined], ends)
    return JudgeMeasure(len(defined), value, interval)
