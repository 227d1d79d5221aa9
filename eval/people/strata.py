"""Draws equal shares of strata, so that rare ones are seen."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Stratum = tuple[str, ...]


def stratified(
    strata: Mapping[Stratum, Sequence[Item]],
    n: int,
    rng: random.Random,
    choose: Callable[[Sequence[Item], int], Sequence[Item]],
) -> list[tuple[Item, float]]:
    """Draws `n` items, equal shares of the strata; each with its weight (items it represents).

    What a small stratum can't fill goes to the others, so that rare ones are seen. choose: picks
    that many items of one stratum.
    """
    sizes = {stratum: len(strata[stratum]) for stratum in sorted(strata)}
    shares = _equal_shares(sizes, n, rng)
    return [
        (item, size / shares[stratum])
        for stratum, size in sizes.items()
        for item in choose(strata[stratum], shares[stratum])
    ]


def _equal_shares(sizes: Mapping[Stratum, int], n: int, rng: random.Random) -> dict[Stratum, int]:
    """Stratum -> its share of `n`."""
    share = dict.fromkeys(sizes, 0)
    remaining = n
    while remaining:
        open_ = [name for name in sizes if share[name] < sizes[name]]
        each, remainder = divmod(remaining, len(open_))
        extra = set(rng.sample(open_, remainder)) if not each else set()
        for name in open_:
            added = min(each or int(name in extra), sizes[name] - share[name])
            share[name] += added
            remaining -= added
    return share
