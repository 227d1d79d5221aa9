"""Differences of two runs whose missing answers could be anything."""

import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scored import cases, image_run, judged_as

from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.results.contents import read_contents
from counterprior.eval.results.leaderboard import leaderboards, paired
from counterprior.eval.results.scoring import ScoreSettings
from counterprior.eval.suites import open_suite
from counterprior.eval.suites.base import Headline, Item, Items

ACCURACY = open_suite("t2i_correctness").headline
HOM = open_suite("i2i_homogenization").headline


def items(n: int, value: Callable[[int], float]) -> Items:
    return {str(k): Item((value(k),), f"pair{k // 2}") for k in range(n)}


def share_called_different(first: Callable[..., Items], second: Callable[..., Items]) -> float:
    different = 0
    for seed in range(60):
        rng = random.Random(seed)
        different += paired(first(rng), second(rng), ACCURACY).p_value < 0.05
    return different / 60


def honest(rng: random.Random, rate: float = 0.6) -> Items:
    return items(160, lambda _: float(rng.random() < rate))


def abstaining(rng: random.Random) -> Items:
    """As often right; nine of ten wrong images can't be judged."""

    def value(_: int) -> float:
        right = rng.random() < 0.6
        return 1.0 if right else math.nan if rng.random() < 0.9 else 0.0

    return items(160, value)


@pytest.mark.slow
def test_images_that_cannot_be_judged_win_no_letter() -> None:
    """Paired on what both have, the abstaining generator is surely better in all simulations."""
    assert share_called_different(abstaining, honest) <= 0.05
    assert share_called_different(honest, honest) <= 0.1
    assert share_called_different(lambda rng: honest(rng, 0.85), honest) > 0.9


def test_the_interval_reaches_from_the_worst_case_to_the_best() -> None:
    both = items(40, lambda k: float(k % 4 > 0))
    gaps = items(40, lambda k: math.nan if k % 4 == 0 else 1.0)
    estimate = paired(gaps, both, ACCURACY)
    assert estimate.n == 30 and estimate.value == 0
    assert estimate.interval.low < 0 and estimate.interval.high > 0.25 and estimate.p_value == 1
    mirrored = paired(both, gaps, ACCURACY)
    assert mirrored.interval == pytest.approx(
        (-estimate.interval.high, -estimate.interval.low), abs=0.01
    )


def test_a_magnitude_may_be_least_between_the_ends() -> None:
    """Hom of 10 answered left and 90 open images is anything from 0 to 100."""
    open_images = items(100, lambda k: 1.0 if k < 10 else math.nan)
    unbiased = items(100, lambda k: 1.0 if k % 2 else -1.0)
    low, high = paired(open_images, unbiased, HOM).interval
    assert low <= 0 and high > 0.85


def test_sizes_of_effects_differ_only_where_neither_difference_nor_sum_is_0() -> None:
    """At |Hom| 50 the sides of two generators differ surely, but not their homogenization."""

    def sided(rng: random.Random, left: float) -> Items:
        return items(300, lambda _: 1.0 if rng.random() < left else -1.0)

    called = {left: 0 for left in (0.25, 0.5, 0.75)}
    for seed in range(20):
        rng = random.Random(seed)
        biased = sided(rng, 0.75)
        for left in called:
            called[left] += paired(biased, sided(rng, left), HOM).p_value < 0.05
    assert called[0.5] == 20 and called[0.75] <= 3 and called[0.25] <= 3


def test_complete_runs_are_compared_as_before() -> None:
    headline = Headline("s", "higher", "", lambda outcomes: {}, (0.0, 1.0))
    a, b = items(80, lambda k: float(k % 2)), items(80, lambda k: float(k % 4 == 1))
    estimate = paired(a, b, headline)
    assert estimate.value == 0.25 and estimate.p_value < 0.05
    assert np.isclose(paired(b, a, headline).interval.low, -estimate.interval.high, atol=0.01)


def test_hard_images_that_fail_or_cannot_be_told_move_no_run_up(tmp_path: Path) -> None:
    """Three are right in 36 of 60 images, two of which hide what is wrong; the fourth in 42."""
    asked = cases(60, clusters=20)
    right = {case.id for i, case in enumerate(asked) if i % 5 < 3}
    better = right | {case.id for i, case in enumerate(asked) if i % 10 == 4}
    wrong = [case.id for case in asked if case.id not in right]
    roots = []
    for name, correct, other, lost in (
        ("honest", right, "wrong", []),
        ("abstaining", right, "invalid", []),
        ("failing", right, "wrong", [*wrong[:12], min(right)]),
        ("better", better, "wrong", []),
    ):
        failed = dict.fromkeys(lost, "error")
        roots.append(image_run(tmp_path / name, asked, {c.id: 90 for c in asked}, failed))
        labels = {c.id: "correct" if c.id in correct else other for c in asked if c.id not in lost}
        judged_as(roots[-1], labels)
    (board,) = leaderboards(read_contents(roots, ScoreSettings()), across_judges=False)
    assert board.headline.score == "accuracy_reverse_unconditional"
    assert [s.name for s in board.standings] == ["better", "abstaining", "honest", "failing"]
    scores = {s.name: s.score for s in board.standings}
    assert scores["abstaining"].value == scores["honest"].value == pytest.approx(60)
    assert scores["failing"].value == pytest.approx(100 * 35 / 47)  # and what it is at worst
    assert scores["failing"].excluded == {"error": 13}
    assert scores["failing"].bounds.low < 60 < scores["failing"].bounds.high
    paper = {s.name: s.judged.whole["accuracy_reverse"].value for s in board.standings}
    assert paper["abstaining"] == 100


def test_scores_name_both_populations_and_their_effective_n() -> None:
    """Entities that differ make other entities less certain than new images of these."""
    rng = random.Random(0)
    effect = {f"e{n}": rng.gauss(0, 2) for n in range(12)}
    outcomes = []
    for number in range(400):
        first, second = rng.sample(sorted(effect), 2)
        log_odds = 1 + effect[first] + effect[second]
        for variant in ("plain", "swapped"):
            label = "first_left" if rng.random() < 1 / (1 + math.exp(-log_odds)) else "first_right"
            clusters = ("/".join(sorted((first, second))), *sorted((first, second)))
            case = Case(f"r{number}", variant, 0, 0, "", clusters)
            outcomes.append(Outcome(case, {("order", "original"): Verdict(label)}))
    scores = {s.name: s for s in open_suite("t2i_homogenization").score(outcomes)}
    for name in ("signed_index", "order_effect", "order_bias", "hom"):
        score = scores[name]
        low, high = score.these_items
        assert score.interval.low <= low < score.value < high < score.interval.high
        assert high - low < (score.interval.high - score.interval.low) / 2
        assert 4 < score.effective < 200 and score.n == 800
