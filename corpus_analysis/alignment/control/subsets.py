"""Rates of first-mentioned things on the left, by the choice of pairs and boxes.

The rate depends on that choice more than on anything else, so all of them are reported together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ....eval.stats.bootstrap import Array
from ....eval.stats.clusters import cluster_interval
from ....eval.stats.intervals import NOTHING, Interval
from ..rates import Rate, group_of_people, group_of_words
from .boxed_pairs import BoxedPair, side


@dataclass(frozen=True)
class Subset:
    """One way to choose pairs and boxes."""

    says: str
    """Its description, for a table."""
    takes: Callable[[BoxedPair], bool]
    """Whether a pair counts."""
    largest: bool = False
    """Whether each class gets its largest box, whatever the words say."""
    one_caption: bool = False
    """Whether only one caption of each image counts."""


SUBSETS: dict[str, Subset] = {
    "one_caption": Subset(
        "one caption an image; the largest of several", lambda pair: True, True, True
    ),
    "all": Subset("all captions; the largest of several", lambda pair: True, True),
    "matched": Subset("boxes that the words single out", lambda pair: not pair.guessed),
    "single": Subset("one instance of each", lambda pair: pair.single),
    "disjoint": Subset(
        "one instance of each, no column shared", lambda pair: pair.single and pair.disjoint
    ),
    "beside": Subset(
        "boxes that the words single out, apart and side by side",
        lambda pair: not pair.guessed and pair.beside,
    ),
}
"""From all pairs to those that the layout stage would accept."""


@dataclass(frozen=True, kw_only=True)
class SubsetRate(Rate):
    """The rate of a subset, with the counts that qualify it."""

    level: int
    """Excluded pairs, in which neither thing is further left."""
    guessed: int
    """Pairs among `n` in which a box is merely the largest of several: a guess."""
    images: int
    """Images of the pairs that count."""


def subset_rate(pairs: Iterable[BoxedPair], subset: Subset, seed: int = 0) -> SubsetRate:
    """Computes the rate of one subset. seed: chooses the caption of an image, if one counts."""
    members = [pair for pair in pairs if subset.takes(pair)]
    if subset.one_caption:
        chosen = _one_caption(members, seed)
        members = [pair for pair in members if chosen[pair.image] == pair.caption]
    sides = [_side(pair, subset.largest) for pair in members]
    counted = [(pair, s) for pair, s in zip(members, sides, strict=True) if s != 0.5]
    images = [pair.image for pair, _ in counted]
    return SubsetRate.of(
        np.array([s for _, s in counted]),
        interval_over_clusters,
        entities=[pair.entities for pair, _ in counted],
        images=images,
        counts={
            "level": len(members) - len(counted),
            "guessed": sum(_is_guess(pair, subset) for pair, _ in counted),
            "images": len(set(images)),
        },
    )


def subset_rates(pairs: Sequence[BoxedPair], seed: int = 0) -> dict[str, SubsetRate]:
    """Computes the rate of every subset."""
    return {name: subset_rate(pairs, subset, seed) for name, subset in SUBSETS.items()}


def group_rates(pairs: Sequence[BoxedPair]) -> dict[str, dict[str, SubsetRate]]:
    """Computes the rates of `matched` by layout words, people and pattern of the caption."""
    keys: Mapping[str, Callable[[BoxedPair], str]] = {
        "layout words": lambda pair: group_of_words(pair.words),
        "people": lambda pair: group_of_people(pair.pair.first.category, pair.pair.second.category),
        "pattern": lambda pair: pair.pair.pattern,
    }
    by_key: dict[str, dict[str, SubsetRate]] = {}
    for name, key in keys.items():
        groups: dict[str, list[BoxedPair]] = {}
        for pair in pairs:
            groups.setdefault(key(pair), []).append(pair)
        rates = {group: subset_rate(groups[group], SUBSETS["matched"]) for group in sorted(groups)}
        by_key[name] = {group: rate for group, rate in rates.items() if rate.n}
    return by_key


def interval_over_clusters(
    values: Array, clusters: Sequence[str], ends: tuple[float, float] = (0.0, 1.0)
) -> Interval:
    """95 % interval of a mean of values within `ends`, also for few clusters; NaN below two."""
    if len(set(clusters)) < 2:
        return NOTHING
    (estimate,) = cluster_interval(values, np.array(clusters), ends)
    return Interval(*estimate.interval)


def _is_guess(pair: BoxedPair, subset: Subset) -> bool:
    """Whether a box is merely the largest of several."""
    if subset.largest:
        return pair.first.instances + pair.second.instances > 2
    return pair.guessed


def _side(pair: BoxedPair, largest: bool) -> float:
    if largest:
        return side(pair.first.largest, pair.second.largest)
    return side(pair.first.box, pair.second.box)


def _one_caption(pairs: Iterable[BoxedPair], seed: int) -> dict[str, int]:
    """Maps each image to the caption with the smallest seeded digest, whatever their order."""
    captions: dict[str, set[int]] = {}
    for pair in pairs:
        captions.setdefault(pair.image, set()).add(pair.caption)
    return {
        image: min(numbers, key=lambda number: _digest(f"{seed}/{image}/{number}"))
        for image, numbers in captions.items()
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
