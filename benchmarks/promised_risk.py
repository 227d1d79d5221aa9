"""How often a promised risk is broken, on simulated audits whose risk is known.

    python benchmarks/promised_risk.py [--runs 1000]

A checker errs the less the surer it is. `audit calibrate --risk 0.1` chooses the least confidence
that it accepts by people's labels. A line has the share of simulations in which the true risk of
the choice is above 0.1 (promised: at most delta, 0.1), how often a setting was chosen, and how
often the threshold that has a risk of 0.1 on the same labels is broken. Seeded.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from counterprior.eval.people.checker_settings import FINE_TAUS, SPARE
from counterprior.eval.stats.risk_control import exceeds_p_value, in_sequence, least_items

RISK = DELTA = 0.1
UNLABELED = 300
SLOPES = (0.2, 0.35, 0.6, 1.0)
LABELED = (60, 200, 600)


def errors(confidence: NDArray[np.float64], slope: float) -> NDArray[np.float64]:
    """Probability that a verdict is wrong."""
    return np.clip(slope * (1 - confidence) ** 2 + 0.02, 0, 1)


def simulate(
    rng: np.random.Generator, n: int, slope: float, true: dict[float, float]
) -> tuple[float, float]:
    """True risk of the promised choice, NaN without one, and of the choice on the same labels."""
    confidence, spare = rng.random(n), rng.random(UNLABELED)
    wrong = rng.random(n) < errors(confidence, slope)
    rates = {tau: float((spare >= tau).mean()) for tau in FINE_TAUS}
    begin = SPARE * least_items(RISK, DELTA) / n
    sequence = sorted((t for t in FINE_TAUS if rates[t] >= begin), key=lambda t: (rates[t], -t))
    counts = [(int(wrong[confidence >= t].sum()), int((confidence >= t).sum())) for t in sequence]
    safe = in_sequence([exceeds_p_value(*count, RISK) for count in counts], DELTA)
    fitting = [t for t in FINE_TAUS if (confidence >= t).any()]
    fitting = [t for t in fitting if wrong[confidence >= t].mean() <= RISK]
    return (
        true[sequence[safe[-1]]] if safe else np.nan,
        true[min(fitting)] if fitting else np.nan,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=1_000)
    runs = parser.parse_args().runs
    grid = (np.arange(200_000) + 0.5) / 200_000
    print("labels  slope  chosen  broken  on the same labels")
    for n in LABELED:
        for slope in SLOPES:
            true = {tau: float(errors(grid[grid >= tau], slope).mean()) for tau in FINE_TAUS}
            rng = np.random.default_rng([n, int(100 * slope)])
            promised, fitted = np.array([simulate(rng, n, slope, true) for _ in range(runs)]).T
            chosen, broken = np.mean(~np.isnan(promised)), np.mean(promised > RISK)
            print(f"{n:6}  {slope:5}  {chosen:6.3f}  {broken:6.3f}  {np.mean(fitted > RISK):6.3f}")


if __name__ == "__main__":
    main()
