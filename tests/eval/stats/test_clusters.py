"""The interval of every score: exact where it is resampled, and honest where it is not."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterprior.eval.stats.bootstrap import cluster_bootstrap
from counterprior.eval.stats.clusters import cluster_interval
from counterprior.eval.stats.estimate import Estimate
from counterprior.eval.stats.intervals import wilson
from counterprior.eval.suites.homogenization import order_and_entity_effect
from counterprior.eval.suites.worlds import premise_ratio

FIVE = ["a", "a", "b", "c", "d", "e"]
NODES = np.random.default_rng(9).normal(size=20_000)


def gap(means: np.ndarray) -> np.ndarray:
    return means[..., :1] - means[..., 1:2]


def prr(means: np.ndarray) -> np.ndarray:
    return premise_ratio(means[..., 0], means[..., 1])[..., None]


def mean(values: object, clusters: object, ends: tuple[float, float] = (0, 1)) -> Estimate:
    return cluster_interval(values, clusters, ends, tested=True)[0]


@pytest.mark.parametrize("statistic", [None, gap, prr, order_and_entity_effect])
def test_many_even_clusters_agree_with_the_bootstrap(statistic: object) -> None:
    rng = np.random.default_rng(0)
    values = (rng.random((1_200, 2)) < 0.7).astype(float)
    values[rng.random((1_200, 2)) < 0.3] = np.nan
    clusters = np.arange(1_200) % 200
    bootstrap = cluster_bootstrap(values, clusters, statistic, resamples=2_000)
    estimates = cluster_interval(values, clusters, (0, 1), statistic, resamples=2_000)
    for number, estimate in enumerate(estimates):
        ratio = np.diff(estimate.interval) / np.diff(bootstrap.interval(number))
        assert 0.95 < ratio < 1.15


@pytest.mark.parametrize("count", [1, 2, 5, 19, 20, 40])
def test_what_was_always_so_is_wilsons(count: int) -> None:
    clusters = np.arange(3 * count) % count
    ones = np.ones(3 * count)
    assert mean(ones, clusters).interval == wilson(count, count)
    low, high = mean(-ones, clusters, (-1, 1)).interval
    assert low == -1 and high == pytest.approx(2 * wilson(0, count).high - 1)
    missed = wilson(0, count).high
    assert mean(0 * ones, clusters, (-1, 1)).interval == pytest.approx((-missed, missed))
    half = np.tile([0.0, 1.0], count)
    assert mean(half, np.repeat(np.arange(count), 2)).interval == wilson(count / 2, count)
    apart, same = np.stack([ones, 0 * ones], axis=1), np.stack([half, half], axis=1)
    (found,) = cluster_interval(apart, clusters, (0, 1), gap)
    assert found.interval.high == pytest.approx(1, abs=1e-3)
    assert found.interval.low < 1 - missed
    assert count < 3 or 1 - 2 * missed < found.interval.low
    (equal,) = cluster_interval(same, np.repeat(np.arange(count), 2), (0, 1), gap)
    assert equal.p_value == 1 and equal.interval.low < 0 < equal.interval.high


def test_nothing_gives_nothing() -> None:
    for values, clusters in (([], []), ([math.nan] * 2, ["a", "b"])):
        found = mean(values, clusters)
        assert math.isnan(found.value) and math.isnan(found.interval.low)
        assert math.isnan(found.p_value) and found.clusters == 0
    (ratio,) = cluster_interval(np.zeros((5, 2)), FIVE[1:], (0, 1), prr)
    assert math.isnan(ratio.interval.high)
    with pytest.raises(ValueError, match="exceed"):
        mean([2.0], ["a"])


def test_a_p_value_agrees_with_its_interval() -> None:
    """Resampling three clusters that differ alike gave 1 / resamples."""
    three = mean([1.0, 1.0, 1.0], ["a", "b", "c"], (-1, 1))
    assert three.p_value == pytest.approx(0.083, abs=0.01) and three.interval.low < 0
    rng = np.random.default_rng(0)
    for _ in range(40):
        found = mean(
            rng.choice([-1.0, 0.0, 1.0], 12, p=[0.1, 0.3, 0.6]), np.arange(12) % 6, (-1, 1)
        )
        if abs(found.p_value - 0.05) > 0.02:
            assert (found.p_value < 0.05) == (0 not in found.interval)


rows = st.lists(
    st.tuples(st.integers(0, 7), *[st.sampled_from([0.0, 0.4, 1.0, math.nan])] * 2),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(rows, st.sampled_from([None, gap, order_and_entity_effect]), st.randoms())
def test_properties(
    given_rows: list[tuple[int, float, float]], statistic: object, rng: object
) -> None:
    clusters = [row[0] for row in given_rows]
    values = np.array([row[1:] for row in given_rows])
    found = cluster_interval(values, clusters, (0, 1), statistic, resamples=400)
    ends = (0, 1) if statistic is None else (-1, 1)
    for one in found:
        if math.isnan(one.value):
            assert math.isnan(one.interval.low)
            continue
        low, high = one.interval
        assert ends[0] <= low <= one.value <= high <= ends[1] and high - low > 1e-6
    order = list(range(len(values)))
    rng.shuffle(order)
    names = dict(zip(range(8), rng.sample("abcdefgh", 8), strict=True))
    moved = cluster_interval(
        np.vstack([values[order], values, [[math.nan] * 2]]),
        [*(names[clusters[i]] for i in order), *(names[c] for c in clusters), "z"],
        (0, 1),
        statistic,
        resamples=400,
    )
    for one, other in zip(found, moved, strict=True):
        assert other.interval == pytest.approx(one.interval, abs=1e-6, nan_ok=True)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=9))
def test_the_same_again_in_other_clusters_tells_more(values: list[float]) -> None:
    once, twice = mean(values, range(len(values))), mean(values * 2, range(2 * len(values)))
    assert np.diff(twice.interval) < np.diff(once.interval)


def test_two_ways_of_clustering_are_wider_than_one() -> None:
    rng = np.random.default_rng(0)
    pairs = np.array(list(itertools.combinations(range(8), 2)))
    taste = rng.normal(size=8)
    sides = np.sign(taste[pairs[:, 0]] - taste[pairs[:, 1]] + rng.normal(size=len(pairs)))
    alone, both = mean(sides, np.arange(28) % 19, (-1, 1)), mean(sides, pairs, (-1, 1))
    assert np.diff(both.interval) > 1.2 * np.diff(alone.interval)


def coverage(clusters: int, items: int, sd: float, rate: float, kind: str) -> float:
    """Share of 400 intervals that hold the truth; cluster rates are logit-normal."""
    rng = np.random.default_rng([clusters, items])
    grid = np.linspace(-8, 8, 801)
    at = [float(np.mean(1 / (1 + np.exp(-(b + sd * NODES[:2_000]))))) for b in grid]
    middle = float(np.interp(rate, at, grid))
    member = np.repeat(np.arange(clusters), items)
    hits = 0
    for _ in range(400):
        chance = 1 / (1 + np.exp(-(middle + sd * rng.normal(size=clusters))))
        values = (rng.random((len(member), 2)) < chance[member][:, None]).astype(float)
        if kind == "mean":
            found, truth = cluster_interval(values[:, 0], member, (0, 1), resamples=200), rate
        else:
            found, truth = cluster_interval(values, member, (0, 1), gap, resamples=400), 0.0
        hits += truth in found[0].interval
    return hits / 400


@pytest.mark.parametrize(
    ("clusters", "items", "sd", "rate", "kind"),
    [
        (5, 68, 1.5, 0.9, "mean"),  # resampling covers 0.76
        (8, 68, 1.5, 0.95, "mean"),  # 0.74
        (12, 20, 0.0, 0.5, "mean"),  # 0.88
        (19, 68, 1.5, 0.9, "mean"),  # 0.90
        (5, 20, 0.75, 0.7, "gap"),
        (12, 20, 1.5, 0.7, "gap"),
    ],
)
def test_few_clusters_cover(clusters: int, items: int, sd: float, rate: float, kind: str) -> None:
    assert 0.9 < coverage(clusters, items, sd, rate, kind) <= 0.995


def test_members_that_recur_are_covered() -> None:
    """Effects of 20 entities in all their pairs: clustered by pair, 0.55 of intervals hold."""
    rng = np.random.default_rng(0)
    pairs = np.array(list(itertools.combinations(range(20), 2)))
    truth = 2 * float(np.mean(1 / (1 + np.exp(-(0.4 + math.sqrt(2) * NODES))))) - 1
    held = dict.fromkeys(("pairs", "members"), 0)
    for _ in range(200):
        effect = rng.normal(size=20)
        chance = 1 / (1 + np.exp(-(0.4 + effect[pairs].sum(axis=1))))
        signs = np.where(rng.random(len(pairs)) < chance, 1.0, -1.0)
        for way, clusters in (("pairs", np.arange(len(pairs))), ("members", pairs)):
            (estimate,) = cluster_interval(signs, clusters, (-1, 1), resamples=100)
            held[way] += truth in estimate.interval
    assert held["pairs"] < 140 and 184 <= held["members"] <= 199


def test_members_stand_in_any_order() -> None:
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, 9, (60, 2))
    signs = np.where(rng.random(60) < 0.6, 1.0, -1.0)
    assert mean(signs, pairs, (-1, 1)) == mean(signs, pairs[:, ::-1], (-1, 1))
    named = np.array(list("abcdefghi"))[pairs]
    assert mean(signs, named, (-1, 1)) == mean(signs, pairs, (-1, 1))


def test_an_item_of_weight_two_stands_for_two_of_its_cluster() -> None:
    rng = np.random.default_rng(2)
    values, clusters = (rng.random(40) < 0.8).astype(float), np.arange(40) % 9
    weights = rng.integers(0, 3, 40)
    (weighted,) = cluster_interval(values, clusters, (0, 1), weights=weights)
    (repeated,) = cluster_interval(values.repeat(weights), clusters.repeat(weights), (0, 1))
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.interval == pytest.approx(repeated.interval)
    (scaled,) = cluster_interval(values, clusters, (0, 1), weights=weights / 100)
    assert scaled.interval == pytest.approx(weighted.interval)


def test_items_drawn_with_unequal_weights_are_covered() -> None:
    """As a ratio of two means, 0.90 of intervals hold the truth at a rate of 0.98."""
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        hits = (rng.random(300) < 0.98).astype(float)
        weights = rng.choice([0.1, 0.4, 1.0], 300)
        (estimate,) = cluster_interval(hits, np.arange(300), (0, 1), weights=weights)
        held += 0.98 in estimate.interval
    assert 372 <= held <= 396


def test_means_without_a_test_have_the_same_intervals() -> None:
    rng = np.random.default_rng(4)
    values, clusters = (rng.random((60, 2)) < 0.6).astype(float), np.arange(60) % 12
    plain = cluster_interval(values, clusters, (0, 1))
    tested = cluster_interval(values, clusters, (0, 1), tested=True)
    assert [e.interval for e in plain] == [e.interval for e in tested]
    assert math.isnan(plain[0].p_value) and 0 < tested[0].p_value < 1
    assert plain[0].error == pytest.approx(tested[0].error, rel=0.3)
