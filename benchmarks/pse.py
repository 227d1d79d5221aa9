"""How fast PSE is: against the direct double sum and against projection through torch.

    python benchmarks/pse.py

Prints ratios, measured in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from counterprior.eval.geometry.pse import pse

SIDE = 1024


def ellipse(rng: np.random.Generator) -> np.ndarray:
    """A filled ellipse at a random place, shape (SIDE, SIDE)."""
    (cy, cx), (ry, rx) = rng.uniform(200, 824, 2), rng.uniform(60, 190, 2)
    y, x = np.ogrid[:SIDE, :SIDE]
    return ((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 <= 1


def double_sum(a: np.ndarray, b: np.ndarray) -> float:
    """Eq. 2 and 5 as they are written: for every two columns, whichever lies before the other."""
    p, q = a.sum(axis=0) / a.sum(), b.sum(axis=0) / b.sum()
    signed = 0.0
    for i in range(SIDE):
        for j in range(SIDE):
            if i < j:
                signed += p[i] * q[j]
            elif i > j:
                signed -= p[i] * q[j]
    return max(0.0, signed)


def outer_sum(a: np.ndarray, b: np.ndarray) -> float:
    """The same with the double sum as a matrix."""
    p, q = a.sum(axis=0) / a.sum(), b.sum(axis=0) / b.sum()
    weights = np.outer(p, q)
    return max(0.0, float(np.triu(weights, 1).sum() - np.tril(weights, -1).sum()))


def through_torch(a: np.ndarray, b: np.ndarray) -> float:
    """One pair at a time: both projections of both masks in torch, then cumulative sums."""
    import torch

    x, y = [], []
    for mask in (a, b):
        tensor = torch.from_numpy(mask).float()
        columns, rows = tensor.sum(dim=0), tensor.sum(dim=1)
        x.append(columns / columns.sum())
        y.append(rows / rows.sum())
    ahead = (x[0] * torch.cumsum(x[1], 0)).sum()
    behind = (x[1] * torch.cumsum(x[0], 0)).sum()
    return float(torch.clamp(behind - ahead, min=0))


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Median of several runs."""
    work()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = ellipse(rng), ellipse(rng)
    ours = float(pse(a, b, "left_of"))
    for other in (double_sum, outer_sum, through_torch):
        assert abs(other(a, b) - ours) < 1e-5, other.__name__
    mine = seconds(lambda: pse(a, b, "left_of"), 200)
    print(f"PSE of {SIDE} x {SIDE} masks: {1e3 * mine:.3f} ms")
    for other, repeats in ((double_sum, 3), (outer_sum, 20), (through_torch, 20)):
        print(f"  {seconds(lambda f=other: f(a, b), repeats) / mine:10.0f} x  {other.__name__}")


if __name__ == "__main__":
    main()
