"""Latent classes: the truth behind the answers of several raters, none of whom is always right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bootstrap import Array
from .clusters import cluster_interval
from .estimate import Estimate
from .intervals import LEVEL, NOTHING, Interval, normal_quantile, student_quantile

CHAINS, BURNED, STEPS = 32, 40, 60
"""Parallel chains of the sampler, steps before its draws count, and steps that count."""
STARTS = 4
"""Random starts of the search besides one for each rater and their majority."""
ITERATIONS = 400
PREVALENCE_PRIOR = 0.5
"""Items added to each class (Jeffreys)."""
MISSING = -1
"""An item that a rater has no answer on."""


def rater_prior(classes: int, right: float, items: float) -> Array:
    """Shape (k, k): items added to each rater's confusion, for each true class (row).

    right: share of them on the diagonal; the others are shared alike.
    """
    off = (1 - right) / (classes - 1)
    return items * (off + (right - off) * np.eye(classes))


@dataclass(frozen=True)
class LatentClasses:
    """Shares of true classes, and error rates of the raters."""

    prevalence: Array
    """Shape (g, k): share of each class in each group of items."""
    rates: Array
    """Shape (r, k, k): share of each answer (column) of each rater, by true class (row)."""
    prevalence_draws: Array
    """Shape (draws, g, k): from the posterior."""
    rate_draws: Array
    """Shape (draws, r, k, k)."""
    members: Array
    """Shape (n, k): probability of each class for each item."""

    def mean(self, group: int, values: Sequence[float], n: int, clusters: int) -> Estimate:
        """The mean of values of the classes of a group, over valid ones; NaN for one that isn't.

        n and clusters: those of the group.
        """
        worth = np.asarray(values, dtype=float)
        value = _mean(self.prevalence[group], worth)
        draws = _mean(self.prevalence_draws[:, group], worth)
        return Estimate(float(value), _ends(draws, float(value)), n=n, clusters=clusters)

    def recognized(self, rater: int, label: int) -> Estimate:
        """Share of a true class that a rater recognizes: sensitivity for it."""
        value = float(self.rates[rater, label, label])
        return Estimate(value, _ends(self.rate_draws[:, rater, label, label], value))


def _mean(shares: Array, values: Array) -> Array:
    valid = ~np.isnan(values)
    total = shares[..., valid].sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0, shares[..., valid] @ values[valid] / total, np.nan))


def _ends(draws: Array, value: float) -> Interval:
    if math.isnan(value) or np.isnan(draws).mean() > 0.05:
        return NOTHING
    low, high = np.nanquantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return Interval(min(low, value), max(high, value))


def latent_classes(
    answers: ArrayLike,
    groups: ArrayLike,
    clusters: ArrayLike,
    priors: Array,
    anchors: Array | None = None,
    seed: int = 0,
) -> LatentClasses:
    """Estimates true classes and the errors of raters together (Dawid and Skene 1979).

    answers: shape (n, r), class by each rater from 0 to k - 1, or MISSING; groups: shape (n,), from
    0, each with shares of classes of its own; clusters: shape (n,); priors: shape (r, k, k), items
    added to each rater's confusion, see `rater_prior`; anchors: shape (r, k, k), answers of the
    raters on further items whose class is known.

    Raters err independently of each other, given the class, and alike in all groups. Answers are
    missing at random. The values are those of the highest posterior density over several starts;
    the draws are of a Gibbs sampler that begins there, with as many items as independent ones would
    be as uncertain as these, which come in clusters. They carry the error of everything: few items,
    few labels of people, errors of raters, and the truth of each item.
    """
    table, place = np.asarray(answers, dtype=np.intp), np.asarray(groups, dtype=np.intp)
    added = priors if anchors is None else priors + anchors
    patterns, member, counts = np.unique(
        np.column_stack([place, table]), axis=0, return_inverse=True, return_counts=True
    )
    member = member.reshape(-1)
    model = _Model(patterns[:, 1:], patterns[:, 0], added, int(place.max(initial=0)) + 1)
    weights = counts.astype(float)[None]
    rng = np.random.default_rng(seed)
    prevalence, rates = model.best(weights, rng)
    members = model.posterior(prevalence[None], rates[None])[0][0]
    scales = _scales(members[member], place, np.asarray(clusters))
    draws = model.sample(counts * scales[patterns[:, 0]], prevalence, rates, rng)
    return LatentClasses(prevalence, rates, *draws, members[member])


def _scales(members: Array, groups: NDArray[np.intp], clusters: NDArray[np.generic]) -> Array:
    """Shape (g,): independent items for each item of a group, as uncertain.

    members: shape (n, k). From how far probabilities of classes go together in clusters.
    """
    scales = []
    for group in range(int(groups.max(initial=0)) + 1):
        chosen = members[groups == group]
        names, place = np.unique(clusters[groups == group], return_inverse=True)
        number = len(names)
        if number < 2:
            scales.append(1.0 / max(len(chosen), 1))
            continue
        deviations = chosen - chosen.mean(axis=0)
        sums = np.zeros((number, chosen.shape[1]))
        np.add.at(sums, place, deviations)
        alone = float((deviations**2).sum())
        together = float((sums**2).sum()) * number / (number - 1)
        effect = together / alone if alone > 0 else len(chosen) / number
        few = normal_quantile(LEVEL) / student_quantile(number - 1)
        scales.append(few**2 / max(1.0, effect))
    return np.array(scales)


class _Model:
    """Likelihood of patterns of answers. Parameters have a first axis of b models at once."""

    def __init__(
        self, answers: NDArray[np.intp], groups: NDArray[np.intp], added: Array, number: int
    ) -> None:
        """answers: shape (p, r); groups: shape (p,); added: shape (r, k, k)."""
        self.groups, self.added, self.number = groups, added, number
        self.k = added.shape[1]
        # Shape (r, k, p): 1 where a rater gives an answer in a pattern.
        self.given = np.stack(
            [(answers == label).T.astype(float) for label in range(self.k)], axis=1
        )
        self.of_group = np.stack([(groups == g).astype(float) for g in range(number)])

    def posterior(self, prevalence: Array, rates: Array) -> tuple[Array, Array]:
        """Shape (b, p, k): probability of each class; shape (b, p): log likelihood."""
        logs = np.log(np.maximum(prevalence, 1e-300))[:, self.groups]
        logs = logs + np.einsum("brck,rkp->bpc", np.log(np.maximum(rates, 1e-300)), self.given)
        most = logs.max(axis=-1, keepdims=True)
        likelihood = np.exp(logs - most)
        total = likelihood.sum(axis=-1, keepdims=True)
        return likelihood / total, (most + np.log(total))[..., 0]

    def _counted(self, members: Array) -> tuple[Array, Array]:
        """Items by group and class, (b, g, k), and by rater, class and answer, (b, r, k, k).

        members: shape (b, p, k), items of each class in each pattern.
        """
        by_group = np.einsum("gp,bpc->bgc", self.of_group, members)
        by_rater = np.einsum("bpc,rkp->brck", members, self.given)
        return by_group + PREVALENCE_PRIOR, by_rater + self.added

    def best(self, weights: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The parameters with the highest posterior density, of several starts of EM."""
        votes = self.given.sum(axis=0).T  # shape (p, k)
        starts = [
            votes + 0.3,
            *(2 * self.given[r].T + 0.3 * votes + 0.1 for r in range(len(self.given))),
        ]
        starts += [votes + rng.gamma(1.0, size=votes.shape) for _ in range(STARTS)]
        members = np.stack([start / start.sum(axis=1, keepdims=True) for start in starts])
        density = np.full(len(starts), -np.inf)
        for _ in range(ITERATIONS):
            by_group, by_rater = self._counted(members * weights[..., None])
            prevalence = by_group / by_group.sum(axis=-1, keepdims=True)
            rates = by_rater / by_rater.sum(axis=-1, keepdims=True)
            members, likelihood = self.posterior(prevalence, rates)
            now = (likelihood * weights).sum(axis=-1)
            now = now + (PREVALENCE_PRIOR * np.log(prevalence)).sum(axis=(1, 2))
            now = now + (self.added * np.log(rates)).sum(axis=(1, 2, 3))
            if np.max(now - density) < 1e-6:
                break
            density = now
        place = int(np.argmax(now))
        return prevalence[place], rates[place]

    def sample(
        self, items: Array, prevalence: Array, rates: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Draws of both parameters, shapes (draws, g, k) and (draws, r, k, k)."""
        shares = np.repeat(prevalence[None], CHAINS, axis=0)
        errors = np.repeat(rates[None], CHAINS, axis=0)
        kept_shares, kept_errors = [], []
        for step in range(BURNED + STEPS):
            members = self.posterior(shares, errors)[0]
            items_drawn = np.floor(items + rng.random((CHAINS, len(items)))).astype(np.int64)
            drawn = rng.multinomial(items_drawn, members).astype(float)
            by_group, by_rater = self._counted(drawn)
            shares = _dirichlet(by_group, rng)
            errors = _dirichlet(by_rater, rng)
            if step >= BURNED:
                kept_shares.append(shares)
                kept_errors.append(errors)
        return np.concatenate(kept_shares), np.concatenate(kept_errors)


def _dirichlet(counts: Array, rng: np.random.Generator) -> Array:
    draws = rng.standard_gamma(counts) + 1e-300
    return np.asarray(draws / draws.sum(axis=-1, keepdims=True))


def residual_agreement(
    classes: LatentClasses, answers: ArrayLike, clusters: ArrayLike, first: int, second: int
) -> Estimate:
    """Difference of how often two raters answer alike, and how often their errors explain.

    0 where they err independently, given the class. In [-1, 1]; NaN without shared items.
    """
    table = np.asarray(answers, dtype=np.intp)
    shared = (table[:, [first, second]] != MISSING).all(axis=1)
    if not shared.any():
        return Estimate(math.nan)
    same = (table[shared, first] == table[shared, second]).astype(float)
    alike = (classes.rates[first] * classes.rates[second]).sum(axis=1)  # by class
    # Expected from the shares of classes, not from what the two answered themselves.
    expected = classes.members[shared].mean(axis=0) @ alike
    (estimate,) = cluster_interval(
        same - expected, np.asarray(clusters)[shared], (-1, 1), tested=True
    )
    return estimate
