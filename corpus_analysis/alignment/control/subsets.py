"""How often the first-mentioned stands left, by which pairs count and which boxes they get.

The rate depends on that choice more than on anything else, so all of them are reported together.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ....eval.stats.clusters import cluster_interval
from ....eval.stats.intervals import NOTHING, Interval, wilson
from ..rates import group_of_people, group_of_words
from .boxed_pairs import BoxedPair, side


@dataclass(frozen=True)
class Subset:
    """One way to choose pairs and boxes."""

    says: str
    """What it is, for a table."""
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


@dataclass(frozen=True)
class LeftFirst:
    """The share of pairs whose first-mentioned thing is on the left."""

    aligned: int
    """Pairs whose first-mentioned thing is on the left."""
    n: int
    """Pairs that count."""
    level: int
    """Pairs left out, as neither is further left."""
    guessed: int
    """Of `n`, pairs in which a box is only the largest of several: a guess."""
    images: int
    """Images that they are of."""
    rate: float
    """`aligned / n`; NaN if n is 0."""
    wilson: Interval
    """95 % Wilson interval, as if pairs were independent."""
    by_image: Interval
    """95 % interval over images; NaN below two."""
    by_pair: Interval
    """95 % interval over pairs of entities; NaN below two."""


def left_first(pairs: Iterable[BoxedPair], subset: Subset, seed: int = 0) -> LeftFirst:
    """The rate of one subset. seed: which caption of an image counts, where only one does."""
    taken = [pair for pair in pairs if subset.takes(pair)]
    if subset.one_caption:
        chosen = _one_caption(taken, seed)
        taken = [pair for pair in taken if chosen[pair.image] == pair.caption]
    sides = [_side(pair, subset.largest) for pair in taken]
    counted = [(pair, s) for pair, s in zip(taken, sides, strict=True) if s != 0.5]
    values = np.array([s for _, s in counted])
    aligned, n = int(values.sum()), len(counted)
    return LeftFirst(
        aligned=aligned,
        n=n,
        level=len(taken) - n,
        guessed=sum(
            pair.guessed if not subset.largest else pair.first.instances + pair.second.instances > 2
            for pair, _ in counted
        ),
        images=len({pair.image for pair, _ in counted}),
        rate=aligned / n if n else math.nan,
        wilson=wilson(aligned, n),
        by_image=_clustered(values, [pair.image for pair, _ in counted]),
        by_pair=_clustered(values, [pair.entities for pair, _ in counted]),
    )


def subsets(pairs: Sequence[BoxedPair], seed: int = 0) -> dict[str, LeftFirst]:
    """The rate of every subset."""
    return {name: left_first(pairs, subset, seed) for name, subset in SUBSETS.items()}


def groups(pairs: Sequence[BoxedPair]) -> dict[str, dict[str, LeftFirst]]:
    """The rates of `matched` by what is said: layout words, people, pattern."""
    keys: Mapping[str, Callable[[BoxedPair], str]] = {
        "layout words": lambda pair: group_of_words(pair.words),
        "people": lambda pair: group_of_people(pair.pair.first.category, pair.pair.second.category),
        "pattern": lambda pair: pair.pair.pattern,
    }
    found: dict[str, dict[str, LeftFirst]] = {}
    for name, key in keys.items():
        parts: dict[str, list[BoxedPair]] = {}
        for pair in pairs:
            parts.setdefault(key(pair), []).append(pair)
        rates = {part: left_first(parts[part], SUBSETS["matched"]) for part in sorted(parts)}
        found[name] = {part: rate for part, rate in rates.items() if rate.n}
    return found


def _side(pair: BoxedPair, largest: bool) -> float:
    if largest:
        return side(pair.first.largest, pair.second.largest)
    return side(pair.first.box, pair.second.box)


def _one_caption(pairs: Iterable[BoxedPair], seed: int) -> dict[str, int]:
    """Image -> the caption with the least seeded digest, so that order changes nothing."""
    captions: dict[str, set[int]] = {}
    for pair in pairs:
        captions.setdefault(pair.image, set()).add(pair.caption)
    return {
        image: min(some, key=lambda number: _digest(f"{seed}/{image}/{number}"))
        for image, some in captions.items()
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _clustered(values: np.ndarray, clusters: Sequence[str]) -> Interval:
    if len(set(clusters)) < 2:
        return NOTHING
    (estimate,) = cluster_interval(values, np.array(clusters), (0.0, 1.0))
    return Interval(*estimate.interval)
