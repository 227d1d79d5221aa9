"""How often nominal 95 % intervals hold the truth, on simulated data whose truth is known.

    python benchmarks/coverage.py [--quick] [--runs 1000]

One line for every number of clusters, labels or items: the lowest, mean and highest coverage over
the settings, and the worst setting, in the order of the parameters of its simulation. Seeded. The
standard error of one setting is 0.007 at 1,000 simulations.
"""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from counterprior.eval.stats.agreement import cohen_kappa
from counterprior.eval.stats.clusters import Statistic, cluster_interval
from counterprior.eval.stats.correction import ppi, rogan_gladen
from counterprior.eval.stats.correlation import Kind, correlation
from counterprior.eval.stats.intervals import Interval
from counterprior.eval.suites.homogenization import order_and_entity_effect
from counterprior.eval.suites.worlds import gated, premise_ratio

Array = NDArray[np.float64]
Simulate = Callable[..., tuple[Interval, float]]
"""From a generator and a setting to an interval and the truth that it should hold."""

RESAMPLES = 1_000
NODES = norm.ppf((np.arange(4_000) + 0.5) / 4_000)
FEW = (2, 3, 5, 8, 12, 15, 19)
CLUSTERS = (*FEW, 20, 30, 60, 200)
LABELS = (10, 20, 30, 50, 100, 400)
KINDS: tuple[Kind, ...] = ("pearson", "spearman", "kendall")


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@functools.cache
def intercept(rate: float, sd: float) -> float:
    """Where cluster effects of this spread give this rate over all clusters."""
    return float(brentq(lambda b: sigmoid(b + sd * NODES).mean() - rate, -30, 30))


def sizes(rng: np.random.Generator, clusters: int, items: int, even: bool) -> Array:
    """Which cluster each item is in; uneven sizes are exponential."""
    drawn = rng.exponential(items, clusters) if not even else np.full(clusters, items)
    return np.repeat(np.arange(clusters), np.maximum(1, np.round(drawn)).astype(int))


def rates(rng: np.random.Generator, clusters: int, rate: float, sd: float) -> Array:
    return np.asarray(sigmoid(intercept(rate, sd) + sd * rng.normal(size=clusters)))


def covered(
    values: Array,
    clusters: Array,
    ends: tuple[float, float],
    statistic: Statistic | None = None,
    number: int = 0,
) -> Interval:
    found = cluster_interval(values, clusters, ends, statistic, resamples=RESAMPLES)
    return found[number].interval


def one_mean(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float, even: bool
) -> tuple[Interval, float]:
    """Share of right items."""
    member = sizes(rng, clusters, items, even)
    right = rng.random(len(member)) < rates(rng, clusters, rate, sd)[member]
    return covered(right.astype(float), member, (0, 1)), rate


def signed_mean(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float
) -> tuple[Interval, float]:
    """Mean of signs averaged over two probes: -1, 0 or 1."""
    member = sizes(rng, clusters, items, even=True)
    right = rng.random((len(member), 2)) < rates(rng, clusters, rate, sd)[member][:, None]
    return covered((2.0 * right - 1).mean(axis=1), member, (-1, 1)), 2 * rate - 1


def gap(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float, shift: float
) -> tuple[Interval, float]:
    """Share under one variant minus share under another, on different items of a cluster."""
    member = sizes(rng, clusters, items, even=True)
    effect = sd * rng.normal(size=clusters)
    other = rate - shift
    chance = np.stack([sigmoid(intercept(r, sd) + effect)[member] for r in (rate, other)], axis=1)
    values = (rng.random(chance.shape) < chance).astype(float)
    values[np.arange(len(member)), np.arange(len(member)) % 2] = np.nan
    return covered(values, member, (0, 1), lambda m: m[..., :1] - m[..., 1:]), shift


def order_effect(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float, number: int
) -> tuple[Interval, float]:
    """Order (0) or entity (1) effect: half the sum or difference of the mean signs of AB and BA."""
    member = sizes(rng, clusters, items, even=True)
    taste = sd * rng.normal(size=clusters)
    middle = intercept(rate, sd)
    chance = np.stack([sigmoid(middle + sign * taste)[member] for sign in (1, -1)], axis=1)
    values = np.where(rng.random(chance.shape) < chance, 1.0, -1.0)
    values[np.arange(len(member)), np.arange(len(member)) % 2] = np.nan
    truth = 2 * rate - 1 if number == 0 else 0.0
    return covered(values, member, (-1, 1), order_and_entity_effect, number), truth


def paired(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float, shift: float
) -> tuple[Interval, float]:
    """Difference of two systems that mostly fail on the same items, as two columns."""
    member = sizes(rng, clusters, items, even=True)
    first = rng.random(len(member)) < rates(rng, clusters, rate, sd)[member]
    second = first ^ (rng.random(len(member)) < np.where(first, 0.05 + shift, 0.05))
    values = np.stack([first, second], axis=1).astype(float)
    truth = rate * (0.05 + shift) - (1 - rate) * 0.05
    return covered(values, member, (0, 1), lambda m: m[..., :1] - m[..., 1:]), truth


def delta(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float, shift: float
) -> tuple[Interval, float]:
    """The same as the mean of one column of differences."""
    member = sizes(rng, clusters, items, even=True)
    first = rng.random(len(member)) < rates(rng, clusters, rate, sd)[member]
    second = first ^ (rng.random(len(member)) < np.where(first, 0.05 + shift, 0.05))
    truth = rate * (0.05 + shift) - (1 - rate) * 0.05
    return covered(first.astype(float) - second, member, (-1, 1)), truth


def premise(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float
) -> tuple[Interval, float]:
    """PRR of gated scores: three weighted answers a level, L2 harder than L1."""
    table = worlds(rng, clusters * items, sd, rate, clusters)
    member = np.repeat(np.arange(clusters), items)
    ratio = covered(table, member, (0, 1), lambda m: premise_ratio(m[..., 0], m[..., 1])[..., None])
    return ratio, premise_truth(sd, rate)


def worlds(rng: np.random.Generator, n: int, sd: float, rate: float, clusters: int) -> Array:
    effect = np.repeat(rng.normal(size=clusters), n // clusters)
    weights = np.array([2.0, 14.0, 8.0]) / 24
    levels = [
        (rng.random((n, 3)) < sigmoid(intercept(r, sd) + sd * effect)[:, None]) @ weights
        for r in (rate, rate - 0.2)
    ]
    return gated(np.stack([*levels, levels[1]], axis=1))[:, :2]


@functools.cache
def premise_truth(sd: float, rate: float) -> float:
    means = worlds(np.random.default_rng(7), 2_000_000, sd, rate, 1_000_000).mean(axis=0)
    return float(premise_ratio(means[0], means[1]))


def magnitude_gap(
    rng: np.random.Generator, clusters: int, items: int, sd: float, rate: float, other: float
) -> tuple[Interval, float]:
    """Difference of two homogenizations, |mean sign|."""
    member = sizes(rng, clusters, items, even=True)
    effect = sd * rng.normal(size=clusters)
    chance = np.stack([sigmoid(intercept(r, sd) + effect)[member] for r in (rate, other)], axis=1)
    values = np.where(rng.random(chance.shape) < chance, 1.0, -1.0)
    truth = abs(2 * rate - 1) - abs(2 * other - 1)
    size = np.abs
    return covered(values, member, (-1, 1), lambda m: size(m[..., :1]) - size(m[..., 1:])), truth


def erring(rng: np.random.Generator, truth: Array, false_yes: float, false_no: float) -> Array:
    """What a judge with these error rates says, 0 or 1."""
    errs = rng.random(len(truth)) < np.where(truth == 1, false_no, false_yes)
    return np.where(errs, 1 - truth, truth)


def labels(
    rng: np.random.Generator, labeled: int, rate: float, false_yes: float, false_no: float
) -> tuple[Interval, float]:
    """PPI++, independent items, 1,500 unlabeled ones."""
    truth = (rng.random(labeled + 1_500) < rate).astype(float)
    judged = erring(rng, truth, false_yes, false_no)
    return ppi(judged[labeled:], judged[:labeled], truth[:labeled], (0, 1)).interval, rate


def clustered_labels(
    rng: np.random.Generator, clusters: int, labeled: int, sd: float, rate: float, false_yes: float
) -> tuple[Interval, float]:
    """PPI++ on 1,000 items in clusters, labeled ones drawn at random."""
    member = rng.permutation(np.arange(1_000) % clusters)
    truth = (rng.random(1_000) < rates(rng, clusters, rate, sd)[member]).astype(float)
    judged = erring(rng, truth, false_yes, 0.05)
    parts = judged[labeled:], judged[:labeled], truth[:labeled]
    return ppi(*parts, (0, 1), clusters=member).interval, rate


def abstaining(
    rng: np.random.Generator, labeled: int, rate: float, abstains: float, invalid: float
) -> tuple[Interval, float]:
    """Corrected share: the judge finds a share of the wrong items invalid, and errs on 10 %.

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
    return ppi(*parts, (0, 1), clusters=member).interval, rate


def recurring(
    rng: np.random.Generator, entities: int, pairs: int, sd: float, difference: int
) -> tuple[Interval, float]:
    """Mean sign of pairs of entities that each have an effect, or the gap of two such systems."""
    members = np.array([rng.choice(entities, 2, replace=False) for _ in range(pairs)])
    members = np.repeat(members, 2, axis=0)
    columns = []
    for _ in range(1 + difference):
        effect = sd * rng.normal(size=entities)
        chance = sigmoid(0.4 + effect[members].sum(axis=1))
        columns.append(np.where(rng.random(len(members)) < chance, 1.0, -1.0))
    values = np.stack(columns, axis=1)
    if difference:
        gap = covered(values, members, (-1, 1), lambda m: m[..., :1] - m[..., 1:])
        return gap, 0.0
    return covered(values, members, (-1, 1)), 2 * float(
        sigmoid(0.4 + 2**0.5 * sd * NODES).mean()
    ) - 1


def by_card(
    rng: np.random.Generator, card: int, items: int, rate: float, right: float
) -> tuple[Interval, float]:
    """Rogan-Gladen, as many labels of each kind in the card."""
    positives = rng.binomial(items, rate * right + (1 - rate) * (1 - right))
    told = rng.binomial(card, right, size=2)
    return rogan_gladen(positives, items, told[0], card, told[1], card).interval, rate


def kappa(
    rng: np.random.Generator, items: int, answers: int, first: float, wrong: float
) -> tuple[Interval, float]:
    """Two raters, the second of whom errs evenly."""
    base = np.full(answers, (1 - first) / (answers - 1))
    base[0] = first
    chance = np.full((answers, answers), wrong / (answers - 1))
    np.fill_diagonal(chance, 1 - wrong)
    chance = base[:, None] * chance
    expected = chance.sum(axis=1) @ chance.sum(axis=0)
    truth = float((np.trace(chance) - expected) / (1 - expected))
    drawn = rng.multinomial(items, chance.ravel()).reshape(answers, answers)
    found = cohen_kappa(drawn).interval
    return (Interval(-1, 1) if np.isnan(found.low) else found), truth


def coefficient(
    rng: np.random.Generator, items: int, kind: int, rho: float
) -> tuple[Interval, float]:
    """Pearson (0), Spearman (1) or Kendall (2) of normal values."""
    x, e = rng.normal(size=(2, items))
    y = rho * x + np.sqrt(1 - rho**2) * e
    truth = (rho, 6 / np.pi * np.arcsin(rho / 2), 2 / np.pi * np.arcsin(rho))[kind]
    return correlation(x, y, KINDS[kind], resamples=200).interval, float(truth)


def tables(quick: bool) -> Iterable[tuple[str, Simulate, Iterable[int], list[Any]]]:
    """Title, simulation, what a line stands for, and the settings of every line."""
    grid = itertools.product
    clusters = (5, 19, 20) if quick else CLUSTERS
    many = (20,) if quick else (4, 20, 68)
    base = list(grid(many, (0, 0.75, 1.5), (0.02, 0.5, 0.7, 0.9, 0.95)))
    small = list(grid((20,) if quick else (4, 68), (0, 1.5), (0.5, 0.7, 0.9)))
    errors = ((0, 0), (0.05, 0.05), (0.1, 0.3), (0.3, 0), (0, 0.3), (0.3, 0.3))
    yield "share; by clusters", one_mean, clusters, [(*s, True) for s in base]
    yield "share, uneven clusters", one_mean, clusters, [(*s, False) for s in small]
    yield "signed mean", signed_mean, clusters, small
    yield "gap of two variants", gap, clusters, [(*s, d) for s in small for d in (0, 0.2)]
    yield "order effect", order_effect, clusters, [(*s, 0) for s in small]
    yield "entity effect", order_effect, clusters, [(*s, 1) for s in small]
    yield "paired, two columns", paired, clusters, [(*s, d) for s in small for d in (0, 0.1)]
    yield "paired, differences", delta, clusters, [(*s, d) for s in small for d in (0, 0.1)]
    yield "PRR", premise, clusters, small
    yield "|a| - |b|", magnitude_gap, clusters, [(*s, d) for s in small for d in (0.5, 0.8)]
    shares = (0.5, 0.7, 0.9, 0.95)
    yield "PPI++; by labels", labels, LABELS, [(p, *e) for p in shares for e in errors]
    among = list(grid((10, 100, 400), (0, 1.5), (0.5, 0.9), (0.05, 0.3)))
    yield "PPI++, clustered; by clusters", clustered_labels, clusters, among
    hard = list(grid((0.2, 0.6, 0.9), (0.0, 0.3), (0.0, 0.2)))
    yield "PPI++, a judge that abstains; by labels", abstaining, LABELS[2:5], hard
    crossed = list(grid((60,) if quick else (60, 400), (0.0, 0.5, 1.0), (0, 1)))
    yield "recurring entities; by entities", recurring, (20, 60, 138), crossed
    yield (
        "Rogan-Gladen; by labels of each kind",
        by_card,
        (20, 60, 500),
        list(grid((50, 1_500), (0.05, 0.5, 0.95), (0.93, 0.99))),
    )
    yield "kappa; by items", kappa, (15, 30, 200), list(grid((2, 3), (0.5, 0.9), (0.02, 0.1, 0.3)))
    if not quick:
        yield "correlation; by items", coefficient, (10, 20, 50), list(grid(range(3), (0, 0.6)))


def measure(
    title: str, simulate: Simulate, heads: Iterable[int], settings: list[Any], runs: int
) -> None:
    """Prints one table."""
    print(f"\n{title}: lowest, mean and highest coverage")
    for head in heads:
        found = {}
        for setting in settings:
            rng = np.random.default_rng([17, head, *(int(1000 * v) for v in setting)])
            tries = (simulate(rng, head, *setting) for _ in range(runs))
            found[setting] = float(np.mean([truth in interval for interval, truth in tries]))
        worst = min(found, key=lambda setting: found[setting])
        mean, most = np.mean(list(found.values())), max(found.values())
        print(f"{head:5d}: {found[worst]:.3f} {mean:.3f} {most:.3f}   worst at {worst}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=1_000)
    asked = parser.parse_args()
    runs = min(asked.runs, 20) if asked.quick else asked.runs
    print(f"{runs} simulations of every setting")
    for title, simulate, heads, settings in tables(asked.quick):
        measure(title, simulate, heads, settings, runs)


if __name__ == "__main__":
    main()
