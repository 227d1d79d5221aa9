"""Scores with the judge's own errors taken out, by what people said of some pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core import ORIGINAL, Outcome
from ..stats.correction import ppi, rogan_gladen
from ..suites import spatial
from ..suites.correctness import RIGHT
from ..suites.counterfactual import ANSWERS, picture_score
from ..suites.scores import Score
from .judge_card import SIGN, Agreement, JudgeCard

Labels = Mapping[tuple[str, str], str]
"""(Case, question) -> what people said."""

YOUDEN = 0.85
"""Sensitivity + specificity - 1 from which a card may correct: below it, labels of the run itself
tell more."""


class _Measure(NamedTuple):
    """A mean over pictures that can be corrected."""

    name: str
    part: Sequence[Outcome]
    """The pictures."""
    value: Callable[[Outcome], float]
    """Of one picture; NaN where it has none."""
    ends: tuple[float, float]
    """Least and largest value."""
    unit: str


def corrected_by_labels(judged: Sequence[Outcome], told: Labels) -> list[Score]:
    """By labels of a random part of the run itself (PPI++); `..._corrected`."""
    people: dict[str, dict[tuple[str, str], str]] = {}
    for (case, question), label in told.items():
        people.setdefault(case, {})[question, ORIGINAL] = label
    measures = _measures(judged, {question for _, question in told})
    found = (_by_labels(measure, people) for measure in measures)
    return [score for score in found if score]


def corrected_by_card(judged: Sequence[Outcome], agreement: Mapping[str, Agreement]) -> list[Score]:
    """By how the same judge did on labelled pictures elsewhere (Rogan-Gladen); `..._by_card`.

    Only where it did well enough, see `YOUDEN`.
    """
    scores = []
    for question, matrix in agreement.items():
        for measure in _measures(judged, {question}):
            values = next((t for t in _TWO_VALUED if t.keys() & set(matrix.labels)), None)
            if values and (score := _by_card(measure, values, matrix)):
                scores.append(score)
    return scores


def read_cards(path: Path) -> Iterator[tuple[Mapping[str, str], Mapping[str, Agreement]]]:
    """What identifies a judge, and its agreement with people, of every card in a scores.json.

    Raises ValueError for a file without any.
    """
    try:
        results: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
        cards = [JudgeCard(**result["card"]) for result in results]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path}: no scores.json of a judged run ({error})") from None
    if not any(card.agreement for card in cards):
        raise ValueError(f"{path}: no card has people's labels: score that run with --labels first")
    for card in cards:
        yield card.comparable, {name: Agreement(**one) for name, one in card.agreement.items()}  # type: ignore[arg-type]


_TWO_VALUED: tuple[Mapping[str, float], ...] = (RIGHT, SIGN, spatial.VALUES, ANSWERS)


def _measures(judged: Sequence[Outcome], questions: set[str]) -> Iterator[_Measure]:
    """What labels of these questions can correct."""
    variants = sorted({outcome.case.variant for outcome in judged})
    parts = {name: [o for o in judged if o.case.variant == name] for name in variants}
    for question in sorted(questions):
        labels = {outcome.label(question) for outcome in judged}
        if labels & RIGHT.keys():
            value = partial(_labelled, question, RIGHT)
            for name, part in parts.items():
                yield _Measure(f"accuracy_{name}", part, value, (0, 1), "%")
        elif labels & SIGN.keys():
            value = partial(_labelled, question, SIGN)
            yield _Measure("signed_index", judged, value, (-1, 1), "%")
        elif labels & spatial.VALUES.keys():
            value = partial(_labelled, question, spatial.VALUES)
            yield _Measure("accuracy", judged, value, (0, 1), "%")
        elif labels & ANSWERS.keys() and not any(o.case.weights for o in judged):
            value = partial(_labelled, question, ANSWERS)
            for name, part in parts.items():
                yield _Measure(f"shown_{name}", part, value, (0, 1), "1")
    weighed = {name for outcome in judged for name in outcome.case.weights}
    if weighed and weighed <= questions:
        for name, part in parts.items():
            yield _Measure(f"ungated_{name}", part, picture_score, (0, 1), "1")


def _labelled(question: str, values: Mapping[str, float], outcome: Outcome) -> float:
    return values.get(outcome.label(question), math.nan)


def _by_labels(
    measure: _Measure, people: Mapping[str, Mapping[tuple[str, str], str]]
) -> Score | None:
    """PPI++ over what both the judge and, where asked, people find valid."""
    pairs: list[tuple[float, float]] = []
    rest: list[float] = []
    clusters: tuple[list[str], list[str]] = [], []
    invalid, disputed = 0, 0
    for outcome in measure.part:
        said, told = measure.value(outcome), people.get(outcome.case.id)
        true = math.nan if told is None else measure.value(Outcome(outcome.case, told))
        if told is None and math.isnan(said):
            invalid += 1
        elif told is None:
            rest.append(said)
            clusters[1].append(outcome.case.clusters[0])
        elif math.isnan(said) or math.isnan(true):
            disputed += 1
        else:
            pairs.append((said, true))
            clusters[0].append(outcome.case.clusters[0])
    if len(pairs) < 2:
        return None
    given = np.array(pairs)
    found = ppi(rest, given[:, 0], given[:, 1], measure.ends, clusters=clusters[0] + clusters[1])
    factor = 100 if measure.unit == "%" else 1
    return Score(
        f"{measure.name}_corrected",
        factor * found.value,
        found.interval.scaled(factor),
        len(rest) + len(pairs),
        measure.unit,
        {"labelled_not_valid_for_both": disputed, "not_valid": invalid},
    )


def _by_card(measure: _Measure, values: Mapping[str, float], card: Agreement) -> Score | None:
    low, high = measure.ends
    said = [value for o in measure.part if not math.isnan(value := measure.value(o))]
    # Rows are people's labels, columns the judge's; what either finds invalid is left out.
    table = {(row, column): 0 for row in measure.ends for column in measure.ends}
    for person, counts in zip(card.labels, card.matrix, strict=True):
        for judge, count in zip(card.labels, counts, strict=True):
            if person in values and judge in values:
                table[values[person], values[judge]] += count
    positives = table[high, high], table[high, high] + table[high, low]
    negatives = table[low, low], table[low, low] + table[low, high]
    if not (said and positives[1] and negatives[1]):
        return None
    if positives[0] / positives[1] + negatives[0] / negatives[1] - 1 < YOUDEN:
        return None
    found = rogan_gladen(said.count(high), len(said), *positives, *negatives)
    factor = 100 * (high - low)
    shift = 100 * low
    ends = found.interval.scaled(factor)
    return Score(
        f"{measure.name}_by_card",
        factor * found.value + shift,
        type(ends)(ends.low + shift, ends.high + shift),
        len(said),
        "%",
        {"not_valid": len(measure.part) - len(said)},
    )
