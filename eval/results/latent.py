"""Scores from all judges of a run and people together, by a latent class; `..._latent`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UsageError
from ..core import INVALID, Outcome, Score, count_excluded
from ..stats.bootstrap import Array
from ..stats.comparison import ALPHA
from ..stats.estimate import interval_text
from ..stats.latent import (
    MISSING,
    LatentClasses,
    latent_classes,
    rater_prior,
    residual_agreement,
)
from ..suites import open_gold
from ..suites.base import Suite
from ..suites.gold import TRUE_LABELS
from ..suites.scoring import factor_of
from .corrected import class_values
from .judge_card import Labels, RecognizedLabels
from .judge_check import JudgeCheck

PEOPLE = "people"
JUDGE_PRIOR = 0.85, 4.0
"""Share of right answers and items by which every judge is expected to recognize a class."""
PEOPLE_PRIOR = 0.95, 20.0
"""The same of people: they err too, and labels of few images don't say how often."""
LEAST_RATERS = 3
"""Raters whose errors can be told from the truth without an anchor (Goodman 1974)."""
LEAST_RESIDUAL = 0.02
"""Residual agreement that is worth a note."""
FEW_IMAGES, FEW_LABELS = 200, 20
"""Images of a group, and labels of people, up to which the intervals are too narrow."""
NARROW = (
    f"; with up to {FEW_IMAGES} images or {FEW_LABELS} labels of people, 95 % intervals held the "
    f"truth in 90 %"
)
INDEPENDENT = "holds if judges and people err independently of each other, given the truth"


@dataclass(frozen=True)
class LatentTruth:
    """The truth of one run by all of its raters together."""

    scores: Sequence[Score] = ()
    recognized: Mapping[str, Mapping[str, RecognizedLabels]] = field(default_factory=dict)
    """Rater -> question -> label -> share of its images that the rater recognizes."""
    notes: tuple[str, ...] = ()


def latent_truth(
    suite: Suite[Any],
    judged: Mapping[str, Sequence[Outcome]],
    labels: Labels,
    checks: Mapping[str, JudgeCheck],
) -> LatentTruth:
    """Scores of a run whose truth nobody knows: all raters err, each in its own way.

    judged: judge -> every outcome, in one order; labels: of people; checks: judge -> its answers on
    gold images, which anchor its errors where there are fewer than `LEAST_RATERS` raters and no
    people. Raises UsageError where nothing tells errors from the truth.
    """
    if not judged:
        raise UsageError(
            "only people judge this run: there is no judge whose errors could be estimated",
            "Leave out --latent, or judge the run by a model.",
            code="too-few-raters",
        )
    by_question = [
        _of_question(suite, question, judged, labels, checks)
        for question in suite.worths
        if any(needed == {question} for needed, _ in suite.measures(next(iter(judged.values()))))
    ]
    recognized: dict[str, dict[str, RecognizedLabels]] = {}
    for truth in by_question:
        for rater, questions in truth.recognized.items():
            recognized.setdefault(rater, {}).update(questions)
    return LatentTruth(
        [score for truth in by_question for score in truth.scores],
        recognized,
        tuple(note for truth in by_question for note in truth.notes),
    )


def _of_question(
    suite: Suite[Any],
    question: str,
    judged: Mapping[str, Sequence[Outcome]],
    labels: Labels,
    checks: Mapping[str, JudgeCheck],
) -> LatentTruth:
    worth = suite.worths[question]
    classes = [*worth.values, *(worth.unscored or (INVALID,))]
    outcomes = next(iter(judged.values()))
    measures = [m for needed, m in suite.measures(outcomes) if needed == {question}]
    answers = {rater: [o.label(question) for o in of_rater] for rater, of_rater in judged.items()}
    people = [labels.get((o.case.id, question), "missing") for o in outcomes]
    if set(people) & set(classes):
        answers[PEOPLE] = people
    table = np.array(
        [[classes.index(x) if x in classes else MISSING for x in of] for of in answers.values()]
    ).T
    anchors = None
    if len(answers) < LEAST_RATERS and PEOPLE not in answers:
        anchors = _anchors(suite, question, list(answers), classes, checks)
        if anchors is None:
            raise UsageError(
                f"{len(answers)} judge{'s' if len(answers) > 1 else ''} of {question}: errors "
                f"can't be told from the truth by fewer than {LEAST_RATERS} raters",
                "Judge the run by another judge, add labels of people with --labels, or check the "
                "judges on gold images.",
                code="too-few-raters",
            )
    priors = np.stack(
        [
            rater_prior(len(classes), *(PEOPLE_PRIOR if name == PEOPLE else JUDGE_PRIOR))
            for name in answers
        ]
    )
    group_of = {o.case.id: n for n, m in enumerate(measures) for o in m.outcomes}
    answered = (table != MISSING).any(axis=1) & [o.case.id in group_of for o in outcomes]
    if not answered.any():
        return LatentTruth()
    groups = np.array([group_of.get(o.case.id, 0) for o in outcomes])[answered]
    clusters = np.array([o.case.clusters[0] for o in outcomes])[answered]
    latent = latent_classes(table[answered], groups, clusters, priors, anchors)
    warning = INDEPENDENT
    if len(answers) <= LEAST_RATERS:
        warning += ", which so few can't show"
    if anchors is not None:
        warning += "; their errors are anchored by gold images"
    labeled = sum(label in classes for label in people)
    scores = []
    for number, measure in enumerate(measures):
        n = int((groups == number).sum())
        if not n:
            continue
        left_out = [
            o.label(question)
            for o, counts in zip(outcomes, answered, strict=True)
            if group_of.get(o.case.id) == number and not counts
        ]
        narrow = n <= FEW_IMAGES or 0 < labeled <= FEW_LABELS
        number_of_clusters = len(np.unique(clusters[groups == number]))
        for name, values in class_values(suite, measure, classes):
            estimate = latent.mean(number, values, n, number_of_clusters)
            scores.append(
                Score.of(
                    estimate.scaled(factor_of(measure.unit)),
                    name=f"{name}_latent",
                    unit=measure.unit,
                    excluded=count_excluded(left_out, ()),
                    warning=warning + (NARROW if narrow else ""),
                )
            )
    recognized = {
        rater: {
            question: {
                name: (share.value, *share.interval)
                for label, name in enumerate(classes)
                for share in [latent.recognized(place, label)]
            }
        }
        for place, rater in enumerate(answers)
    }
    notes = _notes(question, recognized, latent, table[answered], clusters)
    return LatentTruth(scores, recognized, tuple(notes))


def _anchors(
    suite: Suite[Any],
    question: str,
    raters: Sequence[str],
    classes: Sequence[str],
    checks: Mapping[str, JudgeCheck],
) -> Array | None:
    """Shape (r, k, k): gold images by true class and answer; None unless all raters have some of
    each class."""
    gold = open_gold(suite.name)
    if gold is None or gold.question != question:
        return None
    counted = np.zeros((len(raters), len(classes), len(classes)))
    for place, rater in enumerate(raters):
        check = checks.get(rater)
        for content, counts in check.confusion.items() if check else ():
            truth = classes.index(TRUE_LABELS.get(content, INVALID))
            for label, count in counts.items():
                if label in classes:
                    counted[place, truth, classes.index(label)] += count
    return counted if counted.sum(axis=2).all() else None


def _notes(
    question: str,
    recognized: Mapping[str, Mapping[str, RecognizedLabels]],
    latent: LatentClasses,
    table: NDArray[np.intp],
    clusters: NDArray[Any],
) -> Iterator[str]:
    """How often people are right, and pairs of raters that err together."""
    if people := recognized.get(PEOPLE):
        shares = ", ".join(
            f"{name} {100 * value:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
            for name, (value, low, high) in people[question].items()
        )
        yield f"{question}: people recognize, by all raters together, {shares}"
    pairs = list(combinations(range(len(recognized)), 2))
    raters = list(recognized)
    for first, second in pairs:
        residual = residual_agreement(latent, table, clusters, first, second)
        if residual.p_value * len(pairs) < ALPHA and abs(residual.value) > LEAST_RESIDUAL:
            more = "more" if residual.value > 0 else "less"
            yield (
                f"{question}: {raters[first]} and {raters[second]} answer alike {more} often than "
                f"independent errors explain, by {100 * abs(residual.value):.1f} points "
                f"({interval_text(residual.interval.scaled(100), '%')}): the intervals of "
                f"..._latent are too narrow, and their values may be off"
            )
