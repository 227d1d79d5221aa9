"""What the bank still lacks: quotas by domain and difficulty, minus what it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..pairs import KnownPair

DIFFICULTIES = ("obvious", "subtle", "tricky")

Gaps = dict[str, dict[str, int]]
"""Domain -> difficulty -> missing pairs, 0 if the quota is met."""


def gaps(domains: Iterable[str], pairs: Iterable[KnownPair], target: int) -> Gaps:
    """How many pairs each cell lacks of an equal share of `target`, rounded up.

    >>> known = KnownPair("i", "maps", "subtle", left="a", right="b", context="c")
    >>> gaps(["maps"], [known], 4)
    {'maps': {'obvious': 2, 'subtle': 1, 'tricky': 2}}
    """
    names = sorted(domains)
    quota = -(-target // (len(names) * len(DIFFICULTIES)))
    there = Counter((pair.domain, pair.difficulty) for pair in pairs)
    return {domain: {d: max(0, quota - there[domain, d]) for d in DIFFICULTIES} for domain in names}


def describe(found: Gaps) -> str:
    """The gaps as lines for a prompt, the emptiest domain first."""
    order = sorted(found.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    return "\n".join(
        f"- {domain}: " + ", ".join(f"{cell[d]} {d}" for d in DIFFICULTIES)
        for domain, cell in order
    )
