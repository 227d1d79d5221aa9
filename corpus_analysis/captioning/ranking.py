"""Captioners against each other: who names the left one first more often, on the same images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ...eval.stats.bootstrap import Array
from ...eval.stats.clusters import cluster_interval
from ...eval.stats.comparison import holm_of_defined, tied_groups, tied_letters
from ...eval.stats.intervals import Interval
from .reading import SIDED
from .scores import COMPLETE, BothSides


@dataclass(frozen=True)
class RankedCaptioner:
    """One line of the ranking."""

    name: str
    """Of the captioner, unique in the run."""
    left_first: float
    """Its `left_first`, percent."""
    groups: str
    """Letters of the groups that it is in: two that share one can't be told apart."""


@dataclass(frozen=True)
class ComparedCaptioners:
    """Two captioners on the images and wordings of which both have named both things."""

    first: str
    """The one that names the left one first more often over all that it has told."""
    second: str
    difference: float
    """`left_first` of the first less that of the second, percent."""
    interval: Interval
    """95 %, over images."""
    p_value: float
    """Two-sided, against no difference."""
    adjusted: float
    """The same after Holm, over all pairs of captioners."""
    n: int
    """Images with wordings that both have told in full."""
    images: int
    """How many different images those are."""


@dataclass(frozen=True)
class CaptionerRanking:
    """All captioners of a run, the one that names the left one first most often at the top."""

    captioners: tuple[RankedCaptioner, ...]
    """Those without a score are not ranked."""
    pairs: tuple[ComparedCaptioners, ...]
    """Every two of them."""


def rank_captioners(told: Mapping[str, Sequence[BothSides]]) -> CaptionerRanking:
    """Every captioner by `left_first`, and every two of them on what both have told in full.

    told: name -> what it said of the same images in the same wordings. An image and its mirror
    image count together, as in `left_first`, so a preference for one of the two things is no
    difference; all wordings of an image move together.
    """
    values = {name: _values(pairs) for name, pairs in told.items()}
    means = {n: 100 * sum(v.values()) / len(v) for n, v in values.items() if v}
    ranked = sorted(means, key=lambda name: (-means[name], name))
    pairs = [_compared(values, *two) for two in combinations(ranked, 2)]
    adjusted = holm_of_defined([pair.p_value for pair in pairs])
    pairs = [replace(pair, adjusted=value) for pair, value in zip(pairs, adjusted, strict=True)]
    # Two that share no image were not told apart.
    differ = {(p.first, p.second): 1.0 if math.isnan(p.adjusted) else p.adjusted for p in pairs}
    tied = tied_groups(means, differ)
    return CaptionerRanking(
        tuple(RankedCaptioner(name, means[name], tied_letters(tied, name)) for name in ranked),
        tuple(pairs),
    )


def _values(pairs: Sequence[BothSides]) -> dict[tuple[str, str], float]:
    """(Image, wording) -> share of an image and its mirror image whose left one is named first."""
    return {
        (pair.things.id, pair.wording): (SIDED[pair.found.label] + SIDED[pair.mirrored.label]) / 2
        for pair in pairs
        if pair.label == COMPLETE
    }


def _compared(
    values: Mapping[str, Mapping[tuple[str, str], float]], first: str, second: str
) -> ComparedCaptioners:
    shared = [key for key in values[first] if key in values[second]]
    columns = np.array([[values[name][key] for name in (first, second)] for key in shared])
    images = [image for image, _ in shared]

    def difference(means: Array) -> Array:
        return means[..., :1] - means[..., 1:]

    (found,) = cluster_interval(columns.reshape(-1, 2), images, (0, 1), difference)
    return ComparedCaptioners(
        first=first,
        second=second,
        difference=100 * found.value,
        interval=found.interval.scaled(100),
        p_value=found.p_value,
        adjusted=math.nan,
        n=len(shared),
        images=len(set(images)),
    )
