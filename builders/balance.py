"""Balanced designs: which entities meet, and which of the two is mentioned first.

Two properties keep entity and order apart in the analysis: every entity appears about equally
often, and about equally often first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from .bank import BankError

NamePair = tuple[str, str]
T = TypeVar("T", bound=Hashable)


def once(a: str, b: str) -> int:
    """Any two entities may meet once."""
    return 1


def balanced_pairs(
    first: Sequence[str],
    second: Sequence[str] | None,
    count: int,
    rng: random.Random,
    capacity: Callable[[str, str], int] = once,
) -> list[NamePair]:
    """`count` pairs, each given in its order of mention, shuffled.

    Pairs are drawn within `first`, or between `first` and `second`. Two entities meet at most
    `capacity` times (0: never; it must not depend on the order), and rarely twice while others are
    left. On each side, the numbers of appearances differ by at most one. Each entity is first in
    half of its appearances, rounded either way. Raises BankError if no such design is found.
    """
    for _ in range(100):
        edges = _regular_edges(first, second, count, rng, capacity)
        if edges is not None:
            pairs = orient(edges, rng)
            rng.shuffle(pairs)
            return pairs
    raise BankError(
        f"no balanced design of {count} pairs on {len(first)} entities; fewer may be confusable",
        code="unbalanced-bank",
    )


def _regular_edges(
    first: Sequence[str],
    second: Sequence[str] | None,
    count: int,
    rng: random.Random,
    capacity: Callable[[str, str], int],
) -> list[NamePair] | None:
    """Greedy: the least used entity meets the least used, then least met partner; None if stuck."""
    sides = (list(first), list(first if second is None else second))
    degree = dict.fromkeys([*sides[0], *sides[1]], 0)
    remaining = {a: {b: c for b in sides[1] if a != b and (c := capacity(a, b))} for a in sides[0]}
    met: dict[str, dict[str, int]] = {a: {} for a in degree}
    random = rng.random  # a number for each candidate: what a config has depends on how many
    edges: list[NamePair] = []
    while len(edges) < count:
        open_entities = [a for a in sides[0] if remaining[a]]
        if not open_entities:
            return None
        *_, a = min([(degree[e], random(), e) for e in open_entities])
        often = met[a].get
        *_, b = min([(degree[e], often(e, 0), random(), e) for e in remaining[a]])
        edges.append((a, b))
        met[a][b] = met[b][a] = often(b, 0) + 1
        for x, y in ((a, b), (b, a)) if second is None else ((a, b),):
            remaining[x][y] -= 1
            if not remaining[x][y]:
                del remaining[x][y]
        degree[a] += 1
        degree[b] += 1
    for side in sides:
        used = [degree[e] for e in side]
        if max(used) - min(used) > 1:
            return None
    return edges


def orient(edges: Sequence[NamePair], rng: random.Random) -> list[NamePair]:
    """Directs every edge so that each vertex starts half of its edges, rounded either way.

    Euler: join the vertices of odd degree to one extra vertex, walk closed trails, and direct each
    edge as it is walked; then every vertex is left as often as it is entered.
    """
    outside = ""
    neighbors: dict[str, list[tuple[str, int]]] = {}
    ends = list(edges)
    degree: dict[str, int] = {}
    for a, b in edges:
        degree[a] = degree.get(a, 0) + 1
        degree[b] = degree.get(b, 0) + 1
    ends += [(vertex, outside) for vertex in sorted(degree) if degree[vertex] % 2]
    for number, (a, b) in enumerate(ends):
        neighbors.setdefault(a, []).append((b, number))
        neighbors.setdefault(b, []).append((a, number))
    for around in neighbors.values():
        rng.shuffle(around)
    walked: set[int] = set()
    directed: dict[int, NamePair] = {}
    for start in sorted(neighbors):
        vertex = start
        while True:
            around = neighbors[vertex]
            while around and around[-1][1] in walked:
                around.pop()
            if not around:
                if vertex != start:
                    raise AssertionError("a closed trail must end where it began")
                break
            following, number = around.pop()
            walked.add(number)
            directed[number] = (vertex, following)
            vertex = following
    return [directed[number] for number in range(len(edges))]


class Rotation(Generic[T]):
    """Picks the least used of the given choices, ties at random."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: dict[T, int] = {}

    def take(self, choices: Sequence[T]) -> T:
        """One of `choices`, which is not empty."""
        used, random = self._used.get, self._rng.random
        *_, place = min([(used(c, 0), random(), n) for n, c in enumerate(choices)])
        choice = choices[place]
        self._used[choice] = self._used.get(choice, 0) + 1
        return choice
