"""Scores corrected for the judge's errors, by human labels of some images."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError
from ...parsing import MALFORMED
from ..core import INVALID, ORIGINAL, Cluster, Outcome, Score, Verdict, count_excluded
from ..stats.clusters import effective_items
from ..stats.correction import by_error_rates, confusion_of, ppi, rogan_gladen
from ..suites.base import Measure, Suite
from ..suites.gold import TRUE_LABELS, GoldSuite
from ..suites.scoring import factor_of
from ..suites.spatial import QUESTION
from .judge_card import HumanAgreement, JudgeCard, Labels
from .judge_check import ENOUGH_ITEMS, JudgeCheck

YOUDEN = 0.85
"""Least sensitivity + specificity - 1 with which a card may correct: below it, labels of the run
itself are more informative."""

ABSTAINED = "of the images that the judge found valid, as if it abstained at random"
"""Warning of scores whose correction takes the judge's abstentions as they are."""


AS_ON_GOLD = "holds if the judge errs on these images as often as on gold images"
"""Warning of scores that are corrected with error rates on gold images."""

AS_ON_REAL = "holds if the judge errs on these images as often as on the labeled real ones"
"""Warning of scores that are corrected with error rates on real images."""


def corrected_by_labels(
    suite: Suite[Any], judged: Sequence[Outcome], labels: Labels
) -> list[Score]:
    """Scores corrected with labels of a random sample of the same run (PPI++); `..._corrected`.

    Over all images: one that the judge finds invalid, or fails on, counts as such, and people say
    how often they are valid.
    """
    people: dict[str, dict[tuple[str, str], Verdict]] = {}
    for (case, question), label in labels.items():
        people.setdefault(case, {})[question, ORIGINAL] = Verdict(label)
    labeled_questions = {question for _, question in labels}
    corrected = (
        _by_labels(needed, of_measure, people)
        for needed, measure in suite.measures(judged)
        if needed <= labeled_questions
        for of_measure in _with_unconditional(suite, measure)
    )
    return [score for score in corrected if score]


def _with_unconditional(suite: Suite[Any], measure: Measure) -> Iterator[Measure]:
    """A measure over valid images, and the same over all judged ones, if the suite has that."""
    yield measure
    name = f"{measure.name}_unconditional"
    if name in suite.meanings:
        yield replace(measure, name=name, value=suite.correctness)


def corrected_by_card(
    suite: Suite[Any], judged: Sequence[Outcome], agreement: Mapping[str, HumanAgreement]
) -> list[Score]:
    """Scores corrected with the same judge's error rates elsewhere (Rogan-Gladen); `..._by_card`.

    Only where those error rates are low enough, see `YOUDEN`.
    """
    corrected = (
        _by_card(measure, matrix)
        for question, matrix in agreement.items()
        for needed, measure in suite.measures(judged)
        if needed <= {question} and len(set(measure.worth.values.values())) == 2
    )
    return [score for score in corrected if score]


def corrected_by_gold(
    suite: Suite[Any], judged: Sequence[Outcome], gold: GoldSuite[Any], check: JudgeCheck
) -> list[Score]:
    """Scores corrected with the judge's error rates on gold images; `..._by_gold`.

    Over all items, also those on which the judge was misled: its errors there are among the rates.
    Empty where one question doesn't decide what a gold image shows, for a check of fewer than
    `ENOUGH_ITEMS` items, and where the judge has seen no gold image of one of the true labels.
    """
    if not gold.question or check.failed or len(check.by_item) < ENOUGH_ITEMS:
        return []
    return [
        score
        for needed, measure in suite.measures(judged)
        if needed == {gold.question}
        for score in _by_gold(suite, measure, gold, check)
    ]


def corrected_by_real(
    suite: Suite[Any], judged: Sequence[Outcome], labeled: Sequence[Outcome]
) -> list[Score]:
    """Scores corrected with the judge's error rates on labeled real images; `..._by_gold`.

    labeled: outcomes of `real_gold`, whose cases hold the readers' label. All three answers count,
    so a thing that the judge misses is corrected too. Empty where the judge has answered about no
    image of one of the true labels, or does not tell the labels apart.
    """
    scores: list[Score] = []
    judged = suite.asked_of_real_gold(judged)
    for needed, measure in suite.measures(judged):
        (question, *others) = needed or [""]
        if others or not judged:
            continue
        classes = [*measure.worth.values, *measure.worth.unscored]
        confusion = confusion_of(
            classes,
            ((o.label(QUESTION), o.case.key.get(QUESTION), o.case.cluster) for o in labeled),
        )
        read = [(outcome.label(question), outcome.case.cluster) for outcome in judged]
        scores += _by_rates(suite, measure, confusion, read, AS_ON_REAL)
    return scores


def class_values(
    suite: Suite[Any], measure: Measure, classes: Sequence[str]
) -> Iterator[tuple[str, list[float]]]:
    """Scores that follow from the shares of true classes, each with the values of the classes.

    NaN for a class that isn't valid: it is 0 in the unconditional score, if the suite has one.
    """
    values = [measure.worth.values.get(name, math.nan) for name in classes]
    yield measure.name, values
    unconditional = f"{measure.name}_unconditional"
    if unconditional in suite.meanings:
        yield unconditional, [0.0 if math.isnan(value) else value for value in values]


def _by_gold(
    suite: Suite[Any], measure: Measure, gold: GoldSuite[Any], check: JudgeCheck
) -> Iterator[Score]:
    classes = [*measure.worth.values, *measure.worth.unscored]
    confusion: list[tuple[list[int], list[str]]] = [([], []) for _ in classes]
    for entry, contents in check.by_item.items():
        for content, counts in contents.items():
            labels, entries = confusion[classes.index(TRUE_LABELS.get(content, INVALID))]
            for label, count in counts.items():
                if label in classes:
                    labels += [classes.index(label)] * count
                    entries += [entry] * count
    read = [(gold.reading(outcome), outcome.case.cluster) for outcome in measure.outcomes]
    yield from _by_rates(suite, measure, confusion, read, AS_ON_GOLD)


def _by_rates(
    suite: Suite[Any],
    measure: Measure,
    confusion: Sequence[tuple[list[int], Sequence[Cluster]]],
    read: Sequence[tuple[str, Cluster]],
    warning: str,
) -> Iterator[Score]:
    """confusion: of each true class, labels and clusters; read: label and cluster of each item."""
    classes = [*measure.worth.values, *measure.worth.unscored]
    answered = [(classes.index(label), cluster) for label, cluster in read if label in classes]
    for name, values in class_values(suite, measure, classes):
        estimate = by_error_rates(
            [place for place, _ in answered],
            [cluster for _, cluster in answered],
            confusion,
            values,
        )
        if not math.isnan(estimate.value):
            yield Score.of(
                estimate.scaled(factor_of(measure.unit)),
                name=f"{name}_by_gold",
                unit=measure.unit,
                excluded=count_excluded((label for label, _ in read), classes),
                warning="; ".join(filter(None, (warning, estimate.warning))),
            )


def read_cards(path: Path) -> Iterator[tuple[Mapping[str, str], Mapping[str, HumanAgreement]]]:
    """Reads the identity of each judge in a scores.json, and its agreement with people.

    Raises DataError for a file without any.
    """
    try:
        cards = [result["card"] for result in json.loads(path.read_text("utf-8"))]
        judges = [
            (
                JudgeCard(**card).comparable,
                {
                    name: HumanAgreement.from_json(matrix)
                    for name, matrix in card["agreement"].items()
                },
            )
            for card in cards
        ]
    except (OSError, *MALFORMED) as error:
        raise DataError(
            f"{path}: no scores.json of a judged run ({error})", code="bad-format"
        ) from None
    if not any(agreement for _, agreement in judges):
        raise DataError(
            f"{path}: no card has human labels: score that run with --labels first",
            code="nothing-to-do",
        )
    yield from judges


def _by_labels(
    needed: frozenset[str],
    measure: Measure,
    people: Mapping[str, Mapping[tuple[str, str], Verdict]],
) -> Score | None:
    """PPI++ over all images; an image is labeled if all needed questions about it have a label."""
    unlabeled: list[float] = []
    pairs: list[tuple[float, float]] = []
    unlabeled_clusters: list[Cluster] = []
    clusters: list[Cluster] = []
    for outcome in measure.outcomes:
        if outcome.image != "made":
            continue
        judge_value, human = measure.value(outcome), people.get(outcome.case.id, {})
        # Images may be asked about more or fewer things: labeled ones are to be of all kinds.
        asked = outcome.case.weights.keys() & needed or needed
        if {(question, ORIGINAL) for question in asked} <= human.keys():
            pairs.append((judge_value, measure.value(Outcome(outcome.case, human))))
            clusters.append(outcome.case.cluster)
        else:
            unlabeled.append(judge_value)
            unlabeled_clusters.append(outcome.case.cluster)
    if len(pairs) < 2:
        return None
    judged, labels = np.array(pairs).T
    estimate = ppi(
        unlabeled, judged, labels, measure.worth.ends, clusters=clusters + unlabeled_clusters
    )
    return Score.of(
        estimate.scaled(factor_of(measure.unit)),
        name=f"{measure.name}_corrected",
        unit=measure.unit,
        excluded=count_excluded((o.image for o in measure.outcomes), ("made",)),
    )


def _by_card(measure: Measure, card: HumanAgreement) -> Score | None:
    low, high = measure.worth.ends
    values = measure.worth.values
    valid = [o for o in measure.outcomes if not math.isnan(measure.value(o))]
    judge_values = [measure.value(outcome) for outcome in valid]
    # Rows are people's labels, columns the judge's; what either finds invalid is left out.
    table = {(row, column): 0 for row in (low, high) for column in (low, high)}
    for person, counts in zip(card.labels, card.matrix, strict=True):
        for judge, count in zip(card.labels, counts, strict=True):
            if person in values and judge in values:
                table[values[person], values[judge]] += count
    positives = table[high, high], table[high, high] + table[high, low]
    negatives = table[low, low], table[low, low] + table[low, high]
    if not (judge_values and positives[1] and negatives[1]):
        return None
    if positives[0] / positives[1] + negatives[0] / negatives[1] - 1 < YOUDEN:
        return None
    # As many independent images as are as uncertain as these, which come in clusters.
    share_high = judge_values.count(high) / len(judge_values)
    n = effective_items(np.array(judge_values) == high, [o.case.cluster for o in valid])
    share = rogan_gladen(share_high * n, n, *positives, *negatives)
    return Score.of(
        share.scaled(100 * (high - low)).shifted(100 * low),
        name=f"{measure.name}_by_card",
        unit="%",
        n=len(judge_values),
        excluded={"not_valid": len(measure.outcomes) - len(judge_values)},
        warning="" if len(valid) == len(measure.outcomes) else ABSTAINED,
    )
