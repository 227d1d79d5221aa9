"""Captioners against each other: set habits are told apart, and equal ones are not."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from counterprior.corpus_analysis.captioning.ranking import CaptionerRanking, rank_captioners
from counterprior.corpus_analysis.captioning.reading import Reading
from counterprior.corpus_analysis.captioning.scores import MirrorReadings
from counterprior.eval.stats.comparison import holm

IMAGES = 90
LEFT = {"habit": 1.2, "same habit": 1.2, "other habit": -0.4}
"""Captioner -> its logit of naming the left one first."""
OWN = [random.Random(n).gauss(0, 1.5) for n in range(IMAGES)]
"""By how much everybody prefers the left one of each image; it stands right in the mirror image."""


def chance(left: float, more: float) -> float:
    return 1 / (1 + math.exp(-left - more))


def truth(name: str) -> float:
    shares = [(chance(LEFT[name], own) + chance(LEFT[name], -own)) / 2 for own in OWN]
    return 100 * sum(shares) / IMAGES


def told(name: str) -> list[MirrorReadings]:
    rng = random.Random(name)
    found = []
    for number, own in enumerate(OWN):
        things: Any = SimpleNamespace(id=str(number))
        for wording in ("describe", "tell"):
            both = [
                Reading("left_first" if rng.random() < chance(LEFT[name], more) else "right_first")
                for more in (own, -own)
            ]
            if rng.random() < 0.1:
                both[rng.randrange(2)] = Reading("refused")
            found.append(MirrorReadings(things, wording, *both))
    return found


def test_distinguishes_different_habits_but_not_equal_ones() -> None:
    said = {name: told(name) for name in LEFT}
    found = rank_captioners(said)
    assert found == rank_captioners(dict(reversed(said.items())))
    assert [one.groups for one in found.captioners] == ["A", "A", "B"]
    assert found.captioners[-1].name == "other habit"
    assert all(a.left_first >= b.left_first for a, b in pairwise(found.captioners))
    assert [pair.adjusted for pair in found.pairs] == holm([pair.p_value for pair in found.pairs])
    for pair in found.pairs:
        assert truth(pair.first) - truth(pair.second) in pair.interval
        assert 0 <= pair.value < 45 and 80 < pair.clusters <= IMAGES < pair.n < 2 * IMAGES
        assert (pair.adjusted < 0.05) == ("other habit" in (pair.first, pair.second))


def test_compares_only_shared_complete_readings() -> None:
    things: list[Any] = [SimpleNamespace(id=str(n)) for n in range(8)]
    left, right = Reading("left_first"), Reading("right_first")
    # On the images that both have told, they say the same.
    first = [
        MirrorReadings(one, "tell", left, left if n < 4 else right) for n, one in enumerate(things)
    ]
    second = [
        MirrorReadings(one, "tell", left, left if n < 4 else Reading("error"))
        for n, one in enumerate(things)
    ]
    (pair,) = rank_captioners({"a": first, "b": second}).pairs
    assert (pair.first, pair.value, pair.n, pair.clusters) == ("b", 0, 4, 4)
    # Two that share no image are not told apart, and one without a score is not ranked.
    apart = rank_captioners({"a": first[:4], "b": first[4:], "none": []})
    assert [(one.name, one.left_first, one.groups) for one in apart.captioners] == [
        ("a", 100, "A"),
        ("b", 50, "A"),
    ]
    (pair,) = apart.pairs
    assert pair.n == 0 and math.isnan(pair.value) and math.isnan(pair.adjusted)
    assert rank_captioners({}) == CaptionerRanking((), ())
    assert rank_captioners({"a": first}).captioners[0].left_first == pytest.approx(75)
