"""How often letters of a leaderboard call equal generators different (family-wise error).

    python benchmarks/letters.py [--simulations 400] [--limit 1700] [--jobs 1]

Five generators with the same mean effect of mention order, weak or strong, make both orders of the
first pairs of `t2i_homogenization`. Each entity has an effect of its own on each generator, with a
standard deviation of 0, 0.5 and 1 logits, so that generators differ on these entities, but not on
entities in general. One line a setting: the share of simulations in which any of the ten
comparisons has a p-value below 0.05 after Holm, with its 95 % interval. At most 0.05 is promised;
if all p-values were exact, Holm's adjustment for ten comparisons of five equals would give 0.04.
Seeded.
"""

from __future__ import annotations

import argparse
import itertools
import random
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from counterprior.builders.suite import SHIPPED
from counterprior.builders.suites.t2i_homogenization import build
from counterprior.eval.results.leaderboard import paired
from counterprior.eval.stats.comparison import ALPHA, Comparison, adjust
from counterprior.eval.stats.intervals import wilson
from counterprior.eval.suites import open_suite
from counterprior.eval.suites.base import Item, Items

GENERATORS = 5
ORDERS = (0.4, 1.2)
"""Logits of following the order of mention, for an entity without an effect."""
DEVIATIONS = (0.0, 0.5, 1.0)


def generator_items(
    rng: np.random.Generator, pairs: list[tuple[str, str]], deviation: float, order: float
) -> Items:
    """Signs of both orders of each pair by one generator."""
    names = sorted({name for pair in pairs for name in pair})
    effects = dict(zip(names, deviation * rng.normal(size=len(names)), strict=True))
    logits = np.array([order + effects[a] + effects[b] for a, b in pairs])
    chance = 1 / (1 + np.exp(-logits))[:, None]
    signs = np.where(rng.random((len(pairs), 2)) < chance, 1.0, -1.0)
    return {
        number: Item(tuple(row), pair)
        for number, (row, pair) in enumerate(zip(signs.tolist(), pairs, strict=True))
    }


def any_letter_differs(
    seed: tuple[int, ...], pairs: list[tuple[str, str]], deviation: float, order: float
) -> bool:
    """Whether one of all comparisons of equal generators is below 5 % after Holm."""
    rng = np.random.default_rng(seed)
    headline = open_suite("t2i_homogenization").headline
    items = [generator_items(rng, pairs, deviation, order) for _ in range(GENERATORS)]
    comparisons = adjust(
        [
            Comparison.of(paired(items[a], items[b], headline), first=str(a), second=str(b))
            for a, b in itertools.combinations(range(GENERATORS), 2)
        ]
    )
    return any(comparison.adjusted < ALPHA for comparison in comparisons)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--limit", type=int, default=1_700, help="pairs")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    rows = build(SHIPPED, random.Random(0))
    random.Random(1).shuffle(rows)
    pairs = [(row.first.name, row.second.name) for row in rows[: options.limit]]
    print(f"{len(pairs)} pairs of {len({name for pair in pairs for name in pair})} entities")
    with ProcessPoolExecutor(options.jobs) as pool:
        settings = list(itertools.product(ORDERS, DEVIATIONS))
        for number, (order, deviation) in enumerate(settings):
            seeds = [(number, simulation) for simulation in range(options.simulations)]
            fixed = (itertools.repeat(value) for value in (pairs, deviation, order))
            count = sum(pool.map(any_letter_differs, seeds, *fixed))
            low, high = wilson(count, len(seeds))
            share = count / len(seeds)
            print(
                f"order {order}, deviation {deviation}: {share:.3f} ({low:.3f} to {high:.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
