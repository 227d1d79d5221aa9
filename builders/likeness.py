"""Which groups of the altered worlds are alike in meaning: by content words, rare ones more."""

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
            for other in synonyms(word):
                if other in rarity and other not in some:
                    vector[other] = max(vector.get(other, 0.0), SYNONYM * rarity[word])
        length = math.sqrt(math.fsum(value**2 for value in vector.values())) or 1.0
        vectors[name] = {word: vector[word] / length for word in sorted(vector)}
    holders: dict[str, list[tuple[str, float]]] = defaultdict(list)
    alike: dict[tuple[str, str], float] = defaultdict(float)
    for name, vector in vectors.items():
        for word, value in vector.items():
            for other, theirs in holders[word]:
                alike[other, name] += value * theirs
            holders[word].append((name, value))
    order = sorted(alike, key=lambda pair: (-alike[pair], pair))[:count]
    return [LikePair(*pair, min(alike[pair], 1.0)) for pair in order]
