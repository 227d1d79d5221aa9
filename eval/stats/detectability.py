"""How often a detector sees a thing that is there, and rates corrected for what it misses.

Detection rates are estimated on composed images, which show known things of known sizes, by a
logistic model with partial pooling: a curve of size for all classes, and deviations of each class,
its slope and each cut-out that are drawn from normal distributions. A class with few cut-outs is
drawn to the others; a class without any has their rate, with the spread between classes in its
interval.

Rates are corrected by weighing each thing that was seen by 1 / its rate (Horvitz and Thompson 1952;
with estimated rates Borchers et al. 1998, in surveys of animals), less what is seen that is not
there (Rogan and Gladen 1978).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bootstrap import Array
from .estimate import Estimate
from .intervals import LEVEL, Interval, wilson
from .means import cluster_mean

KNOTS = (0.005, 0.02, 0.08, 0.32)
"""Areas, shares of the image's, between which the curve of size is straight in log(area); constant
beyond."""
DRAWS = 400
"""Draws from the posterior of the rates."""
_CURVE_SD = 3.0
"""Prior standard deviation of the curve at each knot, logits: finite also where all are seen."""
_SPREAD = 0.5
"""Prior guess of each standard deviation of the deviations, logits, worth one deviation."""
_STEPS = 30
_SETTLED = 0.005
"""Change of standard deviations, logits, below which EM ends."""
MOST_FALSE = 0.4
"""Weighted share of false detections above which nothing is corrected."""
_CHUNK = 2_000
"""Images whose draws are held at once."""


@dataclass(frozen=True)
class Looks:
    """What a detector saw of known things; all of shape (n,)."""

    classes: NDArray[np.str_]
    """Class that it was asked about."""
    cutouts: NDArray[np.str_]
    """Cut-out that shows it, unique in the class; empty for a thing that is not there."""
    sizes: Array
    """Area of its box, share of the image's; of a thing that is not there that of its detection,
    NaN without one."""
    there: NDArray[np.bool_]
    """Whether the image shows the class."""
    seen: NDArray[np.bool_]
    """Whether it was detected."""


@dataclass(frozen=True)
class DetectionRates:
    """P(seen | there) by class and size, and P(seen | not there)."""

    classes: tuple[str, ...]
    """Those with a thing that was there, sorted."""
    curve: Array
    """Shape (draws, knots): logits of the usual class and cut-out."""
    level: Array
    """Shape (draws, classes + 1): deviation of each class, and of one without cut-outs."""
    slope: Array
    """Shape (draws, classes + 1): the same per unit of log(area), from the middle of the knots."""
    cutout_sd: float
    """Standard deviation between cut-outs of a class, logits."""
    false: float
    """Weighted share of things that were seen and are not there."""
    false_draws: Array
    """Shape (draws,)."""

    def draws(self, classes: Sequence[str], sizes: ArrayLike) -> Array:
        """Rates of things of some classes and sizes, shape (draws, n); a size of NaN is the
        middle of the knots."""
        number = {name: place for place, name in enumerate(self.classes)}
        which = np.array([number.get(name, len(self.classes)) for name in classes], dtype=np.intp)
        basis, offset = _basis(np.asarray(sizes, dtype=float))
        logits = self.curve @ basis.T + self.level[:, which] + self.slope[:, which] * offset
        # Mean over cut-outs, approximately (MacKay 1992).
        return _sigmoid(logits / math.sqrt(1 + math.pi * self.cutout_sd**2 / 8))

    def rate(self, classes: Sequence[str], size: float) -> Estimate:
        """The mean rate of some classes at one size, with its 95 % interval."""
        drawn = self.draws(classes, np.full(len(classes), size)).mean(axis=1)
        ends = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
        return Estimate(float(drawn.mean()), Interval(*ends))


def detection_rates(looks: Looks, draws: int = DRAWS, seed: int = 0) -> DetectionRates:
    """Fits the rates of a detector; cut-outs of a class are clusters of its looks.

    Standard deviations are found by EM (Laplace's approximation of the posterior). What the only
    cut-out of a class deviates is ascribed to both, in halves. Raises ValueError if nothing was
    there.
    """
    from scipy import sparse

    there = looks.there
    if not there.any():
        raise ValueError("no look at a thing that is there")
    classes, member = np.unique(looks.classes[there], return_inverse=True)
    named = np.char.add(np.char.add(looks.classes[there], "/"), looks.cutouts[there])
    cutouts, cutout = np.unique(named, return_inverse=True)
    basis, offset = _basis(looks.sizes[there])
    knots, count = basis.shape[1], len(classes)
    rows = np.arange(len(member))
    fixed = knots + 2 * count
    places = np.stack([knots + member, knots + count + member, fixed + cutout], axis=1)
    values = np.stack([np.ones(len(member)), offset, np.ones(len(member))], axis=1)
    deviations = sparse.csr_array(
        (values.ravel(), (rows.repeat(3), places.ravel())),
        shape=(len(member), fixed + len(cutouts)),
    )
    curve = sparse.csr_array(np.pad(basis, ((0, 0), (0, deviations.shape[1] - knots))))
    design = sparse.csr_array(curve + deviations)
    groups = [slice(knots, knots + count), slice(knots + count, fixed), slice(fixed, None)]
    mode, covariance, spreads = _fit(design, looks.seen[there].astype(float), knots, groups)
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(covariance[:fixed, :fixed] + 1e-10 * np.eye(fixed))
    drawn = mode[:fixed] + rng.standard_normal((draws, fixed)) @ root.T
    unknown = rng.standard_normal((2, draws, 1)) * np.array(spreads[:2])[:, None, None]
    rates = DetectionRates(
        tuple(classes.tolist()),
        drawn[:, :knots],
        np.hstack([drawn[:, groups[0]], unknown[0]]),
        np.hstack([drawn[:, groups[1]], unknown[1]]),
        spreads[2],
        0.0,
        np.zeros(draws),
    )
    rates = _calibrated(rates, looks)
    absent, wrong = int((~there).sum()), ~there & looks.seen
    if not absent:
        return rates
    weights = 1 / rates.draws(looks.classes[wrong].tolist(), looks.sizes[wrong]).mean(axis=0)
    total = min(float(weights.sum()), absent - 0.5)
    return replace(
        rates,
        false=total / absent,
        false_draws=rng.beta(total + 0.5, absent - total + 0.5, draws),
    )


def _calibrated(rates: DetectionRates, looks: Looks) -> DetectionRates:
    """The rates with a constant added to all logits, so that on average they are the share seen.

    Laplace's approximation alone draws rates near 1 by some points to the middle.
    """
    there = looks.there
    classes, sizes = looks.classes[there].tolist(), looks.sizes[there]
    target = (float(looks.seen[there].sum()) + 0.5) / (len(sizes) + 1)
    for _ in range(3):
        mean = float(rates.draws(classes, sizes).mean())
        shift = math.log(target / (1 - target)) - math.log(mean / (1 - mean))
        rates = replace(rates, curve=rates.curve + 1.3 * shift)
    return rates


def _basis(sizes: Array) -> tuple[Array, Array]:
    """Weights of the knots, shape (n, knots), and the distance from their middle, (n,)."""
    places = np.log(KNOTS)
    middle = float(places.mean())
    x = np.where(np.isnan(sizes), middle, np.log(np.maximum(sizes, 1e-9)))
    x = np.clip(x, places[0], places[-1])
    basis = np.stack([np.interp(x, places, unit) for unit in np.eye(len(places))], axis=1)
    return basis, x - middle


def _fit(
    design: Any, seen: Array, knots: int, groups: Sequence[slice]
) -> tuple[Array, Array, list[float]]:
    """Mode and covariance of the coefficients, and the standard deviation of each group.

    design: sparse, shape (n, coefficients)."""
    mode = np.zeros(design.shape[1])
    mode[:knots] = math.log((seen.sum() + 1) / (len(seen) - seen.sum() + 1))
    spreads = [_SPREAD] * len(groups)
    precision = np.full(len(mode), _CURVE_SD**-2)
    covariance: Array = np.eye(len(mode))
    for step in range(_STEPS):
        for group, spread in zip(groups, spreads, strict=True):
            precision[group] = spread**-2
        for _ in range(3 if step == 0 else 1):
            rate = _sigmoid(design @ mode)
            weight = rate * (1 - rate)
            hessian = (design.T @ design.multiply(weight[:, None])).toarray() + np.diag(precision)
            covariance = np.asarray(np.linalg.inv(hessian), dtype=float)
            gradient = design.T @ (seen - rate) - precision * mode
            step_size = covariance @ gradient
            mode = mode + step_size * min(1.0, 3.0 / max(float(np.abs(step_size).max()), 1e-12))
        before, spreads = (
            spreads,
            [
                math.sqrt(
                    (float(mode[g] @ mode[g]) + float(np.diag(covariance)[g].sum()) + _SPREAD**2)
                    / (len(mode[g]) + 1)
                )
                for g in groups
            ],
        )
        if max(abs(a - b) for a, b in zip(before, spreads, strict=True)) < _SETTLED:
            break
    return mode, covariance, spreads


def _sigmoid(logits: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-logits)))


@dataclass(frozen=True)
class SeenPairs:
    """What a judge that looks for two things answered about images; all of shape (n,)."""

    classes: tuple[Sequence[str], Sequence[str]]
    """Of the first and of the second thing."""
    sizes: tuple[Array, Array]
    """Areas of their detections, shares of the image's; NaN where not seen."""
    decided: NDArray[np.bool_]
    """Whether it decided."""
    passed: NDArray[np.bool_]
    """Whether the relation holds."""
    clusters: NDArray[np.intp]

    @property
    def both(self) -> NDArray[np.bool_]:
        """Whether both were seen."""
        return np.asarray(~np.isnan(self.sizes[0]) & ~np.isnan(self.sizes[1]))


def corrected_rates(pairs: SeenPairs, rates: DetectionRates) -> tuple[Estimate, Estimate, Estimate]:
    """Shares of images that a detector without misses would decide and pass, and of passes among
    the decided.

    Each with its 95 % interval, which adds the errors of the detection rates to those of the images
    (MOVER, Zou and Donner 2008). Two things are taken to be missed independently, and false
    detections to pass half of the time.
    """
    columns, drawn = [], np.zeros((len(rates.curve), 4))
    n = len(pairs.decided)
    if rates.false > MOST_FALSE:
        undefined = Estimate(math.nan, n=n, warning=TOO_FALSE)
        return undefined, undefined, undefined
    for start in range(0, n, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        weights, drawn_weights = [], []
        for classes, sizes in zip(pairs.classes, pairs.sizes, strict=True):
            seen = ~np.isnan(sizes[chunk])
            rate = rates.draws(classes[chunk], sizes[chunk])
            weights.append(seen / rate.mean(axis=0))
            drawn_weights.append(seen / rate)
        labels = pairs.decided[chunk], pairs.passed[chunk]
        columns.append(_columns(weights, np.array(rates.false), *labels))
        drawn += _columns(drawn_weights, rates.false_draws[:, None], *labels).sum(axis=1)
    together = np.concatenate(columns)
    means, drawn_means = together.mean(axis=0), drawn / n
    slopes = _slopes(means)
    estimates = []
    for number in range(3):
        value = float(_statistics(means)[number])
        if math.isnan(value):
            estimates.append(Estimate(math.nan))
            continue
        drawn_values = _statistics(drawn_means)[:, number]
        ends = np.quantile(drawn_values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
        of_images = cluster_mean(value + (together - means) @ slopes[:, number], pairs.clusters)
        low, high = of_images.interval
        if not of_images.error > 0:
            unseen = wilson(0, max(1, of_images.clusters)).high
            low, high = value * (1 - unseen), value * (1 - unseen) + unseen
        low = value - math.hypot(value - low, max(0.0, value - ends[0]))
        high = value + math.hypot(high - value, max(0.0, ends[1] - value))
        estimates.append(
            Estimate(
                min(1.0, max(0.0, value)),
                Interval(min(1.0, max(0.0, low)), min(1.0, max(0.0, high))),
                n=n,
                clusters=of_images.clusters,
                warning=BEYOND if number == 0 and low > 1 else "",
            )
        )
    decided, passed, accuracy = estimates
    return decided, passed, accuracy


TOO_FALSE = "the detector sees too much that is not there to correct for what it misses"
"""Warning of a detector with more false detections than `MOST_FALSE`."""
BEYOND = (
    "more things than there can be: the detector sees them better in the scored images than in the "
    "composed ones, whose rates don't apply"
)
"""Warning of a corrected rate above 1."""


def _columns(
    weights: Sequence[Array], false: Array, decided: NDArray[np.bool_], passed: NDArray[np.bool_]
) -> Array:
    """Of each image, shape (..., n, 4): weight of both things, the same less false detections, and
    weight if decided and if passed. weights: of each thing."""
    a, b = weights
    both = a * b
    true = (a - false) * (b - false) / (1 - false) ** 2
    return np.stack([both, true, both * decided, both * passed], axis=-1)


def _statistics(means: Array) -> Array:
    """Shape (..., 3): shares decided, passed, and passed of the decided."""
    both, true, decided, passed = np.moveaxis(means, -1, 0)
    with np.errstate(all="ignore"):
        really = np.where(both > 0, np.minimum(true / both, 1.0), 1.0)
        all_decided = really * decided
        all_passed = np.maximum(passed - 0.5 * (1 - really) * decided, 0.0)
        return np.stack([all_decided, all_passed, all_passed / all_decided], axis=-1)


def _slopes(means: Array) -> Array:
    """Derivatives of the statistics with respect to the means, shape (4, 3)."""
    steps = 1e-5 * np.eye(len(means))
    return np.asarray((_statistics(means + steps) - _statistics(means - steps)) / 2e-5)
