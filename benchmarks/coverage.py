"""How often nominal 95 % intervals hold the truth, on simulated data whose truth is known.

    python benchmarks/coverage.py [--quick] [--runs 1000]

One line for every number of clusters or labels: the lowest, mean and highest coverage over the
settings, and the worst setting. Seeded. Simulation noise of one setting at 1,000 runs: 0.007.
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

from counterprior.eval.stats.clusters import Statistic, cluster_interval
from counterprior.eval.stats.intervals import Interval
from counterprior.eval.suites.order import order_and_entity_effect
from counterprior.eval.suites.worlds import gated, premise_ratio

Array = NDArray[np.float64]
Simulate = Callable[..., tuple[Interval, float]]
"""From a generator and a setting to an interval and the truth that it should hold."""

RESAMPLES = 1_000
NODES = norm.ppf((np.arange(4_000) + 0.5) / 4_000)
FEW = (3, 5, 8, 12, 15, 19)
CLUSTERS = (*FEW, 20, 30, 60)


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


def table(title: str, simulate: Simulate, first: Iterable[Any], rest: list[Any], runs: int) -> None:
    """One line for every first part of a setting."""
    print(f"\n{title}")
    for head in first:
        found = {}
        for setting in rest:
            rng = np.random.default_rng([17, head, *(int(1000 * abs(v)) for v in setting)])
            tries = (simulate(rng, head, *setting) for _ in range(runs))
            found[setting] = float(np.mean([truth in interval for interval, truth in tries]))
        worst = min(found, key=lambda s: found[s])
        mean, most = np.mean(list(found.values())), max(found.values())
        low = sum(share < 0.93 for share in found.values())
        print(
            f"{head:5d}: {found[worst]:.3f} {mean:.3f} {most:.3f}   "
            f"{low} of {len(found)} below .93; worst {worst}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=1_000)
    asked = parser.parse_args()
    grid = itertools.product
    runs, heads = asked.runs, CLUSTERS
    base = list(grid((4, 20, 68), (0, 0.75, 1.5), (0.5, 0.7, 0.9, 0.95)))
    small = list(grid((4, 68), (0, 1.5), (0.5, 0.7, 0.9)))
    table("mean", one_mean, heads, [(*s, True) for s in base], runs)
    table("mean, uneven clusters", one_mean, heads, [(*s, False) for s in small], runs)
    table("signed", signed_mean, heads, small, runs)
    table("gap", gap, heads, [(*s, d) for s in small for d in (0, 0.2)], runs)
    table("order", order_effect, heads, [(*s, 0) for s in small], runs)
    table("entity", order_effect, heads, [(*s, 1) for s in small], runs)
    table("paired", paired, heads, [(*s, d) for s in small for d in (0, 0.1)], runs)
    table("delta", delta, heads, [(*s, d) for s in small for d in (0, 0.1)], runs)
    table("premise", premise, heads, small, runs)
    table("magnitude", magnitude_gap, heads, [(*s, d) for s in small for d in (0.5, 0.8)], runs)
