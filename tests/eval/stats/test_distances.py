"""Distances between sets of features, against the published formulas written out."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from counterprior.eval.stats import distances
from counterprior.eval.stats.distances import (
    cmmd,
    frechet_distance,
    kernel_distance,
    precision_and_recall,
    renyi_kernel_entropy,
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 8)), RNG.normal(0.4, 1.3, size=(60, 8))


def test_frechets_distance_has_the_matrix_root_of_the_paper() -> None:
    a, b = np.cov(X, rowvar=False), np.cov(Y, rowvar=False)
    gap = X.mean(axis=0) - Y.mean(axis=0)
    expected = gap @ gap + np.trace(a + b - 2 * linalg.sqrtm(a @ b).real)
    assert frechet_distance(X, Y) == pytest.approx(expected)
    assert frechet_distance(Y[:50], X) == pytest.approx(frechet_distance(X, Y[:50]))
    few = RNG.normal(size=(5, 40))  # the root of a singular matrix
    assert frechet_distance(few, few) == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match="do not fit"):
        frechet_distance(X, Y[:, :3])


def test_the_kernel_distance_is_the_double_sum_of_the_paper() -> None:
    def kernel(p: np.ndarray, q: np.ndarray) -> float:
        return float((p @ q / 8 + 1) ** 3)

    n = 12
    x, y = X[:n], Y[:n]
    inside = sum(kernel(z[i], z[j]) for z in (x, y) for i in range(n) for j in range(n) if i != j)
    across = sum(kernel(x[i], y[j]) for i in range(n) for j in range(n) if i != j)
    found = kernel_distance(x, y, np.arange(n))
    assert found.value == pytest.approx((inside - 2 * across) / (n * (n - 1)))
    assert found.interval.low < found.value < found.interval.high
    assert (found.n, found.clusters) == (n, n)
    # Leaving a cluster out is computing without it.
    halves = np.arange(n) % 4
    leave_out = [
        kernel_distance(x[halves != g], y[halves != g], halves[halves != g]).value for g in range(4)
    ]
    error = np.sqrt(3 / 4 * ((np.array(leave_out) - np.mean(leave_out)) ** 2).sum())
    found = kernel_distance(x, y, halves)
    assert found.interval.high - found.value == pytest.approx(3.182446 * error, rel=1e-5)
    assert np.isnan(kernel_distance(x, y, np.zeros(n)).interval.low)


def test_the_kernel_distance_is_unbiased_and_its_interval_covers() -> None:
    rng = np.random.default_rng(1)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.normal(size=(n, 4)), rng.normal(0.5, 1, size=(n, 4))

    # Its expectation in closed form is laborious; a very large sample stands for it.
    truth = float(np.mean([kernel_distance(*drawn(900), np.zeros(900)).value for _ in range(6)]))
    found = [kernel_distance(*drawn(40), np.arange(40)) for _ in range(150)]
    assert np.mean([one.value for one in found]) == pytest.approx(truth, rel=0.1)
    assert sum(truth in one.interval for one in found) >= 0.87 * len(found)


@pytest.mark.parametrize("alike", [0.0, 0.9, 1.0])
def test_the_kernel_distance_of_two_equal_models_with_the_same_seeds_is_0(alike: float) -> None:
    """How alike two images of one prompt and seed are says nothing of the sets."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(40):
        x = rng.normal(size=(50, 64))
        y = alike * x + (1 - alike**2) ** 0.5 * rng.normal(size=x.shape)
        found.append(kernel_distance(x, y, np.arange(50)))
    assert np.mean([one.value for one in found]) == pytest.approx(0, abs=0.01)
    assert sum(0 in one.interval for one in found) >= 34


@pytest.mark.parametrize(
    ("apart", "clusters", "warned"), [(0.0, 60, True), (3.0, 60, False), (3.0, 15, True)]
)
def test_the_kernel_distance_warns_near_zero_and_of_few_clusters(
    apart: float, clusters: int, warned: bool
) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 4)), rng.normal(apart, 1, size=(60, 4))
    assert bool(kernel_distance(x, y, np.arange(60) % clusters).warning) is warned


def test_many_clusters_take_hardly_longer_than_few() -> None:
    x, y = RNG.normal(size=(2, 800, 4))

    def seconds(clusters: int) -> float:
        times = []
        for _ in range(3):
            began = time.process_time()
            kernel_distance(x, y, np.arange(800) % clusters)
            times.append(time.process_time() - began)
        return min(times)

    assert seconds(800) < 6 * seconds(3)  # with a sum of all for each cluster 16 times


def test_cmmd_is_the_gaussian_double_sum() -> None:
    x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (X, Y))

    def mean(p: np.ndarray, q: np.ndarray) -> float:
        return float(np.mean([np.exp(-((a - b) ** 2).sum() / 200) for a in p for b in q]))

    expected = 1000 * (mean(x, x) + mean(y, y) - 2 * mean(x, y))
    assert cmmd(X, 7 * Y) == pytest.approx(expected)
    assert cmmd(X, X) == pytest.approx(0, abs=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 20))
def test_distances_do_not_depend_on_order_and_rotation(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    moved = rng.permutation(n)
    for distance in (frechet_distance, cmmd):
        assert distance(x[moved] @ turn, y @ turn) == pytest.approx(distance(x, y), abs=1e-6)
    of_pairs = kernel_distance(x[moved] @ turn, y[moved] @ turn, range(n)).value
    assert of_pairs == pytest.approx(kernel_distance(x, y, range(n)).value, abs=1e-6)
    assert frechet_distance(x, y) >= 0


def test_precision_and_recall_equal_the_balls_by_brute_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(distances, "_ROWS", 7)  # several blocks of a matrix
    x, y = X[:40, :3], Y[:30, :3]

    def share(points: np.ndarray, manifold: np.ndarray) -> float:
        radii = [sorted(np.linalg.norm(p - q) for q in manifold)[3] for p in manifold]
        balls = list(zip(manifold, radii, strict=True))
        return float(np.mean([any(np.linalg.norm(p - q) <= r for q, r in balls) for p in points]))

    assert precision_and_recall(x, y) == pytest.approx((share(y, x), share(x, y)))
    assert precision_and_recall(y, x) == precision_and_recall(x, y)[::-1]


def test_precision_and_recall_separate_fidelity_from_diversity() -> None:
    rng = np.random.default_rng(2)
    modes = 100 * np.eye(4)[np.arange(400) % 4]
    reference, alike = (modes + rng.normal(size=(400, 4)) for _ in range(2))
    collapsed = alike[::4]  # one of the four modes
    strayed = np.concatenate([alike, alike + 1000])  # half of it nowhere near
    assert precision_and_recall(reference, reference) == (1, 1)
    assert precision_and_recall(reference, reference[::-1].copy()) == (1, 1)
    assert min(precision_and_recall(reference, alike)) > 0.85
    precision, recall = precision_and_recall(reference, collapsed)
    assert precision > 0.85 and recall == pytest.approx(0.25, abs=0.04)
    precision, recall = precision_and_recall(reference, strayed)
    assert precision == pytest.approx(0.5, abs=0.06) and recall > 0.85
    assert precision_and_recall(reference, reference + 1000) == (0, 0)
    assert np.isnan(precision_and_recall(reference[:3], reference)).all()  # undefined, not 0
    with pytest.raises(ValueError, match="do not fit"):
        precision_and_recall(reference, reference[:, :2])


@pytest.mark.parametrize("modes", [1, 3, 8])
def test_renyi_kernel_entropy_counts_modes(modes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "_ROWS", 7)
    far = 100 * np.eye(8)[np.arange(24 * modes) % modes]
    assert renyi_kernel_entropy(far, 1) == pytest.approx(modes, rel=1e-9)
    # A rare mode counts for less: 1 / sum of squared shares.
    uneven = 100 * np.eye(2)[[0] * 9 + [1]]
    assert renyi_kernel_entropy(uneven, 1) == pytest.approx(1 / (0.9**2 + 0.1**2))
    assert np.isnan(renyi_kernel_entropy(far[:1], 1))


def test_renyi_kernel_entropy_is_the_double_sum_of_the_paper() -> None:
    kernel = [[np.exp(-((a - b) ** 2).sum() / (2 * 3**2)) for a in X] for b in X]
    expected = np.exp(-np.log(np.square(np.array(kernel) / len(X)).sum()))
    assert renyi_kernel_entropy(X, 3) == pytest.approx(expected, rel=1e-12)
