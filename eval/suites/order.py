"""Order-to-space bias: does the first-mentioned, or the left one, get its way? (OTS-Bench, Eq. 2)

A sign is +1 where the picture follows the prior (first-mentioned left; left one acts), -1 where it
does the opposite, NaN where it can't be told.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..stats.bootstrap import Array


def homogenization(with_prior: int, against: int) -> float:
    """Hom = 100 |N_L - N_R| / (N_L + N_R), in [0, 100]; NaN without valid pictures.

    An absolute value: it loses the sign and is biased upward (see `expected_homogenization`).
    """
    valid = with_prior + against
    return 100 * abs(with_prior - against) / valid if valid else math.nan


def expected_homogenization(n: int) -> float:
    """Hom that `n` fair coins give, 100 sqrt(2 / (pi n)): 4.0 at n = 400."""
    return 100 * math.sqrt(2 / (math.pi * n)) if n else math.nan


def signed_index(signs: ArrayLike) -> float:
    """D = 100 mean(sign), in [-100, 100]; |D| is Hom."""
    values = np.asarray(signs, dtype=float)
    values = values[~np.isnan(values)]
    return float(100 * values.mean()) if len(values) else math.nan


def order_and_entity_effect(means: Array) -> Array:
    """Shape (..., 2) of mean signs for A-B and B-A prompts -> order and entity effect, same shape.

    With x the mean sign of the entity mentioned first: order = (x_AB + x_BA) / 2 is what mention
    order does whatever is mentioned; entity = (x_AB - x_BA) / 2 is what A does wherever it stands.
    Both in [-1, 1].
    """
    ab, ba = means[..., 0], means[..., 1]
    return np.stack([(ab + ba) / 2, (ab - ba) / 2], axis=-1)
