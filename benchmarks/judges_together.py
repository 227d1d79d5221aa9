"""One truth from several judges and people, on simulated images whose truth is known.

    python benchmarks/judges_together.py [--runs 200] [--jobs 2]

Three judges are right on 90, 80 and 70 % of the images, call up to 15 % of the wrong ones invalid,
and people, who label some images at random, are wrong on 5 %. A line has the bias, error (RMSE) and
coverage of the 95 % interval of each way to the share of right images: the best judge alone, people
alone, the best judge corrected by people (PPI++), the latent class of all, and a judge corrected by
gold images on which it errs as often. Seeded.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from numpy.typing import NDArray

from counterprior.eval.results.latent import JUDGE_PRIOR, PEOPLE_PRIOR
from counterprior.eval.stats.clusters import cluster_interval
from counterprior.eval.stats.correction import by_error_rates, ppi
from counterprior.eval.stats.estimate import Estimate
from counterprior.eval.stats.latent import MISSING, latent_classes, rater_prior

Labels = NDArray[np.intp]
Rates = NDArray[np.float64]
VALUES = [1.0, 0.0, np.nan]
"""Values of right, wrong and invalid images."""
SHARES = ((0.3, 0.6, 0.1), (0.08, 0.82, 0.1), (0.7, 0.25, 0.05))
SIZES = ((200, 1, 0.0), (400, 4, 0.5))
"""Images, images of a cluster, correlation within it."""
LABELED = (0, 20, 100)
GOLD = 57
"""Gold pairs, of two right, two swapped and three other images each."""


def rates(accuracy: float, abstains: tuple[float, float]) -> Rates:
    table = np.array([[accuracy, 1 - accuracy, 0], [1 - accuracy, accuracy, 0], [0.15, 0.15, 0.7]])
    for truth, share in enumerate(abstains):
        table[truth] *= 1 - share
        table[truth, 2] = share
    return table


JUDGES = [rates(0.9, (0.02, 0.15)), rates(0.8, (0.05, 0.1)), rates(0.7, (0.0, 0.1))]
PEOPLE = np.array([[0.95, 0.04, 0.01], [0.04, 0.95, 0.01], [0.03, 0.02, 0.95]])


def drawn(rng: np.random.Generator, truth: Labels, table: Rates) -> Labels:
    return np.asarray((rng.random(len(truth))[:, None] > table[truth].cumsum(axis=1)).sum(axis=1))


def signs(labels: Labels) -> Rates:
    return np.array(VALUES)[labels]


Setting = tuple[tuple[float, float, float], tuple[int, int, float], int]


def simulate(task: tuple[Setting, int]) -> dict[str, tuple[float, float]]:
    """Way -> its error, and whether its interval holds the truth; NaN without an interval."""
    (shares, (n, size, correlation), labeled), seed = task
    rng = np.random.default_rng([seed, n, labeled, int(1000 * shares[0])])
    clusters = np.arange(n) // size
    shared = rng.choice(3, n // size, p=shares)[clusters]
    copied = rng.random(n) < np.sqrt(correlation)
    truth = np.where(copied, shared, rng.choice(3, n, p=shares))
    answers = [drawn(rng, truth, table) for table in JUDGES]
    people = np.full(n, MISSING)
    chosen = rng.choice(n, labeled, replace=False)
    people[chosen] = drawn(rng, truth[chosen], PEOPLE)
    best, unlabeled = answers[0], np.setdiff1d(np.arange(n), chosen)
    estimates = {"best judge": mean(signs(best), clusters)}
    gold = [
        (drawn(rng, np.full(GOLD * each, k), JUDGES[0]), np.arange(GOLD * each) // each)
        for k, each in enumerate((2, 2, 3))
    ]
    estimates["gold images"] = by_error_rates(best, clusters, gold, VALUES, seed)
    priors = [rater_prior(3, *JUDGE_PRIOR)] * 3
    if labeled:
        answers.append(people)
        priors.append(rater_prior(3, *PEOPLE_PRIOR))
        estimates["people"] = mean(signs(people[chosen]), clusters[chosen])
        estimates["PPI++"] = ppi(
            signs(best[unlabeled]),
            signs(best[chosen]),
            signs(people[chosen]),
            (0, 1),
            clusters=np.concatenate([clusters[chosen], clusters[unlabeled]]),
        )
    table = np.column_stack(answers)
    latent = latent_classes(table, np.zeros(n, int), clusters, np.stack(priors), seed=seed)
    estimates["latent class"] = latent.mean(0, VALUES, n, n // size)
    rate = shares[0] / (shares[0] + shares[1])
    return {
        way: (e.value - rate, float(e.interval.low <= rate <= e.interval.high))
        for way, e in estimates.items()
    }


def mean(values: Rates, clusters: Labels) -> Estimate:
    return cluster_interval(values, clusters, (0, 1), resamples=200)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    print(f"{'right':>6} {'n':>4} {'size':>4} {'labels':>6}  way            bias   RMSE  coverage")
    with ProcessPoolExecutor(options.jobs) as pool:
        for setting in itertools.product(SHARES, SIZES, LABELED):
            tasks = [(setting, seed) for seed in range(options.runs)]
            ways = defaultdict(list)
            for result in pool.map(simulate, tasks, chunksize=5):
                for way, values in result.items():
                    ways[way].append(values)
            (shares, (n, size, _), labeled) = setting
            for way, values in ways.items():
                errors, held = np.array(values).T
                print(
                    f"{shares[0] / (shares[0] + shares[1]):6.3f} {n:4} {size:4} {labeled:6}  "
                    f"{way:<12} {np.nanmean(errors):+.3f}  {np.sqrt(np.nanmean(errors**2)):.3f}  "
                    f"{held.mean():.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
