"""Balanced designs: appearances, order of mention, distinct pairs."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from refusals import raises

from counterprior.builders.balance import Rotation, balanced_pairs, orient


@given(st.integers(4, 20), st.data())
def test_pairs_are_distinct_and_balanced(size: int, data: st.DataObject) -> None:
    names = [f"n{i}" for i in range(size)]
    count = data.draw(st.integers(1, size * (size - 1) // 2))
    pairs = balanced_pairs(names, None, count, random.Random(data.draw(st.integers(0, 99))))
    assert len({frozenset(p) for p in pairs}) == len(pairs) == count
    appearances = Counter(name for pair in pairs for name in pair)
    used = [appearances[name] for name in names]
    assert max(used) - min(used) <= 1
    first = Counter(a for a, _ in pairs)
    assert all(abs(2 * first[n] - appearances[n]) <= 1 for n in names)


@given(st.integers(3, 12), st.integers(3, 12), st.data())
def test_two_sides_are_balanced_each(left: int, right: int, data: st.DataObject) -> None:
    sides = [f"l{i}" for i in range(left)], [f"r{i}" for i in range(right)]
    count = data.draw(st.integers(1, left * right // 2))
    pairs = balanced_pairs(*sides, count, random.Random(data.draw(st.integers(0, 99))))
    assert all({a[0], b[0]} == {"l", "r"} for a, b in pairs)
    appearances = Counter(name for pair in pairs for name in pair)
    for side in sides:
        assert max(appearances[n] for n in side) - min(appearances[n] for n in side) <= 1
    first = Counter(a for a, _ in pairs)
    assert all(abs(2 * first[n] - appearances[n]) <= 1 for side in sides for n in side)


def test_forbidden_pairs_never_meet() -> None:
    names = [f"n{i}" for i in range(10)]
    pairs = balanced_pairs(names, None, 30, random.Random(0), lambda a, b: {a, b} != {"n0", "n1"})
    assert all(set(pair) != {"n0", "n1"} for pair in pairs)


def distinct(first: str, second: str | None, count: int) -> list[int]:
    """Numbers of different pairs among `count` of letters that may meet three times, by seed."""
    designs = (
        balanced_pairs(list(first), second and list(second), count, random.Random(seed), thrice)
        for seed in range(12)
    )
    return [len({frozenset(pair) for pair in pairs}) for pairs in designs]


def thrice(a: str, b: str) -> int:
    return 3


def test_entities_that_may_meet_again_meet_others_first() -> None:
    assert min(distinct("abcde", "vwxyz", 20)) >= 18  # of 25
    assert min(distinct("abcdefgh", None, 56)) == 28  # all that there are


def test_an_impossible_design_is_an_error() -> None:
    with raises("unbalanced-bank", "of 4", "on 3"):
        balanced_pairs(["a", "b", "c"], None, 4, random.Random(0))


def test_the_seed_decides() -> None:
    names = [f"n{i}" for i in range(12)]
    designs = [balanced_pairs(names, None, 20, random.Random(seed)) for seed in (0, 0, 1)]
    assert designs[0] == designs[1] != designs[2]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40))
def test_orientation_keeps_edges_and_balances_every_vertex(edges: list[tuple[int, int]]) -> None:
    graph = [(str(a), str(b)) for a, b in edges if a != b]
    directed = orient(graph, random.Random(0))
    assert [set(e) for e in directed] == [set(e) for e in graph]
    out, into = Counter(a for a, _ in directed), Counter(b for _, b in directed)
    assert all(abs(out[v] - into[v]) <= 1 for v in {*out, *into})


def test_rotation_uses_every_choice_before_one_twice() -> None:
    rotation: Rotation[str] = Rotation(random.Random(0))
    taken = [rotation.take("abcd") for _ in range(8)]
    assert sorted(taken[:4]) == sorted(taken[4:]) == list("abcd")
