"""Ranking of captioners by how often they name the left thing first, on the same images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ...eval.core import without_nan
from ...eval.stats.bootstrap import Array
from ...eval.stats.clusters import cluster_interval
from ...eval.stats.comparison import (
    Comparison,
    adjust,
    pairwise_p_values,
    tied_groups,
    tied_letters,
)
from .reading import SIDED
from .scores import COMPLETE, MirrorReadings


@dataclass(frozen=True)
class RankedCaptioner:
    """One line of the ranking."""

    name: str
    """Name of the captioner, unique in the run."""
    left_first: float
    """Its `left_first`, percent."""
    groups: str
    """Letters of its groups: captioners that share a letter can't be distinguished."""


@dataclass(frozen=True)
class CaptionerRanking:
    """All captioners of a run, by descending `left_first`."""

    captioners: tuple[RankedCaptioner, ...]
    """Those without a score are not ranked."""
    pairs: tuple[Comparison, ...]
    """Comparisons of every two, in percent, the higher-ranked captioner first; `n` counts images
    with wordings, `clusters` images."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        pairs = [
            {
                "first": pair.first,
                "second": pair.second,
                "difference": pair.value,
                "interval": pair.interval,
                "p_value": pair.p_value,
                "adjusted": pair.adjusted,
                "n": pair.n,
                "images": pair.clusters,
            }
            for pair in self.pairs
        ]
        plain: dict[str, Any] = without_nan({"captioners": self.captioners, "pairs": pairs})
        return plain


def rank_captioners(pairs_by_name: Mapping[str, Sequence[MirrorReadings]]) -> CaptionerRanking:
    """Ranks captioners by `left_first`, and compares every two on their shared complete readings.

    pairs_by_name: captioner -> its readings of the same images in the same wordings. An image and
    its mirror image count together, as in `left_first`, so a preference for one of the two things
    is no difference; all wordings of an image move together.
    """
    values = {name: _values(pairs) for name, pairs in pairs_by_name.items()}
    means = {n: 100 * sum(v.values()) / len(v) for n, v in values.items() if v}
    ranked = sorted(means, key=lambda name: (-means[name], name))
    pairs = adjust([_compared(values, *two) for two in combinations(ranked, 2)])
    tied = tied_groups(means, pairwise_p_values(pairs))
    return CaptionerRanking(
        tuple(RankedCaptioner(name, means[name], tied_letters(tied, name)) for name in ranked),
        tuple(pairs),
    )


def _values(pairs: Sequence[MirrorReadings]) -> dict[tuple[str, str], float]:
    """Maps (image, wording) to the share of the two images whose left thing is named first."""
    return {
        (pair.things.id, pair.wording): (SIDED[pair.original.label] + SIDED[pair.mirrored.label])
        / 2
        for pair in pairs
        if pair.label == COMPLETE
    }


def _compared(
    values: Mapping[str, Mapping[tuple[str, str], float]], first: str, second: str
) -> Comparison:
    """Compares two captioners on the images and wordings in which both name both things."""
    shared = [key for key in values[first] if key in values[second]]
    columns = np.array([[values[name][key] for name in (first, second)] for key in shared])
    images = [image for image, _ in shared]

    def difference(means: Array) -> Array:
        return means[..., :1] - means[..., 1:]

    (estimate,) = cluster_interval(columns.reshape(-1, 2), images, (0, 1), difference)
    return Comparison.of(estimate.scaled(100), first=first, second=second)
