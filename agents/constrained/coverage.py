"""Pairs that the bank still lacks: quotas by domain, minus the pairs present."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..pairs import KnownPair

Gaps = dict[str, int]
"""Domain -> missing pairs, 0 if the quota is met."""


def gaps(domains: Iterable[str], pairs: Iterable[KnownPair], target: int) -> Gaps:
    """How many pairs each domain lacks of an equal share of `target`, rounded up.

    >>> known = KnownPair("i", "maps", left="a", right="b", context="c")
    >>> gaps(["maps", "games"], [known], 4)
    {'games': 2, 'maps': 1}
    """
    sorted_domains = sorted(domains)
    quota = -(-target // len(sorted_domains))
    there = Counter(pair.domain for pair in pairs)
    return {domain: max(0, quota - there[domain]) for domain in sorted_domains}


def describe(missing_by_domain: Gaps) -> str:
    """The gaps as lines for a prompt, the emptiest domain first."""
    order = sorted(missing_by_domain.items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(f"- {domain}: {missing}" for domain, missing in order)
