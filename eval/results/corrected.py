"""Scores corrected for the judge's errors, by human labels of some images."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError
from ...parsing import MALFORMED
from ..core import ORIGINAL, Outcome, Score, Verdict
from ..stats.correction import ppi, rogan_gladen
from ..suites.base import Measure, Suite
from ..suites.scoring import factor_of
from .judge_card import HumanAgreement, JudgeCard, Labels

YOUDEN = 0.85
"""Least sensitivity + specificity - 1 with which a card may correct: below it, labels of the run
itself are more informative."""


def corrected_by_labels(
    suite: Suite[Any], judged: Sequence[Outcome], labels: Labels
) -> list[Score]:
    """Scores corrected with labels of a random sample of the same run (PPI++); `..._corrected`."""
    people: dict[str, dict[tuple[str, str], Verdict]] = {}
    for (case, question), label in labels.items():
        people.setdefault(case, {})[question, ORIGINAL] = Verdict(label)
    labeled_questions = {question for _, question in labels}
    corrected = (
        _by_labels(m, people) for needed, m in suite.measures(judged) if needed <= labeled_questions
    )
    return [score for score in corrected if score]


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
    measure: Measure, people: Mapping[str, Mapping[tuple[str, str], Verdict]]
) -> Score | None:
    """PPI++ over the images that the judge and, for labeled images, people find valid."""
    pairs: list[tuple[float, float]] = []
    unlabeled: list[float] = []
    clusters: tuple[list[str], list[str]] = [], []
    invalid, disputed = 0, 0
    for outcome in measure.outcomes:
        judge_value, human = measure.value(outcome), people.get(outcome.case.id)
        human_value = math.nan if human is None else measure.value(Outcome(outcome.case, human))
        if human is None and math.isnan(judge_value):
            invalid += 1
        elif human is None:
            unlabeled.append(judge_value)
            clusters[1].append(outcome.case.clusters[0])
        elif math.isnan(judge_value) or math.isnan(human_value):
            disputed += 1
        else:
            pairs.append((judge_value, human_value))
            clusters[0].append(outcome.case.clusters[0])
    if len(pairs) < 2:
        return None
    values = np.array(pairs)
    estimate = ppi(
        unlabeled,
        values[:, 0],
        values[:, 1],
        measure.worth.ends,
        clusters=clusters[0] + clusters[1],
    )
    return Score.of(
        estimate.scaled(factor_of(measure.unit)),
        name=f"{measure.name}_corrected",
        unit=measure.unit,
        excluded={"labeled_not_valid_for_both": disputed, "not_valid": invalid},
    )


def _by_card(measure: Measure, card: HumanAgreement) -> Score | None:
    low, high = measure.worth.ends
    values = measure.worth.values
    judge_values = [value for o in measure.outcomes if not math.isnan(value := measure.value(o))]
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
    share = rogan_gladen(judge_values.count(high), len(judge_values), *positives, *negatives)
    return Score.of(
        share.scaled(100 * (high - low)).shifted(100 * low),
        name=f"{measure.name}_by_card",
        unit="%",
        n=len(judge_values),
        excluded={"not_valid": len(measure.outcomes) - len(judge_values)},
    )
