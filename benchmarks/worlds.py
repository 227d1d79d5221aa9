"""How often 95 % intervals hold what `render:` was set to do with drawn worlds and pairs.

    python benchmarks/worlds.py [--seeds 200]

The trials of the self-test whose images are drawings, each with other seeds: scenes are made, no
pixel is drawn, and the suite scores the truth. One line a score: truth, mean value over the seeds,
and the share of seeds whose interval holds the truth. The exit code is 1 if all intervals together
hold it in less than 95 %, up to two standard errors, or a mean is off by more than four. Seeded.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator

import numpy as np

from counterprior.eval.selftest.trials import (
    Trial,
    altered_trials,
    described_trials,
    drawn_pair_trials,
    true_outcomes,
    world_trials,
)
from counterprior.eval.suites import open_suite

TRIALS: dict[str, Callable[[], Iterator[Trial]]] = {
    "counterfactual": world_trials,
    "counterfactual_denominalized": described_trials,
    "altered_worlds": altered_trials,
    "t2i_correctness": drawn_pair_trials,
}


def planted(suite: str, trial: Trial, seeds: int) -> dict[str, tuple[float, list[float], int]]:
    """Score -> its truth, its values over the seeds, and how many intervals hold the truth."""
    found: dict[str, tuple[float, list[float], int]] = {}
    for seed in range(seeds):
        outcomes = true_outcomes(suite, trial, shift=seed + 1)
        whole = {s.name: s for s in open_suite(suite).score(outcomes) if s.group == "all"}
        for name, truth in trial.truths([outcome.case for outcome in outcomes]).items():
            low, high = whole[name].interval
            _, values, hits = found.get(name, (truth, [], 0))
            holds = low - 1e-9 <= truth <= high + 1e-9
            found[name] = truth, [*values, whole[name].value], hits + holds
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    seeds = parser.parse_args().seeds
    hits, total, off = 0, 0, False
    for suite, trials in TRIALS.items():
        for trial in trials():
            for name, (truth, values, held) in planted(suite, trial, seeds).items():
                error = np.std(values) / math.sqrt(seeds)
                off |= abs(np.mean(values) - truth) > 4 * error + 1e-9
                hits, total = hits + held, total + seeds
                print(
                    f"{suite:30}{name:30}{truth:8.3f}{np.mean(values):8.3f}{held / seeds:8.3f}",
                    flush=True,
                )
    share = hits / total
    print(f"{hits} of {total} intervals hold the truth ({share:.3f})")
    return int(off or share < 0.95 - 2 * math.sqrt(0.95 * 0.05 / total))


if __name__ == "__main__":
    raise SystemExit(main())
