"""How often nominal 95 % intervals hold the truth, on simulated data whose truth is known.

    python benchmarks/coverage.py [--runs 1000] [--jobs 1] [--only TEXT] [--cells cells.csv]

A family is one kind of interval that the package prints, over a grid of settings. It names the
functions behind it; a test fails for a function that no family and no other benchmark names. One
line a family: cells, lowest, mean and highest coverage, cells below .93 without a warning, cells
above .97, cells where most intervals carry a warning, and the worst cell. A miss that carries a
warning is no miss.

A cell below .93 or above .97 is simulated again, four times as often, from another seed; the second
simulation alone counts, so that a cell isn't out by chance. The exit code is 1 if one is then below
.93 by more than two standard errors (.008 at 1,000 runs). A cell above .97 is listed unless the
family is conservative there, as docs/statistics.md says. Seeded.
"""

from __future__ import annotations

import argparse
import csv
import functools
import itertools
import math
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import kendalltau, norm, spearmanr

from counterprior.eval.results.leaderboard import paired
from counterprior.eval.stats.agreement import clustered_kappa, cohen_kappa
from counterprior.eval.stats.bounds import bounded_interval
from counterprior.eval.stats.clusters import Statistic, cluster_interval, effective_items
from counterprior.eval.stats.correction import by_error_rates, ppi, rogan_gladen
from counterprior.eval.stats.correlation import Kind, correlation
from counterprior.eval.stats.distances import kernel_distance
from counterprior.eval.stats.estimate import Estimate, share_of
from counterprior.eval.stats.intervals import folded
from counterprior.eval.stats.log_odds import conditional_log_odds
from counterprior.eval.stats.means import cluster_deviation, cluster_mean
from counterprior.eval.stats.spread import mean_product, spread
from counterprior.eval.suites.base import Headline, Item
from counterprior.eval.suites.homogenization import order_and_entity_effect
from counterprior.eval.suites.scoring import difference
from counterprior.eval.suites.worlds import gated, premise_ratio

Array = NDArray[np.float64]
Simulate = Callable[..., tuple[Estimate, float]]
"""From a generator and a setting to an estimate and the truth that its interval should hold."""

RESAMPLES = 1_000
NODES = norm.ppf((np.arange(4_000) + 0.5) / 4_000)
LEAST, MOST = 0.93, 0.97
KINDS: tuple[Kind, ...] = ("pearson", "spearman", "kendall")
SHAPES = ("even", "exponential", "heavy")
RATES = (0.02, 0.1, 0.5, 0.9, 0.98)
FEW = 20
"""Clusters below which intervals are conservative."""


@dataclass(frozen=True)
class Family:
    """One kind of interval over a grid of settings."""

    title: str
    simulate: Simulate
    grid: Sequence[tuple[Any, ...]]
    names: str
    """Of the parameters of a setting, separated by spaces."""
    of: str
    """Functions of the package whose intervals these are, separated by spaces."""
    conservative: Callable[..., bool] = lambda *setting: False
    """Whether a coverage above .97 is documented for a setting."""


class Cell(NamedTuple):
    """What the simulations of one setting found."""

    coverage: float
    """Share of defined intervals that hold the truth; NaN if most are undefined."""
    silent: float
    """Share that hold it or carry a warning."""
    warned: float
    width: float
    """Median."""
    undefined: float


# Data


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@functools.cache
def intercept(rate: float, sd: float) -> float:
    """Where cluster effects of this spread give this rate over all clusters."""
    return float(brentq(lambda b: sigmoid(b + sd * NODES).mean() - rate, -60, 60))


def members(
    rng: np.random.Generator, clusters: int, items: int, shape: str = "even"
) -> NDArray[np.intp]:
    """Cluster of each item; heavy sizes have a tail like a power of 1.5, cut at 30 times."""
    if shape == "even":
        counts = np.full(clusters, items)
    elif shape == "exponential":
        counts = rng.exponential(items, clusters)
    else:
        counts = np.minimum(30, (1 + rng.pareto(1.5, clusters)) / 3) * items
    return np.repeat(np.arange(clusters), np.maximum(1, np.round(counts)).astype(int))


def rates(rng: np.random.Generator, clusters: int, rate: float, sd: float) -> Array:
    return np.asarray(sigmoid(intercept(rate, sd) + sd * rng.normal(size=clusters)))


def answers(
    rng: np.random.Generator, member: NDArray[np.intp], rate: float, sd: float, columns: int = 0
) -> Array:
    """0 or 1 of each item, shape (n,) or (n, columns); clusters have rates of their own."""
    chance = rates(rng, int(member.max()) + 1, rate, sd)[member]
    if not columns:
        return (rng.random(len(member)) < chance).astype(float)
    return (rng.random((len(member), columns)) < chance[:, None]).astype(float)


def estimated(
    values: Array,
    clusters: NDArray[Any],
    ends: tuple[float, float],
    statistic: Statistic | None = None,
    number: int = 0,
) -> Estimate:
    return cluster_interval(values, clusters, ends, statistic, resamples=RESAMPLES)[number]


def magnitudes(means: Array) -> Array:
    return np.abs(means[..., :1]) - np.abs(means[..., 1:])


# Means and their functions


def share(
    rng: np.random.Generator, clusters: int, items: int, shape: str, sd: float, rate: float
) -> tuple[Estimate, float]:
    member = members(rng, clusters, items, shape)
    return estimated(answers(rng, member, rate, sd), member, (0, 1)), rate


def informative_sizes(
    rng: np.random.Generator, clusters: int, items: int, rate: float
) -> tuple[Estimate, float]:
    """Clusters with a high rate have twice the items of those with a low one."""
    high = rng.random(clusters) < 0.5
    counts = np.where(high, 2 * items, items)
    chance = np.repeat(np.where(high, min(1.0, 1.4 * rate), 0.6 * rate), counts)
    member = np.repeat(np.arange(clusters), counts)
    truth = (2 * min(1.0, 1.4 * rate) + 0.6 * rate) / 3
    return estimated((rng.random(len(member)) < chance).astype(float), member, (0, 1)), truth


def share_of_valid(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float, abstains: float
) -> tuple[Estimate, float]:
    """A share of the wrong items has no value; the truth is that of the rest."""
    member = members(rng, clusters, items)
    right = answers(rng, member, rate, sd)
    lost = (right == 0) & (rng.random(len(right)) < abstains)
    truth = rate / (rate + (1 - rate) * (1 - abstains))
    return estimated(np.where(lost, np.nan, right), member, (0, 1)), truth


def partly_missing(
    rng: np.random.Generator,
    clusters: int,
    items: int,
    sd: float,
    rate: float,
    missing: float,
    right: float,
) -> tuple[Estimate, float]:
    """A share of the items has no value; of these, `right` would have 1."""
    member = members(rng, clusters, items)
    values = answers(rng, member, rate, sd)
    lost = rng.random(len(values)) < missing
    worst, best = (estimated(np.where(lost, end, values), member, (0, 1)) for end in (0.0, 1.0))
    truth = (1 - missing) * rate + missing * right
    return Estimate(worst.value, bounded_interval(worst, best)), truth


def signed_mean(
    rng: np.random.Generator, clusters: int, items: int, shape: str, sd: float, rate: float
) -> tuple[Estimate, float]:
    """Mean of signs averaged over two probes: -1, 0 or 1."""
    member = members(rng, clusters, items, shape)
    right = answers(rng, member, rate, sd, 2)
    return estimated((2 * right - 1).mean(axis=1), member, (-1, 1)), 2 * rate - 1


def hom(
    rng: np.random.Generator, clusters: int, items: int, shape: str, sd: float, rate: float
) -> tuple[Estimate, float]:
    """|mean sign|, its interval folded at 0."""
    member = members(rng, clusters, items, shape)
    index = estimated(2 * answers(rng, member, rate, sd) - 1, member, (-1, 1))
    folds = Estimate(abs(index.value), folded(index.interval), warning=index.warning)
    return folds, abs(2 * rate - 1)


def alternate(values: Array) -> Array:
    """Every item has a value in one of the two columns."""
    values[np.arange(len(values)), np.arange(len(values)) % 2] = np.nan
    return values


def gap(
    rng: np.random.Generator,
    clusters: int,
    items: int,
    shape: str,
    sd: float,
    rate: float,
    shift: float,
) -> tuple[Estimate, float]:
    """Share under one variant minus share under another, on different items of a cluster."""
    member = members(rng, clusters, items, shape)
    effect = sd * rng.normal(size=clusters)
    other = abs(rate - shift)
    chance = np.stack([sigmoid(intercept(r, sd) + effect)[member] for r in (rate, other)], axis=1)
    values = alternate((rng.random(chance.shape) < chance).astype(float))
    return estimated(values, member, (0, 1), difference), rate - other


def effects(
    rng: np.random.Generator,
    clusters: int,
    items: int,
    shape: str,
    sd: float,
    rate: float,
    number: int,
) -> tuple[Estimate, float]:
    """Order (0) or entity (1) effect: half the sum or difference of the mean signs of AB and BA."""
    member = members(rng, clusters, items, shape)
    preference = sd * rng.normal(size=clusters)
    middle = intercept(rate, sd)
    chance = np.stack([sigmoid(middle + s * preference)[member] for s in (1, -1)], axis=1)
    values = alternate(np.where(rng.random(chance.shape) < chance, 1.0, -1.0))
    truth = 2 * rate - 1 if number == 0 else 0.0
    return estimated(values, member, (-1, 1), order_and_entity_effect, number), truth


def two_systems(
    rng: np.random.Generator,
    clusters: int,
    items: int,
    shape: str,
    sd: float,
    rate: float,
    d: float,
) -> tuple[Array, NDArray[np.intp], float]:
    """Two systems that mostly fail on the same items, and the true difference."""
    member = members(rng, clusters, items, shape)
    first = answers(rng, member, rate, sd) == 1
    flips = rng.random(len(member)) < np.where(first, 0.05 + d, 0.05)
    values = np.stack([first, first ^ flips], axis=1).astype(float)
    return values, member, rate * (0.05 + d) - (1 - rate) * 0.05


def paired_difference(rng: np.random.Generator, *setting: Any) -> tuple[Estimate, float]:
    values, member, truth = two_systems(rng, *setting)
    return estimated(values, member, (0, 1), difference), truth


def sum_of_shares(
    rng: np.random.Generator, clusters: int, items: int, sd: float, right: float
) -> tuple[Estimate, float]:
    """Informedness: share of right images recognized, plus share of swapped ones, less 1."""
    member = members(rng, clusters, items)
    values = alternate(answers(rng, member, right, sd, 2))
    total = estimated(values, member, (0, 1), lambda m: m.sum(axis=-1, keepdims=True) - 1)
    return total, 2 * right - 1


def weighted_share(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float
) -> tuple[Estimate, float]:
    """Weighted mean: hits of a sample drawn with unequal probabilities."""
    member = members(rng, clusters, items)
    hits = answers(rng, member, rate, sd)
    weights = rng.choice([0.1, 0.4, 1.0], len(member))
    return cluster_interval(hits, member, (0, 1), weights=weights)[0], rate


def worlds(rng: np.random.Generator, member: NDArray[np.intp], sd: float, levels: Any) -> Array:
    """Gated scores of three levels, shape (n, 3): three weighted answers a level."""
    effect = rng.normal(size=int(member.max()) + 1)[member]
    weights = np.array([2.0, 14.0, 8.0]) / 24
    scores = [
        (rng.random((len(member), 3)) < sigmoid(intercept(r, sd) + sd * effect)[:, None]) @ weights
        for r in levels
    ]
    return gated(np.stack(scores, axis=1))


@functools.cache
def retained(sd: float, levels: tuple[float, ...], number: int) -> float:
    """PRR (0) or RRR (1) of infinitely many groups."""
    rng, means = np.random.default_rng(7), np.zeros(3)
    for _ in range(4):
        means += worlds(rng, np.arange(250_000), sd, levels).mean(axis=0) / 4
    return float(premise_ratio(means[number], means[number + 1]))


def retention(
    rng: np.random.Generator,
    clusters: int,
    items: int,
    shape: str,
    sd: float,
    levels: tuple[float, ...],
    number: int,
) -> tuple[Estimate, float]:
    """PRR (0) or RRR (1); a cluster is a law."""
    member = members(rng, clusters, items, shape)
    table = worlds(rng, member, sd, levels)

    def ratios(means: Array) -> Array:
        pairs = ((means[..., 0], means[..., 1]), (means[..., 1], means[..., 2]))
        return np.stack([premise_ratio(*pair) for pair in pairs], axis=-1)

    return estimated(table, member, (0, 1), ratios, number), retained(sd, levels, number)


def pairs_of(rng: np.random.Generator, entities: int, pairs: int, items: int) -> NDArray[np.intp]:
    """Both members of each item's pair, shape (pairs * items, 2)."""
    first = rng.integers(entities, size=pairs)
    second = (first + rng.integers(1, entities, size=pairs)) % entities
    return np.repeat(np.stack([first, second], axis=1), items, axis=0)


def of_pairs(
    rng: np.random.Generator, both: NDArray[np.intp], rate: float, sd: float
) -> NDArray[np.bool_]:
    """Answers of items of pairs, of whose members each has an effect of its own."""
    effect = sd * rng.normal(size=int(both.max()) + 1)
    chance = sigmoid(intercept(rate, 2**0.5 * sd) + effect[both].sum(axis=1))
    return np.asarray(rng.random(len(both)) < chance)


def recurring(
    rng: np.random.Generator, entities: int, pairs: int, sd: float, kind: str, middle: float
) -> tuple[Estimate, float]:
    """Pairs of entities that each have an effect: mean sign, |mean|, or the gap of two systems."""
    both = pairs_of(rng, entities, pairs, 2)
    columns = []
    for _ in range(1 + (kind == "gap")):
        effect = sd * rng.normal(size=entities)
        chance = sigmoid(middle + effect[both].sum(axis=1))
        columns.append(np.where(rng.random(len(both)) < chance, 1.0, -1.0))
    values = np.stack(columns, axis=1)
    if kind == "gap":
        return estimated(values, both, (-1, 1), magnitudes), 0.0
    index = estimated(values, both, (-1, 1))
    truth = 2 * float(sigmoid(middle + 2**0.5 * sd * NODES).mean()) - 1
    if kind == "hom":
        return Estimate(abs(index.value), folded(index.interval)), abs(truth)
    return index, truth


def magnitude_gap(
    rng: np.random.Generator,
    clusters: int,
    items: int,
    shape: str,
    sd: float,
    rate: float,
    other: float,
) -> tuple[Estimate, float]:
    """Difference of two homogenizations, |mean sign|."""
    member = members(rng, clusters, items, shape)
    effect = sd * rng.normal(size=clusters)
    chance = np.stack([sigmoid(intercept(r, sd) + effect)[member] for r in (rate, other)], axis=1)
    values = np.where(rng.random(chance.shape) < chance, 1.0, -1.0)
    truth = abs(2 * rate - 1) - abs(2 * other - 1)
    return estimated(values, member, (-1, 1), magnitudes), truth


def log_odds(
    rng: np.random.Generator, pairs: int, seeds: int, preference: float, odds: float
) -> tuple[Estimate, float]:
    """Effect of mention order in log odds, whatever each pair's preference is."""
    pair = np.repeat(np.arange(pairs), 2 * seeds)
    order = np.tile(np.repeat([0, 1], seeds), pairs)
    prefers = preference * rng.normal(size=pairs)[pair] * np.where(order == 0, 1, -1)
    follows = (rng.random(len(pair)) < sigmoid(odds + prefers)).astype(float)
    return conditional_log_odds(follows, order, pair, pair), odds


def spread_of_groups(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float
) -> tuple[Estimate, float]:
    """Standard deviation of the true mean signs of groups."""
    member = members(rng, clusters, items)
    signs = 2 * answers(rng, member, rate, sd) - 1
    total = np.bincount(member, weights=signs)
    squares = np.bincount(member, weights=signs**2)
    counts = np.bincount(member)
    truth = float(np.std(2 * sigmoid(intercept(rate, sd) + sd * NODES) - 1))
    groups = np.arange(clusters)
    return spread(mean_product(total, squares, counts), total / counts, groups), truth


def with_gaps(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float, lost: float
) -> tuple[Estimate, float]:
    """Difference of two systems, the first of which lacks a share of the items it has wrong."""
    values, member, truth = two_systems(rng, clusters, items, "even", sd, rate, 0.05)
    values[(values[:, 0] == 0) & (rng.random(len(values)) < lost), 0] = np.nan
    headline = Headline("accuracy", "higher", "", items=lambda outcomes: {})
    first, second = (
        {n: Item((float(value),), str(cluster)) for n, (value, cluster) in enumerate(rows)}
        for rows in (zip(column, member, strict=True) for column in values.T)
    )
    return paired(first, second, headline), truth


# Corrections


def erring(rng: np.random.Generator, truth: Array, false_yes: float, false_no: float) -> Array:
    """Answers of a judge with these error rates, 0 or 1."""
    errs = rng.random(len(truth)) < np.where(truth == 1, false_no, false_yes)
    return np.where(errs, 1 - truth, truth)


def labels(
    rng: np.random.Generator, labeled: int, rate: float, false_yes: float, false_no: float
) -> tuple[Estimate, float]:
    """Independent items, 1,500 of them unlabeled."""
    truth = (rng.random(labeled + 1_500) < rate).astype(float)
    judged = erring(rng, truth, false_yes, false_no)
    return ppi(judged[labeled:], judged[:labeled], truth[:labeled], (0, 1)), rate


def clustered_labels(
    rng: np.random.Generator, clusters: int, labeled: int, sd: float, rate: float, false_yes: float
) -> tuple[Estimate, float]:
    """1,000 items in clusters, labeled ones drawn at random."""
    member = rng.permutation(np.arange(1_000) % clusters)
    truth = (rng.random(1_000) < rates(rng, clusters, rate, sd)[member]).astype(float)
    judged = erring(rng, truth, false_yes, 0.05)
    parts = judged[labeled:], judged[:labeled], truth[:labeled]
    return ppi(*parts, (0, 1), clusters=member), rate


def abstaining(
    rng: np.random.Generator, labeled: int, rate: float, abstains: float, invalid: float
) -> tuple[Estimate, float]:
    """The judge finds a share of the wrong items invalid, and errs on 10 %.

    Of 800 items in pairs, a share is invalid to people, of which the judge sees four in five.
    """
    truth = (rng.random(800) < rate).astype(float)
    judged = erring(rng, truth, 0.1, 0.0)
    judged[(truth == 0) & (rng.random(800) < abstains)] = np.nan
    lost = rng.random(800) < invalid
    truth[lost] = np.nan
    judged[lost & (rng.random(800) < 0.8)] = np.nan
    member = rng.permutation(np.arange(800) // 2)
    parts = judged[labeled:], judged[:labeled], truth[:labeled]
    return ppi(*parts, (0, 1), clusters=member), rate


def by_card(
    rng: np.random.Generator, card: int, clusters: int, items: int, rate: float, right: float
) -> tuple[Estimate, float]:
    """As many labels of each kind in the card; images of a cluster alike (sd 1.5)."""
    member = members(rng, clusters, items)
    truth = answers(rng, member, rate, 1.5 if items > 1 else 0.0)
    judged = erring(rng, truth, 1 - right, 1 - right)
    recognized = rng.binomial(card, right, size=2)
    n = effective_items(judged, member)
    estimate = rogan_gladen(judged.mean() * n, n, recognized[0], card, recognized[1], card)
    return estimate, rate


def by_gold(
    rng: np.random.Generator,
    gold: int,
    clusters: int,
    items: int,
    rate: float,
    right: float,
    abstains: float,
) -> tuple[Estimate, float]:
    """Right, wrong and invalid items; the judge abstains on a share of the wrong ones.

    gold: images of each of the three kinds, in clusters of two. One item in ten is invalid.
    """
    rows = np.array(
        [
            [right, 1 - right, 0.0],
            [(1 - abstains) * (1 - right), (1 - abstains) * right, abstains],
            [(1 - right) / 2, (1 - right) / 2, right],
        ]
    )
    steps = rows.cumsum(axis=1)
    member = members(rng, clusters, items)
    truth = 1 - answers(rng, member, rate, 1.5 if items > 1 else 0.0).astype(int)
    truth[rng.random(len(truth)) < 0.1] = 2

    def judged(kinds: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.minimum(2, (rng.random(len(kinds))[:, None] > steps[kinds]).sum(axis=1))

    confusion = [(judged(np.full(gold, kind)), np.arange(gold) // 2) for kind in range(3)]
    return by_error_rates(judged(truth), member, confusion, (1.0, 0.0, math.nan)), rate


def by_real(
    rng: np.random.Generator, entities: int, pairs: int, sd: float, rate: float, right: float
) -> tuple[Estimate, float]:
    """Four images of each pair, here and among the labeled, of which half are true; entities have
    effects on what is true and on how often the judge errs."""

    def judged(truth_rate: float) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.intp]]:
        both = pairs_of(rng, entities, pairs, 4)
        truth, seen, misled = (of_pairs(rng, both, r, sd) for r in (truth_rate, right, 1 - right))
        return both, truth, np.where(truth, seen, misled).astype(int)

    here, _, said = judged(rate)
    elsewhere, truth, labels = judged(0.5)
    confusion = [(labels[truth == kind], elsewhere[truth == kind]) for kind in (False, True)]
    return by_error_rates(said, here, confusion, (0.0, 1.0)), rate


# Agreement


def kappa_of_pairs(
    rng: np.random.Generator, entities: int, pairs: int, sd: float, rate: float, wrong: float
) -> tuple[Estimate, float]:
    """Two raters of four images of each pair, whose entities have effects on labels and errors."""
    both = pairs_of(rng, entities, pairs, 4)
    first, errs = of_pairs(rng, both, rate, sd), of_pairs(rng, both, wrong, sd)
    second = rate * (1 - wrong) + (1 - rate) * wrong
    expected = rate * second + (1 - rate) * (1 - second)
    names = np.array(["no", "yes"])
    labels = (list(names[column.astype(int)]) for column in (first, first ^ errs))
    return clustered_kappa(*labels, both, RESAMPLES), (1 - wrong - expected) / (1 - expected)


def kappa(
    rng: np.random.Generator, items: int, answers: int, first: float, wrong: float
) -> tuple[Estimate, float]:
    """Two raters, the second of whom errs evenly."""
    base = np.full(answers, (1 - first) / (answers - 1))
    base[0] = first
    chance = np.full((answers, answers), wrong / (answers - 1))
    np.fill_diagonal(chance, 1 - wrong)
    chance = base[:, None] * chance
    expected = chance.sum(axis=1) @ chance.sum(axis=0)
    truth = float((np.trace(chance) - expected) / (1 - expected))
    drawn = rng.multinomial(items, chance.ravel()).reshape(answers, answers)
    return cohen_kappa(drawn), truth


def two_ratings(
    rng: np.random.Generator, member: NDArray[np.intp], icc: float, rho: float, label: float
) -> tuple[Array, Array]:
    """Two normal ratings of each item; the second is 1 above a quantile, if `label` is one."""
    clusters = int(member.max()) + 1

    def normal() -> Array:
        common, alone = rng.normal(size=clusters)[member], rng.normal(size=len(member))
        return np.asarray(np.sqrt(icc) * common + np.sqrt(1 - icc) * alone)

    x, e = normal(), normal()
    y = rho * x + np.sqrt(1 - rho**2) * e
    return x, (y > norm.ppf(label)).astype(float) if label else y


@functools.cache
def true_coefficient(kind: Kind, rho: float, label: float) -> float:
    if not label:
        angle = {"pearson": math.sin(math.asin(rho)), "kendall": 2 / math.pi * math.asin(rho)}
        return angle.get(kind, 6 / math.pi * math.asin(rho / 2))
    rng = np.random.default_rng(7)
    many = 400_000
    x, y = two_ratings(rng, np.arange(many), 0.0, rho, label)
    if kind == "pearson":
        return float(np.corrcoef(x, y)[0, 1])
    return float((spearmanr if kind == "spearman" else kendalltau)(x, y).statistic)


def coefficient(
    rng: np.random.Generator,
    clusters: int,
    items: int,
    icc: float,
    kind: Kind,
    rho: float,
    label: float,
) -> tuple[Estimate, float]:
    """Two ratings of images, or a rating and a label that a share of images doesn't get."""
    member = members(rng, clusters, items)
    x, y = two_ratings(rng, member, icc, rho, label)
    return correlation(x, y, kind, member), true_coefficient(kind, rho, label)


def independent_share(rng: np.random.Generator, n: int, rate: float) -> tuple[Estimate, float]:
    count = int(rng.binomial(n, rate))
    return share_of(count, n), rate


# Means without known ends


def drawn_values(rng: np.random.Generator, shape: str, size: int) -> Array:
    """Values with mean 0 and deviation 1 or so."""
    if shape == "normal":
        return rng.normal(size=size)
    if shape == "exponential":
        return rng.exponential(size=size) - 1
    return rng.lognormal(0, 1, size) - math.exp(0.5)


def open_mean(
    rng: np.random.Generator, clusters: int, items: int, shape: str
) -> tuple[Estimate, float]:
    """Cluster effects of this distribution, and noise of each item."""
    member = members(rng, clusters, items)
    values = drawn_values(rng, shape, clusters)[member] + rng.normal(size=len(member))
    return cluster_mean(values, member), 0.0


def deviation(
    rng: np.random.Generator, clusters: int, items: int, shape: str
) -> tuple[Estimate, float]:
    member = members(rng, clusters, items)
    values = drawn_values(rng, shape, clusters)[member] + rng.normal(size=len(member))
    variance = {"normal": 1.0, "exponential": 1.0, "lognormal": (math.e - 1) * math.e}[shape]
    return cluster_deviation(values, member), math.sqrt(1 + variance)


def kernel(
    rng: np.random.Generator, clusters: int, items: int, apart: float
) -> tuple[Estimate, float]:
    """KID of normal features of length 8, of two sets of images of the same prompts."""
    d = 8
    member = members(rng, clusters, items)
    common = rng.normal(size=(clusters, d))[member]
    x, y = (0.7**0.5 * rng.normal(size=(len(member), d)) + 0.3**0.5 * common for _ in range(2))
    y[:, 0] += apart

    def expected(a: float, b: float) -> float:
        """Mean of (x y / d + 1)^3 for independent features whose first entry has mean a, or b."""
        ab = a * b
        square = d + a * a + b * b + ab * ab
        cube = ab**3 + 3 * ab * a * a + 3 * ab * (b * b + d + 2)
        return 1 + 3 * ab / d + 3 * square / d**2 + cube / d**3

    truth = expected(0, 0) + expected(apart, apart) - 2 * expected(0, apart)
    return kernel_distance(x, y, member), truth


# The grid


def grid(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """All settings; an axis of tuples is several parameters that go together."""
    return [
        tuple(v for value in setting for v in (value if type(value) is tuple else (value,)))
        for setting in itertools.product(*axes)
    ]


COUNTS = (2, 3, 5, 8, 12, 19, 20, 40, 80, 200, 400)
SOME = (3, 8, 20, 40, 100, 300)
LAYOUTS = [
    *((1, "even", 0.0), (4, "even", 0.75), (4, "even", 1.5), (20, "even", 1.5)),
    *((4, "exponential", 0.75), (20, "exponential", 1.5)),
    *((8, "heavy", 0.0), (4, "heavy", 0.75), (20, "heavy", 1.5)),
]
"""Items a cluster, their shape, and the spread of clusters in logits."""
FEWER = [LAYOUTS[0], LAYOUTS[2], LAYOUTS[4], LAYOUTS[8]]
CF_LEVELS = ((0.9, 0.7, 0.4), (0.9, 0.3, 0.02), (0.6, 0.3, 0.1), (0.6, 0.05, 0.02))
ERRORS = ((0.0, 0.0), (0.05, 0.05), (0.1, 0.3), (0.3, 0.0), (0.0, 0.3), (0.3, 0.3))


def exceptions(clusters: int, rate: float) -> bool:
    """Few clusters, or fewer than ten expected exceptions."""
    return clusters < FEW or clusters * min(rate, 1 - rate) < 10


def rare(clusters: int, items: int, shape: str, sd: float, rate: float, *setting: Any) -> bool:
    return exceptions(clusters, rate)


def function(clusters: int, items: int, shape: str, sd: float, rate: float, *setting: Any) -> bool:
    """Fewer than 40 clusters behind a function of shares, or fewer than ten exceptions."""
    return clusters < 2 * FEW or exceptions(clusters, rate)


def few_of_function(clusters: int, *setting: Any) -> bool:
    return clusters < 2 * FEW


def few_labels(labeled: int, rate: float, *setting: Any) -> bool:
    """Fewer than 50 labels, or than ten of the rarer value."""
    return labeled < 50 or labeled * min(rate, 1 - rate) < 10


def always(*setting: Any) -> bool:
    return True


def levels(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """As `grid`, with the levels of worlds, a tuple, as one parameter."""
    return [(*s[:4], s[4:7], *s[7:]) if len(s) > 7 else s for s in grid(*axes)]


def families() -> list[Family]:
    layout = "clusters items sizes sd rate"
    mean = "cluster_interval student_wilson"
    return [
        Family("share", share, grid(COUNTS, LAYOUTS, RATES), layout, mean, rare),
        Family(
            "share, informative sizes",
            informative_sizes,
            grid(SOME, (1, 10), (0.1, 0.5, 0.7)),
            "clusters items rate",
            mean,
            lambda clusters, items, rate: exceptions(clusters, rate),
        ),
        Family(
            "share of valid, abstention where wrong",
            share_of_valid,
            grid(SOME, ((1, 0.0), (8, 1.0)), (0.1, 0.5, 0.9), (0.3, 0.8)),
            "clusters items sd rate abstains",
            mean,
            lambda clusters, items, sd, rate, abstains: exceptions(clusters, rate),
        ),
        Family(
            "share of which a part is missing, at its worst, in the middle and at its best",
            partly_missing,
            grid(SOME, ((1, 0.0), (8, 1.0)), (0.1, 0.5, 0.9), (0.001, 0.02, 0.3), (0.0, 0.5, 1.0)),
            "clusters items sd rate missing right",
            "bounded_interval",
            always,
        ),
        Family(
            "signed mean over probes",
            signed_mean,
            grid(SOME, FEWER, (0.5, 0.9, 0.98)),
            layout,
            mean,
            rare,
        ),
        Family(
            "Hom",
            hom,
            grid(SOME, FEWER, (0.5, 0.6, 0.9)),
            layout,
            f"{mean} folded",
            lambda clusters, *setting: clusters <= 2 * FEW,
        ),
        Family(
            "gap of two variants",
            gap,
            grid(SOME, FEWER, ((0.5, 0.0), (0.5, 0.2), (0.9, 0.0), (0.9, 0.2), (0.02, 0.06))),
            f"{layout} shift",
            mean,
            function,
        ),
        Family(
            "order and entity effect",
            effects,
            grid(SOME, FEWER, (0.5, 0.9, 0.98), (0, 1)),
            f"{layout} number",
            mean,
            function,
        ),
        Family(
            "paired difference",
            paired_difference,
            grid(SOME, FEWER, (0.1, 0.5, 0.9), (0.0, 0.1)),
            f"{layout} shift",
            mean,
            always,
        ),
        Family(
            "informedness",
            sum_of_shares,
            grid(SOME, ((2, 0.0), (6, 1.0)), (0.5, 0.9, 0.98)),
            "clusters items sd right",
            mean,
            lambda clusters, items, sd, right: clusters < 2 * FEW or exceptions(clusters, right),
        ),
        Family(
            "weighted share",
            weighted_share,
            grid(SOME, ((1, 0.0), (4, 1.0)), RATES),
            "clusters items sd rate",
            mean,
            lambda clusters, items, sd, rate: exceptions(clusters, rate),
        ),
        Family(
            "PRR",
            retention,
            levels((5, 10, 25, 60, 100, 300), FEWER, CF_LEVELS, (0,)),
            "clusters items sizes sd levels number",
            mean,
            always,
        ),
        Family(
            "RRR",
            retention,
            levels((5, 10, 25, 60, 100, 300), FEWER, CF_LEVELS, (1,)),
            "clusters items sizes sd levels number",
            mean,
            always,
        ),
        Family(
            "|a| - |b|",
            magnitude_gap,
            grid(SOME, FEWER, ((0.5, 0.5), (0.8, 0.5), (0.9, 0.8), (0.02, 0.06), (0.02, 0.94))),
            f"{layout} other",
            mean,
            function,
        ),
        Family(
            "order effect in log odds",
            log_odds,
            grid((5, 20, 60, 200), (1, 4), (0.0, 1.0, 2.0), (0.0, 1.0, 2.0)),
            "pairs seeds preference odds",
            "conditional_log_odds",
            few_of_function,
        ),
        Family(
            "spread of groups",
            spread_of_groups,
            grid((5, 20, 60, 200), (2, 4, 8), (0.0, 1.0, 2.0), (0.5, 0.9)),
            "clusters items sd rate",
            "spread",
            lambda clusters, items, sd, rate: clusters < 2 * FEW or sd == 0,
        ),
        Family(
            "recurring entities",
            recurring,
            grid((10, 20, 60, 138), (60, 400), (0.0, 0.5, 1.0), ("mean", "hom", "gap"), (0.4, 3.0)),
            "entities pairs sd kind middle",
            mean,
            always,
        ),
        Family(
            "paired difference, gaps where wrong",
            with_gaps,
            grid(SOME, ((1, 0.0), (4, 1.0)), (0.1, 0.5, 0.9), (0.1, 0.5)),
            "clusters items sd rate lost",
            mean,
            always,
        ),
        Family(
            "PPI++",
            labels,
            grid((10, 20, 50, 100, 400), RATES, ERRORS),
            "labels rate false_yes false_no",
            "ppi",
            lambda labeled, rate, false_yes, false_no: (
                few_labels(labeled, rate) or (labeled <= 100 and false_yes + false_no <= 0.1)
            ),
        ),
        Family(
            "PPI++, clusters",
            clustered_labels,
            grid((8, 15, 30, 100), (20, 50, 100, 400), (0.0, 1.5), (0.1, 0.5, 0.9), (0.05, 0.3)),
            "clusters labels sd rate false_yes",
            "ppi",
            lambda clusters, labeled, sd, rate, false_yes: (
                clusters < FEW or few_labels(labeled, rate)
            ),
        ),
        Family(
            "PPI++, a judge that abstains where it is hard",
            abstaining,
            grid((20, 50, 100, 400), (0.02, 0.2, 0.6, 0.9, 0.98), (0.0, 0.3), (0.0, 0.2)),
            "labels rate abstains invalid",
            "ppi",
            few_labels,
        ),
        Family(
            "Rogan-Gladen",
            by_card,
            grid(
                (20, 60, 500),
                ((50, 1), (400, 1), (15, 8), (100, 8)),
                (0.05, 0.5, 0.95),
                (0.93, 0.99),
            ),
            "card clusters items rate right",
            "rogan_gladen effective_items",
            lambda card, clusters, items, rate, right: (
                exceptions(clusters, rate) or card * (1 - right) < 10
            ),
        ),
        Family(
            "corrected by gold images",
            by_gold,
            grid(
                (40, 200),
                ((50, 1), (400, 1), (15, 8), (100, 8)),
                (0.1, 0.5, 0.9),
                (0.9, 0.98),
                (0.0, 0.3),
            ),
            "gold clusters items rate right abstains",
            "by_error_rates",
            lambda gold, clusters, items, rate, right, abstains: (
                exceptions(clusters, rate) or gold * (1 - right) < 10
            ),
        ),
        Family(
            "corrected by labels of pairs",
            by_real,
            grid((10, 20, 60), (60, 200), (0.0, 1.0), (0.1, 0.5), (0.85, 0.95)),
            "entities pairs sd rate right",
            "by_error_rates",
            always,
        ),
        Family(
            "kappa of pairs",
            kappa_of_pairs,
            grid((10, 20, 60), (60, 200), (0.0, 1.0), (0.1, 0.5), (0.05, 0.15)),
            "entities pairs sd rate wrong",
            "clustered_kappa",
            always,
        ),
        Family(
            "kappa",
            kappa,
            grid((15, 30, 60, 200), (2, 3), (0.5, 0.9, 0.98), (0.02, 0.1, 0.3)),
            "items labels first wrong",
            "cohen_kappa",
            lambda items, answers, first, wrong: items < 60 or items * min(wrong, 1 - first) < 10,
        ),
        Family(
            "correlation",
            coefficient,
            grid(
                ((10, 1, 0.0), (30, 1, 0.0), (25, 4, 0.5), (25, 4, 1.0), (100, 4, 0.5)),
                KINDS,
                (0.0, 0.6, 0.95),
                (0.0, 0.5, 0.9),
            ),
            "clusters items icc kind rho label",
            "correlation",
            lambda clusters, items, icc, kind, rho, label: kind != "pearson" and clusters <= 10,
        ),
        Family(
            "share of independent items",
            independent_share,
            grid((2, 5, 20, 100, 400), RATES),
            "n rate",
            "wilson share_of",
            exceptions,
        ),
        Family(
            "mean without ends",
            open_mean,
            grid((3, 5, 10, 20, 50, 200), (1, 4), ("normal", "exponential", "lognormal")),
            "clusters items values",
            "cluster_mean",
        ),
        Family(
            "deviation",
            deviation,
            grid((3, 5, 10, 20, 50, 200), (1, 4), ("normal", "exponential", "lognormal")),
            "clusters items values",
            "cluster_deviation",
        ),
        Family(
            "KID",
            kernel,
            grid((5, 10, 30, 80), (1, 4), (0.0, 1.0, 3.0)),
            "clusters items apart",
            "kernel_distance",
        ),
    ]


# Measuring


def measured(family: Family, setting: tuple[Any, ...], runs: int, again: bool = False) -> Cell:
    """Simulates one cell."""
    seed = [17, int(again), zlib.crc32(repr((family.title, setting)).encode())]
    rng = np.random.default_rng(seed)
    held, warned, widths, n = 0, 0, [], 0
    excused = 0
    for _ in range(runs):
        estimate, truth = family.simulate(rng, *setting)
        low, high = estimate.interval
        if math.isnan(low):
            continue
        n += 1
        inside = low - 1e-12 <= truth <= high + 1e-12
        held += inside
        warned += bool(estimate.warning)
        excused += inside or bool(estimate.warning)
        widths.append(high - low)
    if n < runs / 2:
        return Cell(math.nan, math.nan, math.nan, math.nan, 1 - n / runs)
    return Cell(held / n, excused / n, warned / n, float(np.median(widths)), 1 - n / runs)


def cell_of(place: tuple[int, int, int]) -> tuple[Cell, bool]:
    """One cell of the grid, simulated again if it is out of bounds; and whether it fails."""
    number, index, runs = place
    family = families()[number]
    setting = family.grid[index]
    cell = measured(family, setting, runs)
    too_wide = cell.coverage > MOST and not family.conservative(*setting)
    if not (cell.silent < LEAST or too_wide):
        return cell, False
    cell = measured(family, setting, 4 * runs, again=True)
    error = math.sqrt(LEAST * (1 - LEAST) / (4 * runs))
    return cell, cell.silent < LEAST - 2 * error


def text_of(family: Family, setting: tuple[Any, ...]) -> str:
    pairs = zip(family.names.split(), setting, strict=True)
    return ", ".join(f"{name} {value}" for name, value in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1_000, help="simulations of a cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="families whose title has this text")
    parser.add_argument("--cells", type=Path, help="CSV file with a row for each cell")
    options = parser.parse_args()
    failed = below_all = above_all = total = 0
    rows = []
    print("cells, lowest, mean and highest coverage, below .93, above .97, warned, undefined")
    with ProcessPoolExecutor(options.jobs) as pool:
        for number, family in enumerate(families()):
            if options.only not in family.title:
                continue
            places = [(number, index, options.runs) for index in range(len(family.grid))]
            results = list(pool.map(cell_of, places))
            cells = [(s, cell) for s, (cell, _) in zip(family.grid, results, strict=True)]
            defined = [(s, cell) for s, cell in cells if not math.isnan(cell.coverage)]
            failures = sum(fails for _, fails in results)
            below = sum(cell.silent < LEAST for _, cell in defined)
            above = sum(cell.coverage > MOST and not family.conservative(*s) for s, cell in defined)
            warned = sum(cell.warned > 0.5 for _, cell in defined)
            silent = [cell.coverage for _, cell in defined]
            worst, cell = min(defined, key=lambda pair: pair[1].silent)
            print(
                f"{family.title}: {len(cells)} cells, {min(silent):.3f} {np.mean(silent):.3f} "
                f"{max(silent):.3f}, {below} below ({failures} fail), {above} above, "
                f"{warned} warned, {len(cells) - len(defined)} undefined; worst "
                f"{cell.silent:.3f}: {text_of(family, worst)}",
                flush=True,
            )
            failed, below_all = failed + failures, below_all + below
            above_all, total = above_all + above, total + len(cells)
            rows += [
                [family.title, text_of(family, s), *cell, family.conservative(*s)]
                for s, cell in cells
            ]
    print(f"{total} cells, {below_all} below .93, {failed} fail, {above_all} above .97")
    if options.cells:
        with options.cells.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["family", "setting", *Cell._fields, "conservative"])
            writer.writerows(rows)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
