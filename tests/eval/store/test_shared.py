"""Values that records have in common are held once, and no record says anything else for it."""

from copy import deepcopy

import pytest

from counterprior.eval.core import Case, Verdict
from counterprior.eval.store.shared import LONGEST, SharedValues
from counterprior.eval.store.verdicts import Answered


def case(seed: int) -> Case:
    return deepcopy(
        Case(
            row="row-1",
            variant="swapped",
            seed=seed,
            number=0,
            prompt=f"a cat and {'a dog'}",
            clusters=("cat/dog", "cat", "dog"),
            groups={"pair_type": "A-A"},
            weights={"order": 1.0},
        )
    )


def answered(verdict: Verdict) -> Answered:
    return Answered(
        key="k",
        case="row-1-swapped-7",
        image="",
        question="order",
        probe="original",
        labels=tuple(["cat", "dog", "invalid"]),
        answers=dict([("1", "cat"), ("2", "dog")]),
        sided=True,
        verdict=verdict,
    )


def test_equal_groups_and_clusters_are_one_object() -> None:
    shared = SharedValues()
    first, second = shared.share(case(1)), shared.share(case(2))
    assert (first, second) == (case(1), case(2))
    assert first.groups is second.groups
    assert first.clusters is second.clusters


def test_answers_differ_in_their_labels_alone() -> None:
    shared = SharedValues()
    first, second = (shared.share(answered(Verdict(label, "1"))) for label in ("cat", "cat"))
    other = shared.share(answered(Verdict("dog", "1")))
    assert first.verdict is second.verdict
    assert first.answers is other.answers
    assert (first.verdict.label, other.verdict.label) == ("cat", "dog")


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict("cat", "1", number=1.0),
        Verdict("cat", "1", probabilities={"cat": 1.0}),
        Verdict("cat", "1", mass=0.5),
        Verdict("cat", "1" * (LONGEST + 1)),
    ],
)
def test_verdicts_with_numbers_or_long_answers_stay_apart(verdict: Verdict) -> None:
    shared = SharedValues()
    plain = shared.share(answered(Verdict("cat", "1")))
    measured = shared.share(answered(verdict))
    assert measured.verdict is verdict
    assert plain.verdict == Verdict("cat", "1")
