"""Do intervals over trainings hold the truth, and what does Page's test see with few trainings?

    python benchmarks/replicates.py [--runs 200]

Simulates the design of `study recipes organism`: 12 pairs of 12 animals, each in two of them, both
orders of mention, 4 images of each, for 3 or 5 training seeds. Trainings, animals and pairs within
a training differ by normal amounts, in logits. First a line for each setting: how often the 95 %
interval of `over_replicates` holds the order effect of other trainings and animals, and how often
that for other animals alone does. Then, over 5 shares, how often `page_trend` calls a slope a trend
at 5 %, by the rise of the order effect per share in units of its standard deviation between
trainings. Seeded.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from counterprior.eval.stats.bootstrap import Array
from counterprior.eval.stats.clusters import cluster_interval
from counterprior.eval.stats.estimate import Estimate
from counterprior.eval.stats.replicates import over_replicates, page_trend

ANIMALS, IMAGES, SHARES = 12, 4, 5
PAIRS = [(a, (a + 1) % ANIMALS) for a in range(ANIMALS)]
BETWEEN_ANIMALS, WITHIN_TRAINING, PREFERENCE = 0.5, 0.7, 1.0
"""Standard deviations, in logits: of a pair, of a pair in one training, of an animal's own pull."""


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def truth(middle: float, between_trainings: float) -> float:
    """Order effect over all trainings and animals, in [-1, 1]."""
    sd = math.hypot(between_trainings, BETWEEN_ANIMALS, WITHIN_TRAINING, math.sqrt(2) * PREFERENCE)
    x = middle + sd * np.random.default_rng(1).normal(size=400_000)
    return float((2 * sigmoid(x) - 1).mean())


def simulate(
    rng: np.random.Generator, middle: float, between_trainings: float, trainings: int
) -> tuple[Estimate, Estimate]:
    """The order effect with its interval over trainings, and for other animals alone."""
    animals = rng.normal(0, BETWEEN_ANIMALS / math.sqrt(2), ANIMALS)
    pulls = rng.normal(0, PREFERENCE, ANIMALS)
    values, members, own = [], [], []
    for shift in rng.normal(0, between_trainings, trainings):
        signs = []
        for a, b in PAIRS:
            level = middle + shift + animals[a] + animals[b] + rng.normal(0, WITHIN_TRAINING)
            for order in (0, 1):
                share = sigmoid(level + (1 - 2 * order) * (pulls[a] - pulls[b]))
                for drawn in np.where(rng.random(IMAGES) < share, 1.0, -1.0):
                    signs.append([drawn, np.nan] if order == 0 else [np.nan, drawn])
                    members.append((a, b))
        own.append(np.nanmean(signs, axis=0).mean())
        values += signs

    def effect(means: Array) -> Array:
        return np.asarray(means.mean(axis=-1, keepdims=True))

    ends = (-1.0, 1.0)
    (alone,) = cluster_interval(np.array(values), np.array(members), ends, effect, 1_000)
    return over_replicates(alone, own, ends), alone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    print("trainings  logits  sd of trainings  held  held, other animals alone")
    for trainings in (3, 5):
        for middle in (0, 1, 3):
            for sd in (0.0, 0.5, 1.0):
                rng = np.random.default_rng([trainings, middle, int(10 * sd)])
                true = truth(middle, sd)
                pairs = [simulate(rng, middle, sd, trainings) for _ in range(runs)]
                held, alone = (
                    np.mean([true in e.interval for e in es]) for es in zip(*pairs, strict=True)
                )
                print(f"{trainings:9}  {middle:6}  {sd:15}  {held:.3f}  {alone:.3f}", flush=True)
    print("\ntrainings  rise per share, sd  called a trend")
    for trainings in (3, 5):
        for rise in (0.0, 0.25, 0.5, 0.75, 1.0):
            rng = np.random.default_rng([trainings, int(100 * rise)])
            shape = (trainings, SHARES)
            p_values = [
                page_trend(rng.normal(size=shape) + rise * np.arange(SHARES)).p_value
                for _ in range(runs)
            ]
            called = np.mean(np.array(p_values) <= 0.05)
            print(f"{trainings:9}  {rise:18}  {called:.3f}", flush=True)


if __name__ == "__main__":
    main()
