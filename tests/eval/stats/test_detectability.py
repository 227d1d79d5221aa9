"""Detection rates and what is corrected by them, on simulated detectors."""

import numpy as np
import pytest

from counterprior.eval.stats.detectability import (
    BEYOND,
    TOO_FALSE,
    Looks,
    SeenPairs,
    corrected_rates,
    detection_rates,
)

LEVELS = {"easy": 2.5, "usual": 0.5, "hard": -1.0}


def rate(name: np.ndarray, areas: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    levels = np.array([LEVELS[n] for n in name])
    return np.asarray(1 / (1 + np.exp(-(levels + 0.8 * (np.log(areas) + 2.9)))))


def looks(rng: np.random.Generator, each: int = 300, false: float = 0.0) -> Looks:
    names = np.repeat(list(LEVELS), each)
    there = rng.random(len(names)) < 0.8
    areas = np.exp(rng.uniform(np.log(0.005), np.log(0.3), len(names)))
    seen = rng.random(len(names)) < np.where(there, rate(names, areas), false)
    cutouts = np.where(there, rng.integers(0, 5, len(names)).astype(str), "")
    return Looks(names, cutouts, np.where(there | seen, areas, np.nan), there, seen)


def pairs(rng: np.random.Generator, n: int = 2_000, false: float = 0.0) -> SeenPairs:
    """Each thing is there in 70 % of the images, and half of the relations hold in half of them."""
    names = [rng.choice(list(LEVELS), n) for _ in range(2)]
    sizes, both = [], np.full(n, True)
    for of_side in names:
        areas = np.exp(rng.normal(-2.5, 0.7, n))
        there = rng.random(n) < 0.7
        seen = rng.random(n) < np.where(there, rate(of_side, areas), false)
        sizes.append(np.where(seen, areas, np.nan))
        both &= there
    decided = ~np.isnan(sizes[0]) & ~np.isnan(sizes[1])
    holds = rng.random(n) < np.where(both, 0.8, 0.5)
    return SeenPairs(
        (names[0].tolist(), names[1].tolist()),
        (sizes[0], sizes[1]),
        decided,
        decided & holds,
        np.arange(n) // 10,
    )


def test_rates_of_classes_and_sizes_are_recovered() -> None:
    rates = detection_rates(looks(np.random.default_rng(1)))
    for name in LEVELS:
        for size in (0.01, 0.04, 0.16):
            estimate, truth = rates.rate([name], size), rate(np.array([name]), np.array([size]))[0]
            assert estimate.value == pytest.approx(truth, abs=0.09)
            assert estimate.interval.low < truth < estimate.interval.high
    unknown, usual = rates.rate(["unknown"], 0.04), rates.rate(["usual"], 0.04)
    assert np.ptp(unknown.interval) > 3 * np.ptp(usual.interval)


def test_a_class_with_few_looks_is_drawn_to_the_others() -> None:
    everything = looks(np.random.default_rng(2))
    few = np.array([name != "hard" or i % 60 == 0 for i, name in enumerate(everything.classes)])
    all_missed = Looks(
        everything.classes[few],
        everything.cutouts[few],
        everything.sizes[few],
        everything.there[few] | (everything.classes[few] == "hard"),
        everything.seen[few] & (everything.classes[few] != "hard"),
    )
    estimate = detection_rates(all_missed).rate(["hard"], 0.04)
    assert 0.05 < estimate.value < 0.5 and np.ptp(estimate.interval) > 0.2


@pytest.mark.parametrize("false", [0.0, 0.04])
def test_corrected_rates_hold_the_truth(false: float) -> None:
    rng = np.random.default_rng(3)
    images = pairs(rng, false=false)
    corrected = corrected_rates(images, detection_rates(looks(rng, false=false)))
    truths = (0.49, 0.49 * 0.8, 0.8)
    for estimate, truth in zip(corrected, truths, strict=True):
        assert estimate.interval.low < truth < estimate.interval.high
        assert estimate.value == pytest.approx(truth, abs=0.11)
        assert estimate.n == 2_000 and estimate.clusters == 200
    assert images.decided.mean() < 0.3 and images.passed.mean() < 0.25


def test_wider_with_fewer_composed_images() -> None:
    rng = np.random.default_rng(4)
    images = pairs(rng)
    few, many = (
        corrected_rates(images, detection_rates(looks(rng, each)))[0] for each in (30, 1_000)
    )
    assert np.ptp(few.interval) > 1.3 * np.ptp(many.interval)


def test_nothing_passed_is_not_certain() -> None:
    rng = np.random.default_rng(5)
    images = pairs(rng, 100)
    none = SeenPairs(
        images.classes, images.sizes, images.decided, np.full(100, False), images.clusters
    )
    _, passed, accuracy = corrected_rates(none, detection_rates(looks(rng)))
    assert passed.value == accuracy.value == 0
    assert passed.interval.high > 0.05 and accuracy.interval.high > 0.05
    nothing = SeenPairs(
        images.classes,
        (np.full(100, np.nan), np.full(100, np.nan)),
        np.full(100, False),
        np.full(100, False),
        images.clusters,
    )
    decided, _, accuracy = corrected_rates(nothing, detection_rates(looks(rng)))
    assert decided.value == 0 and np.isnan(accuracy.value)


def test_warns_of_rates_that_do_not_apply() -> None:
    """Composed images in which the detector misses most, and others in which it misses nothing."""
    rng = np.random.default_rng(6)
    names = rng.choice(list(LEVELS), (2, 500))
    sizes = np.full(500, 0.01), np.full(500, 0.01)
    everything = np.full(500, True)
    images = SeenPairs(
        (names[0].tolist(), names[1].tolist()), sizes, everything, everything, np.arange(500)
    )
    decided, *_ = corrected_rates(images, detection_rates(looks(rng)))
    assert decided.value == 1 and decided.warning == BEYOND


def test_too_many_false_detections_correct_nothing() -> None:
    rng = np.random.default_rng(7)
    for estimate in corrected_rates(pairs(rng, 100), detection_rates(looks(rng, false=0.4))):
        assert np.isnan(estimate.value) and estimate.warning == TOO_FALSE


def test_rejects_looks_at_nothing() -> None:
    nothing = Looks(
        np.array(["dog"]), np.array([""]), np.array([np.nan]), np.array([False]), np.array([False])
    )
    with pytest.raises(ValueError, match="no look"):
        detection_rates(nothing)
