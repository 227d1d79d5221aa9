"""Likeness in meaning of groups of altered worlds, by content words weighted by rarity."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from .lemmas import content, synonyms

SYNONYM = 0.5
"""Weight of a word that a text has by a synonym only."""


class LikePair(NamedTuple):
    """Two texts that may say the same."""

    first: str
    """Name of one text."""
    second: str
    """Name of the other; later in the order given."""
    likeness: float
    """Cosine of their weighted words, in [0, 1]."""


def nearest(texts: Mapping[str, str], count: int) -> list[LikePair]:
    """The `count` pairs of texts that are most alike, the most alike first.

    A word weighs log(texts / texts that have it); a text has the synonyms of its words at half
    their weight, where another text has them.
    """
    words = {name: set(content(text)) for name, text in texts.items()}
    spread = Counter(word for some in words.values() for word in some)
    rarity = {word: math.log(len(texts) / n) for word, n in spread.items()}
    vectors: dict[str, dict[str, float]] = {}
    for name, some in words.items():
        vector = {word: rarity[word] for word in some}
        for word in some:
            for synonym in synonyms(word):
                if synonym in rarity and synonym not in some:
                    vector[synonym] = max(vector.get(synonym, 0.0), SYNONYM * rarity[word])
        length = math.sqrt(math.fsum(value**2 for value in vector.values())) or 1.0
        vectors[name] = {word: vector[word] / length for word in sorted(vector)}
    holders: dict[str, list[tuple[str, float]]] = defaultdict(list)
    alike: dict[tuple[str, str], float] = defaultdict(float)
    for name, vector in vectors.items():
        for word, value in vector.items():
            for synonym, theirs in holders[word]:
                alike[synonym, name] += value * theirs
            holders[word].append((name, value))
    order = sorted(alike, key=lambda pair: (-alike[pair], pair))[:count]
    return [LikePair(*pair, min(alike[pair], 1.0)) for pair in order]
