"""Finds pairs that are already known, in either order and under another spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .hygiene import skeleton

_PROPER_NAME = re.compile(r"\b[A-Z][\w-]*")
SAME_CONTEXT = 0.6
"""Jaccard index of the words of two contexts from which they count as one place."""


@dataclass(frozen=True)
class KnownPair:
    """A pair of a bank."""

    id: str
    """Its id."""
    domain: str
    """Its field of knowledge."""
    left: str
    """The left thing."""
    right: str
    """The right thing."""
    context: str
    """Where the two are."""
    frame: str = ""
    """How they are seen, where that is known: in another frame they are another pair."""


class PairIndex:
    """Pairs by the two things that they name, in either order."""

    def __init__(self, pairs: Iterable[KnownPair] = ()) -> None:
        self._known: dict[frozenset[str], list[tuple[KnownPair, frozenset[str]]]] = {}
        for pair in pairs:
            self.add(pair)

    def add(self, pair: KnownPair) -> None:
        """Remembers a pair."""
        words = frozenset(skeleton(pair.context).split())
        self._known.setdefault(_names(pair), []).append((pair, words))

    def discard(self, pair: KnownPair) -> None:
        """Forgets the pair with this id."""
        group = self._known.get(_names(pair), [])
        group[:] = [(member, words) for member, words in group if member.id != pair.id]

    def fault(self, pair: KnownPair) -> str | None:
        """Why the pair can't be added, or None."""
        if len(_names(pair)) < 2:
            return "left and right are the same thing"
        words = frozenset(skeleton(pair.context).split())
        for member, member_words in self._known.get(_names(pair), []):
            shared = len(words & member_words) / max(len(words | member_words), 1)
            twins = pair.frame and member.frame and pair.frame != member.frame
            if shared >= SAME_CONTEXT and not twins and not _elsewhere(pair, member):
                swapped = skeleton(member.left) != skeleton(pair.left)
                return f"{'contradicts' if swapped else 'repeats'} {member.id}"
        return None


def _elsewhere(pair: KnownPair, member: KnownPair) -> bool:
    """Whether each context has a proper name that the other lacks: the flags of two countries."""
    own, theirs = ({*_PROPER_NAME.findall(known.context)} for known in (pair, member))
    return bool(own - theirs and theirs - own)


def _names(pair: KnownPair) -> frozenset[str]:
    return frozenset((skeleton(pair.left), skeleton(pair.right)))
