"""How often the interval of a filling cell, in `study status`, misses the truth at any moment.

    python benchmarks/running.py [--runs 400]

Clusters (laws) in random order, items right or wrong with a rate of their own cluster; a share of
the wrong ones is invalid. The truth is the share right of all. Looked at after every cluster.
`as items`: if each item were a cluster. `Wilson`: the usual interval of all items, at every look.
The width is that after the last cluster.
"""

from __future__ import annotations

import argparse

import numpy as np

from counterprior.eval.core import Case, Outcome
from counterprior.eval.stats.clusters import cluster_interval
from counterprior.eval.stats.intervals import wilson
from counterprior.eval.studies.running import always_valid_interval
from counterprior.eval.suites.base import Headline, Item, Items

Clusters = list[list[Outcome]]


def items(outcomes: list[Outcome]) -> Items:
    """Items whose value is written as their prompt."""
    return {o.case.id: Item((float(o.case.prompt),), o.case.cluster) for o in outcomes}


HEADLINE = Headline("right", "higher", "", items)  # type: ignore[arg-type]


def simulated(clusters: int, most: int, truth: float, icc: float, seed: int) -> Clusters:
    rng = np.random.default_rng(seed)
    spread = (1 - icc) / icc
    drawn = []
    for number in range(clusters):
        rate = rng.beta(truth * spread, (1 - truth) * spread)
        right = rng.random(int(rng.integers(1, most + 1))) < rate
        values = np.where(right, 1.0, np.where(rng.random(len(right)) < 0.2, np.nan, 0.0))
        cases = [
            Case(f"{number}-{n}", "v", 0, 0, str(value), (f"c{number}",))
            for n, value in enumerate(values.tolist())
        ]
        drawn.append([Outcome(case) for case in cases])
    return drawn


def missed(groups: Clusters, most: int, truth: float) -> tuple[bool, float]:
    """Whether the truth was ever outside, and the last width."""
    ever, width = False, 1.0
    for number in [*range(1, 20), *range(20, len(groups) + 1, 5)]:
        low, high = always_valid_interval(HEADLINE, groups[:number], most)
        ever, width = ever or not low <= truth <= high, high - low
    return ever, width


def wilson_missed(groups: Clusters, truth: float) -> bool:
    for number in range(1, len(groups) + 1):
        values = [float(o.case.prompt) for group in groups[:number] for o in group]
        shares = [value for value in values if not np.isnan(value)]
        low, high = wilson(sum(shares), len(shares)) if shares else (0.0, 1.0)
        if not low <= truth <= high:
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    print("clusters  most  truth  icc | missed, width | as items | Wilson | fixed width")
    for clusters, most in ((30, 8), (100, 4), (300, 1)):
        for truth in (0.05, 0.5, 0.8):
            for icc in (0.1, 0.6):
                outcomes = []
                for seed in range(runs):
                    groups = simulated(clusters, most, truth, icc, seed)
                    single = [[o] for group in groups for o in group]
                    ours, width = missed(groups, most, truth)
                    values = [float(o.case.prompt) == 1 for g in groups for o in g]
                    member = [number for number, g in enumerate(groups) for _ in g]
                    (fixed,) = cluster_interval(np.array(values, float), member, (0, 1))
                    fixed_width = fixed.interval.high - fixed.interval.low
                    as_items = missed(single, 1, truth)[0]
                    outcomes.append(
                        (ours, width, as_items, wilson_missed(groups, truth), fixed_width)
                    )
                rates = np.mean(np.array(outcomes, dtype=float), axis=0)
                print(
                    f"{clusters:8} {most:5} {truth:6.2f} {icc:4.1f} | {rates[0]:6.1%} "
                    f"{rates[1]:6.2f} | {rates[2]:6.1%} | {rates[3]:6.1%} | {rates[4]:5.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
