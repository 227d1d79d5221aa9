"""What a race saves: images until the best of three is known, against a fixed number and UCB.

    python benchmarks/race.py [--runs 100]

Three generators, right or wrong on shared items (half of the time alike), two of them equal and one
better by the gap. Against a fixed number of images, as a paired test at alpha / 2 plans it:
`known` for this very gap (which nobody knows beforehand) at 80 % and at 99 % power, `least` for the
smallest gap that matters (the first row's) at 80 %. UCB is OPSE's, 103 pulls of five images.

Then how often the best of two is dropped at alpha .05 where items come in clusters (laws), each of
which has an effect of its own on each generator: two generators that are equally good over all
laws, so that each of them is a best one. `as items`: if the clusters were not known.

Last what `--items` saves: images of two generators until the better one is known, drawn alike and
by the information of a model of items, whose difficulties have this standard deviation (logits).
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


def informed(spread: float, gap: float, seed: int, known: bool) -> RaceResult:
    """Two generators whose abilities differ by the gap, on 3,000 items of a 2PL model."""
    rng = np.random.default_rng(seed)
    difficulties, slopes = spread * rng.normal(size=3_000), 1 + 0.3 * rng.normal(size=3_000)

    def chance(abilities: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(difficulties - slopes * abilities[:, None]))

    table = (rng.random((2, 3_000)) < chance(np.array([0, gap]))).astype(float)
    names = [f"{number:05}" for number in range(3_000)]
    usual = chance(np.linspace(-1.5, 1.5, 7))
    information = dict(zip(names, (2 * usual * (1 - usual)).mean(axis=0).tolist(), strict=True))
    return race(
        ["a", "b"],
        names,
        lambda name, item: float(table["ab".find(name), int(item)]),
        RaceSettings(seed=seed),
        information=information if known else None,
    )


def print_informed(runs: int) -> None:
    print("\nspread   gap | images (median), a dropped: drawn alike | by information")
    for spread in (1.5, 2.5, 4.0):
        for gap in (0.0, 0.4, 0.8, 2.0):
            shares = []
            for known in (False, True):
                results = [informed(spread, gap, seed, known) for seed in range(runs)]
                images = np.median([sum(result.images.values()) for result in results])
                dropped = np.mean(["a" not in result.leaders for result in results])
                shares.append(f"{images:6,.0f} {dropped:6.1%}")
            print(f"{spread:6.1f} {gap:5.1f} | {' | '.join(shares)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--clustered-runs", type=int, default=400)
    arguments = parser.parse_args()
    runs = arguments.runs
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
    print_clustered(arguments.clustered_runs)
    print_informed(runs)


def clustered(clusters: int, items: int, sd: float, gap: float, seed: int) -> np.ndarray:
    """Shape (2, clusters * items): right or wrong, with logit effects of each cluster."""
    rng = np.random.default_rng(seed)
    effects = sd * rng.normal(size=(2, clusters, 1)) + np.array([0, gap])[:, None, None]
    draws = rng.random((2, clusters, items)) < 1 / (1 + np.exp(-effects))
    return draws.reshape(2, -1).astype(float)


def raced_clusters(table: np.ndarray, items: int, seed: int, known: bool = True) -> RaceResult:
    names = [f"{number:05}" for number in range(table.shape[1])]
    members = {name: f"law{number // items:03}" for number, name in enumerate(names)}
    return race(
        ["a", "b"],
        names,
        lambda name, item: float(table["ab".find(name), int(item)]),
        RaceSettings(seed=seed),
        clusters=members if known else None,
    )


def print_clustered(runs: int) -> None:
    print("\nclusters x items   sd | best dropped: by clusters, as items")
    for clusters, items in ((30, 40), (20, 50), (100, 10), (1_000, 1)):
        for sd in (0.5, 1.0, 3.0):
            shares = []
            for known in (True, False):
                dropped = 0
                for seed in range(runs):
                    table = clustered(clusters, items, sd, 0.0, seed)
                    dropped += "a" not in raced_clusters(table, items, seed, known).leaders
                shares.append(f"{dropped / runs:6.1%}")
            print(f"{clusters:5} x {items:2} {sd:10.1f} | {' '.join(shares)}", flush=True)


if __name__ == "__main__":
    main()
