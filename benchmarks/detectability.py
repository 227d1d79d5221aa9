"""How often rates corrected for missed objects hold the truth, on simulated detectors.

    python benchmarks/detectability.py [--runs 400]

A detector sees a thing with a probability that depends on its class, size and instance. Rates are
estimated on composed images, then coverage, pass rate and accuracy of other images are corrected;
intervals as judged stand beside. Seeded. The standard error is 0.011 at 400 simulations.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterprior.eval.stats.clusters import cluster_interval
from counterprior.eval.stats.detectability import (
    Looks,
    SeenPairs,
    corrected_rates,
    detection_rates,
)
from counterprior.eval.stats.intervals import Interval

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """Truth of a simulation."""

    classes: int = 33
    cutouts: int = 5
    """Cut-outs of each class."""
    composed: int = 800
    """Composed images; in a quarter one of two things is left out."""
    pairs: int = 50
    """Pairs of classes, the clusters of the judged images."""
    images: int = 16
    """Judged images of each pair."""
    level: float = 1.0
    """Logit of being seen, of the usual class in the middle of the sizes."""
    class_sd: float = 1.0
    cutout_sd: float = 0.7
    slope: float = 0.8
    """Per unit of log(area)."""
    step: bool = False
    """Whether things below an area of 0.03 are seen by 2 logits less, in place of the slope."""
    false: float = 0.0
    """Share of things that are not there and seen."""
    there: float = 0.8
    """Share of things that are there."""
    passes: float = 0.6
    small: float = -2.5
    """Mean log(area) in the judged images."""
    unknown: int = 0
    """Classes without composed images."""


class Detector:
    """A simulated detector."""

    def __init__(self, rng: np.random.Generator, setting: Setting) -> None:
        self._rng, self._setting = rng, setting
        self._levels = setting.level + setting.class_sd * rng.standard_normal(setting.classes)

    def sees(
        self, classes: NDArray[np.intp], sizes: Array, there: NDArray[np.bool_], deviation: Array
    ) -> NDArray[np.bool_]:
        """Whether things are detected."""
        s = self._setting
        smooth, step = s.slope * (np.log(sizes) + 2.9), np.where(sizes < 0.03, -2.0, 0.0)
        by_size = step if s.step else smooth
        rate = 1 / (1 + np.exp(-(self._levels[classes] + by_size + deviation)))
        return np.asarray(self._rng.random(len(sizes)) < np.where(there, rate, s.false))


class Intervals(NamedTuple):
    """Decided, passed, accuracy."""

    judged: list[Interval]
    corrected: list[Interval]
    values: list[float]
    truths: list[float]


def simulate(rng: np.random.Generator, s: Setting) -> Intervals:
    """One detector, its composed images and the images that it judges."""
    detector = Detector(rng, s)
    names = np.array([f"class {number}" for number in range(s.classes)])
    # Composed images: two classes each, log-uniform sizes, one of a class's cut-outs.
    known = rng.permutation(s.classes)[: s.classes - s.unknown]
    first = rng.choice(known, s.composed)
    second = rng.choice(known, s.composed)
    classes = np.concatenate([first, second])
    left_out = rng.random(s.composed) < 0.25
    which = rng.random(s.composed) < 0.5
    there = ~np.concatenate([left_out & which, left_out & ~which])
    sizes = np.exp(rng.uniform(np.log(0.005), np.log(0.3), 2 * s.composed))
    cutout = rng.integers(0, s.cutouts, 2 * s.composed)
    deviations = s.cutout_sd * rng.standard_normal((s.classes, s.cutouts))
    seen = detector.sees(classes, sizes, there, deviations[classes, cutout])
    looks = Looks(
        names[classes],
        np.where(there, cutout.astype(str), ""),
        np.where(there | seen, sizes, np.nan),
        there,
        seen,
    )
    rates = detection_rates(looks)
    # Judged images.
    a = rng.integers(0, s.classes, s.pairs)
    b = (a + rng.integers(1, s.classes, s.pairs)) % s.classes
    cluster = np.repeat(np.arange(s.pairs), s.images)
    n = len(cluster)
    present, areas, saw = [], [], []
    logit = np.log(s.there / (1 - s.there))
    nodes = logit + 0.7 * rng.standard_normal(200_000)
    mean_there = float((1 / (1 + np.exp(-nodes))).mean())
    for classes in (a[cluster], b[cluster]):
        chance = 1 / (1 + np.exp(-(logit + 0.7 * rng.standard_normal(s.pairs))))
        is_there = rng.random(n) < chance[cluster]
        area = np.exp(np.clip(s.small + 0.8 * rng.standard_normal(n), np.log(0.005), np.log(0.4)))
        present.append(is_there)
        areas.append(area)
        saw.append(detector.sees(classes, area, is_there, s.cutout_sd * rng.standard_normal(n)))
    tendency = s.passes + 0.3 * (rng.random(s.pairs) - 0.5)
    both = present[0] & present[1]
    holds = np.where(both, rng.random(n) < tendency[cluster], rng.random(n) < 0.5)
    decided = saw[0] & saw[1]
    passed = decided & holds
    pairs = SeenPairs(
        (names[a[cluster]].tolist(), names[b[cluster]].tolist()),
        (np.where(saw[0], areas[0], np.nan), np.where(saw[1], areas[1], np.nan)),
        decided,
        passed,
        cluster,
    )
    corrected = corrected_rates(pairs, rates)
    plain = [
        cluster_interval(values, cluster, (0, 1), resamples=200)[0].interval
        for values in (
            decided.astype(float),
            passed.astype(float),
            np.where(decided, passed.astype(float), np.nan),
        )
    ]
    truth = mean_there**2
    return Intervals(
        plain,
        [estimate.interval for estimate in corrected],
        [estimate.value for estimate in corrected],
        [truth, truth * s.passes, s.passes],
    )


USUAL = Setting()
SETTINGS = {
    "33 classes, 5 cut-outs each": USUAL,
    "1 cut-out each": replace(USUAL, cutouts=1),
    "2 cut-outs each, 200 composed images": replace(USUAL, cutouts=2, composed=200),
    "no cut-out of 5 classes": replace(USUAL, unknown=5),
    "80 classes": replace(USUAL, classes=80, pairs=100, images=8),
    "8 classes, 3 cut-outs": replace(USUAL, classes=8, cutouts=3),
    "most are seen": replace(USUAL, level=3.0),
    "half are seen": replace(USUAL, level=0.0),
    "a step in place of a slope": replace(USUAL, step=True),
    "small things": replace(USUAL, small=-3.5),
    "5 % false detections": replace(USUAL, false=0.05),
    "15 % false detections": replace(USUAL, false=0.15),
    "few are there": replace(USUAL, there=0.4, false=0.02),
    "nearly all are there": replace(USUAL, there=0.98, level=2.0),
    "few pass": replace(USUAL, passes=0.16),
    "20 pairs of 16 images": replace(USUAL, pairs=20),
    "equal classes and cut-outs": replace(USUAL, class_sd=0.0, cutout_sd=0.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=400, help="simulations of each setting")
    runs = parser.parse_args().runs
    print(f"{'':<40}{'decided':>16}{'passed':>16}{'accuracy':>16}   passed, points: bias; width")
    for number, (title, setting) in enumerate(SETTINGS.items()):
        results = [simulate(np.random.default_rng([number, run]), setting) for run in range(runs)]
        # A detector with too many false detections corrects nothing.
        defined = [r for r in results if not np.isnan(r.values[1])]
        line = f"{title:<40}"
        for score in range(3):
            before, after = (
                np.mean([r.truths[score] in getattr(r, kind)[score] for r in defined])
                for kind in ("judged", "corrected")
            )
            line += f"{before:>8.2f}->{after:>5.3f} "
        bias = np.mean([100 * (r.values[1] - r.truths[1]) for r in defined])
        width = np.mean([100 * (r.corrected[1].high - r.corrected[1].low) for r in defined])
        undefined = f"; undefined {1 - len(defined) / runs:.0%}" if len(defined) < runs else ""
        print(f"{line}  {bias:+.1f}; {width:.1f}{undefined}", flush=True)


if __name__ == "__main__":
    main()
