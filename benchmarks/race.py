"""What a race saves: images until the best of three is known, against a fixed number and UCB.

    python benchmarks/race.py [--runs 100]

Three generators, right or wrong on shared items (half of the time alike), two of them equal and one
better by the gap. Against a fixed number of images, as a paired test at alpha / 2 plans it:
`known` for this very gap (which nobody knows beforehand) at 80 % and at 99 % power, `least` for the
smallest gap that matters (the first row's) at 80 %. UCB is OPSE's, 103 pulls of five images.
"""

from __future__ import annotations

import argparse

import numpy as np

from counterprior.eval.stats.comparison import paired_items
from counterprior.eval.studies.race import RaceResult, RaceSettings, race

GAPS = (0.02, 0.05, 0.10, 0.40)
ITEMS = 25_000
BASE = 0.3


def simulated(gap: float, seed: int) -> np.ndarray:
    """Shape (3, ITEMS), 1 right and 0 wrong."""
    rng = np.random.default_rng(seed)
    means = np.array([BASE, BASE, BASE + gap])
    alike = rng.random((3, ITEMS)) < 0.5
    draws = np.where(alike, rng.random(ITEMS), rng.random((3, ITEMS)))
    return (draws < means[:, None]).astype(float)


def raced(table: np.ndarray, settings: RaceSettings) -> RaceResult:
    items = [f"{number:05}" for number in range(ITEMS)]
    names = ["a", "b", "best"]
    return race(names, items, lambda name, item: float(table["ab".find(name), int(item)]), settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    ours, fixed = "gap    race: median (90 %)   right  open", "known 80 %   99 % |  least: saved"
    print(f"{ours} | {fixed} | ucb: images  right")
    least = 0
    for gap in GAPS:
        images, right, undecided, bandit, spent = [], 0, 0, 0, []
        discordance = float(np.mean(simulated(gap, 0)[2] != simulated(gap, 0)[0]))
        known, surely = (3 * paired_items(gap, discordance, 0.05 / 2, p) for p in (0.8, 0.99))
        least = least or known
        for seed in range(runs):
            table = simulated(gap, seed)
            found = raced(table, RaceSettings(seed=seed))
            images.append(sum(found.images.values()))
            right += found.leaders == ("best",)
            undecided += len(found.leaders) > 1
            other = raced(table, RaceSettings("ucb", seed=seed))
            bandit += other.leaders == ("best",)
            spent.append(sum(other.images.values()))
        middle, most = np.median(images), np.quantile(images, 0.9)
        ours = f"{middle:12,.0f} ({most:7,.0f})  {right / runs:5.0%} {undecided / runs:5.0%}"
        theirs = f"{np.mean(spent):12,.0f}  {bandit / runs:5.0%}"
        fixed = f"{known:10,} {surely:6,} | {1 - middle / least:13.0%}"
        print(f"{gap:.2f}  {ours} | {fixed} | {theirs}", flush=True)


if __name__ == "__main__":
    main()
