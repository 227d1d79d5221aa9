"""Scores of a group are those of its outcomes alone, though all groups share what is read once."""

import random

import pytest

from counterprior.eval.core import CONTROLS, FAILURES, MIRROR_SWAP, ORIGINAL, Case, Outcome, Verdict
from counterprior.eval.stats.bootstrap import numbered
from counterprior.eval.suites import open_suite
from counterprior.eval.suites.columns import Outcomes, cluster_numbers, labels_of, variants_of
from counterprior.eval.suites.homogenization import T2IHomogenizationSuite
from counterprior.eval.suites.scoring import grouped

PROBES = (ORIGINAL, *CONTROLS, MIRROR_SWAP)
LABELS = ("first_left", "first_left", "first_right", "invalid", FAILURES[0], FAILURES[1])
STATUSES = ("made",) * 8 + ("missing", "refused", "error")


def outcomes(number: int) -> list[Outcome]:
    """Of pairs in groups that overlap, with all kinds of answers and images."""
    rng, judged = random.Random(number), []
    for row in range(number):
        first, second = rng.sample("abcdefg", 2)
        groups = {"pair_type": rng.choice("XY"), "category": f"{first < 'd'} + {second < 'd'}"}
        clusters = (f"{first}/{second}", first, second)
        for variant in ("plain", "swapped"):
            for seed in range(2):
                case = Case(f"row{row}", variant, seed, seed, "", clusters, groups)
                verdicts = {("order", probe): Verdict(rng.choice(LABELS)) for probe in PROBES}
                judged.append(Outcome(case, verdicts, rng.choice(STATUSES)))
    return judged


def test_scores_of_a_group_are_those_of_its_outcomes_alone() -> None:
    suite, judged = open_suite("t2i_homogenization"), outcomes(60)
    assert isinstance(suite, T2IHomogenizationSuite)
    scores = {(score.name, score.group): score for score in suite.score(judged)}
    names = [group for group, _ in grouped(judged)]
    assert names == ["all", *(f"category={value}" for value in (False, True)), *PAIR_TYPES]
    for group, members in grouped(judged):
        alone = suite.bias_scores(list(members), group)
        assert len(alone) > 10
        assert [repr(score) for score in alone] == [repr(scores[s.name, group]) for s in alone]


PAIR_TYPES = ("pair_type=X", "pair_type=Y")


@pytest.mark.parametrize("places", [[], [3, 1, 2], list(range(0, 200, 7))])
def test_columns_of_a_part_of_a_part_are_its_own(places: list[int]) -> None:
    whole = Outcomes(outcomes(60))
    half = whole.part(range(len(whole)))
    labels_of(whole, "order")  # one column is there before, the other is not
    part = half.part(places)
    assert list(part) == [whole[place] for place in places]
    labels, variants = labels_of(part, "order"), variants_of(part)
    assert [labels.names[n] for n in labels.numbers] == [o.label("order") for o in part]
    assert variants.are("swapped").tolist() == [o.case.variant == "swapped" for o in part]
    assert sum(labels.counts().values()) == len(places)
    order, alone = (cluster_numbers(of) for of in (part, [*part]))
    assert numbered(order).tolist() == numbered(alone).tolist()
