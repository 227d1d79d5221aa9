"""Biases of the renderer as pure functions, so that a self-test knows the truth."""

from __future__ import annotations

import random


def preference(entity: str, sd: float) -> float:
    """An entity's own logit of standing left: from N(0, sd), the same in every image.

    >>> preference("cat", 0.0)
    0.0
    """
    return random.Random(f"preference/{entity}").gauss(0, sd) if sd else 0.0
