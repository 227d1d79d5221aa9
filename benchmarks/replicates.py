"""Do intervals over trainings hold the truth, and what does Page's test see with few trainings?

    python benchmarks/replicates.py [--runs 200]

Simulates the design of `study recipes organism`: 12 pairs of 12 animals, each in two of them, both
orders of mention, 4 images of each, for 3 or 5 training seeds. Trainings, animals and pairs within
a training differ by normal amounts, in logits. First a line for each setting: how often the 95 %
interval of `over_replicates` holds the order effect of other trainings and animals, and how often
that for other animals alone does. Then, over 5 shares, how often `page_trend` calls a slope a trend
at 5 %, by the rise of the order effect per share in units of its standard deviation between
trainings. Last, for `Doses` (`jackknife_interval` with `over_replicates`), of three trainings with
60, 75 and 90 % of captions whose gains differ by a lognormal factor: how often the interval of the
gain holds that of other trainings and animals, how often the one predicted for 87.2 % holds the
order effect of one more training, how wide it is in the median, and how often the error at 75 % is
told from 0, which it is. Seeded.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from counterprior.eval.stats.bootstrap import Array
from counterprior.eval.stats.clusters import cluster_interval
from counterprior.eval.stats.estimate import Estimate
from counterprior.eval.stats.gain import Doses, fitted_log_gain
from counterprior.eval.stats.replicates import over_replicates, page_trend

ANIMALS, IMAGES, SHARES = 12, 4, 5
PAIRS = [(a, (a + 1) % ANIMALS) for a in range(ANIMALS)]
BETWEEN_ANIMALS, WITHIN_TRAINING, PREFERENCE = 0.5, 0.7, 1.0
"""Standard deviations, in logits: of a pair, of a pair in one training, of an animal's own pull."""

CAPTIONS, CORPUS = (0.6, 0.75, 0.9), 0.872
"""Shares of captions of the simulated organisms, and the one that is predicted."""


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


def log_odds(captions: float) -> float:
    return math.log(captions / (1 - captions))


def doses(rng: np.random.Generator, gain: float, sd: float, differ: float, images: int) -> Doses:
    """Three trainings of each share. sd: of the log gain between trainings; differ: of that of an
    animal, and of an animal's own pull in thirds of a logit; images: of each order of a pair."""
    animals = rng.normal(0, differ, ANIMALS)
    pulls = rng.normal(0, 3 * differ, ANIMALS)
    signs, members, trainings = [], [], []
    for training in range(3):
        for place, captions in enumerate(CAPTIONS):
            own = gain * math.exp(rng.normal(0, sd))
            for a, b in PAIRS:
                level = own * math.exp(animals[a] + animals[b]) * log_odds(captions)
                for order in (0, 1):
                    share = sigmoid(level + (1 - 2 * order) * (pulls[a] - pulls[b]))
                    block = np.full((images, 2 * len(CAPTIONS)), np.nan)
                    block[:, 2 * place + order] = np.where(rng.random(images) < share, 1.0, -1.0)
                    signs.append(block)
                    members += [(a, b)] * images
                    trainings += [training] * images
    return Doses(CAPTIONS, np.concatenate(signs), np.array(members), np.array(trainings))


def mean_share(
    rng: np.random.Generator, log_gain: float, sd: float, differ: float, captions: float
) -> float:
    """Share of images over many pairs, and over trainings if sd is not 0."""
    n = 100_000
    gains = np.exp(log_gain + math.hypot(sd, math.sqrt(2) * differ) * rng.normal(size=n))
    pulls = 3 * math.sqrt(2) * differ * rng.normal(size=n)
    return float(sigmoid(gains * log_odds(captions) + pulls).mean())


def doses_hold(
    rng: np.random.Generator, gain: float, sd: float, differ: float, images: int, runs: int
) -> Array:
    """Shape (runs, 4): whether the gain and the prediction are held, the width of the prediction in
    points, and whether there seems to be an error at 75 %."""
    shares = [mean_share(rng, math.log(gain), sd, differ, captions) for captions in CAPTIONS]
    true = float(np.exp(fitted_log_gain(shares, CAPTIONS)))
    seen = []
    for _ in range(runs):
        simulated = doses(rng, gain, sd, differ, images)
        predicted = simulated.predicted(CORPUS).interval
        one_more = rng.normal(math.log(gain), sd)
        effect = 2 * mean_share(rng, one_more, 0.0, differ, CORPUS) - 1
        seen.append(
            (
                true in simulated.gain().interval,
                effect in predicted,
                100 * predicted.width,
                0 not in simulated.error(0.75).interval,
            )
        )
    return np.array(seen, dtype=float)


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
    print("\ngain  sd of trainings  of animals  gain held  one more held  width  error told")
    for gain in (1.0, 2.0):
        for sd in (0.0, 0.2, 0.4):
            for differ in (0.0, 0.3):
                rng = np.random.default_rng([int(gain), int(10 * sd), int(10 * differ)])
                runs_seen = doses_hold(rng, gain, sd, differ, 2, runs)
                held, one_more, _, told = runs_seen.mean(axis=0)
                width = float(np.median(runs_seen[:, 2]))
                print(
                    f"{gain:4}  {sd:15}  {differ:10}  {held:9.3f}  {one_more:13.3f}  {width:5.1f}"
                    f"  {told:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
