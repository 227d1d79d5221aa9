"""`consistency`: information that an image or its caption keeps over a round trip (ACON).

A run starts from images or from captions, and has a captioner, a generator, both, or neither; which
variants it has follows from that, see `roundtrips.routes`. Ten questions about the
start, or two about each edit, have right answers; `swap` asks each a second time, with the answers
in the other order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from ...schema import Consistency
from ..core import ORIGINAL, Case, Outcome, Question, Score, count_excluded, is_mirrored
from ..questions import read_prompt
from ..questions.asking import ask_yes_no
from ..roundtrips.criteria import (
    corrected_pearson,
    f1_of,
    pearson_of,
    shuffled_accuracy,
    shuffled_pearson,
)
from ..roundtrips.routes import MOST_CYCLES, ROUTES, route_of, variants_of
from ..stats.bootstrap import Array
from .base import PAPER, PERSONAS, Headline, Item, Items, Suite
from .scoring import statistics
from .worths import YES_NO

TEN = 10
"""Questions about the start; those about the edits follow, two each."""
EDITS = 3
NAMES = tuple(f"q{number}" for number in range(1, TEN + 2 * EDITS + 1))
PARTS = {"similarities": NAMES[: TEN // 2], "differences": NAMES[TEN // 2 : TEN]}
"""The questions in which an image and the drawing of its caption agreed when the row was written,
and those in which they differed."""
SWAP = "swap"
CRITERIA = ("given", "cyclic", "conjugated", "edit_first", "edit_last")
"""Criteria of ACON, see `roundtrips.routes`."""
CYCLES = ("cyclic", *(f"cycle{count}" for count in range(2, MOST_CYCLES + 1)))
"""Criteria of 1, 2, ... round trips one after another."""


@dataclass(frozen=True)
class CriterionAnswers:
    """Answers to all questions about some outcomes; shapes (n,)."""

    right: Array
    """1 for a right answer, 0 for a wrong one, NaN without an answer."""
    retest: Array
    """The same for the second time that the judge is asked."""
    true: Array
    """1 where yes is the right answer."""
    rows: NDArray[np.str_]
    """Id of the row; questions of a row are resampled together."""
    excluded: Mapping[str, int]
    """Questions without an answer, by label."""


def answers_of(
    outcomes: Iterable[Outcome], criterion: str, names: Collection[str] = NAMES
) -> CriterionAnswers:
    """The answers to the questions of one criterion with these names, in the same order for every
    run."""
    right, retest, true, rows, labels = [], [], [], [], []
    for outcome in sorted(outcomes, key=lambda outcome: (outcome.case.row, _place(outcome.case))):
        if route_of(outcome.case.variant)[0].criterion != criterion:
            continue
        for name, key in outcome.case.key.items():
            if name not in names:
                continue
            label = outcome.label(name)
            labels.append(label)
            right.append(_right(label, key))
            retest.append(_right(outcome.label(name, SWAP), key))
            true.append(float(key == "yes"))
            rows.append(outcome.case.row)
    return CriterionAnswers(
        np.array(right, dtype=float),
        np.array(retest, dtype=float),
        np.array(true, dtype=float),
        np.array(rows, dtype=str),
        count_excluded(labels, YES_NO.values),
    )


def cycle_scores(outcomes: Sequence[Outcome]) -> Iterator[Score]:
    """Right answers after two and more round trips, and the share of answers that are the same as
    after one fewer: 100 where the loop has converged, as far as the questions tell."""
    labels: dict[str, dict[tuple[str, int, str], str]] = {}
    for outcome in outcomes:
        case = outcome.case
        criterion = route_of(case.variant)[0].criterion
        for name in case.key if criterion in CYCLES else ():
            place = case.row, case.number, name
            labels.setdefault(criterion, {})[place] = outcome.label(name)
    for count, (before, criterion) in enumerate(pairwise(CYCLES), 2):
        answers = answers_of(outcomes, criterion)
        if not len(answers.right):
            continue
        places = sorted(labels[criterion])
        values = [
            float(labels[criterion][place] == earlier)
            if (earlier := labels.get(before, {}).get(place)) in YES_NO.values
            and labels[criterion][place] in YES_NO.values
            else math.nan
            for place in places
        ]
        settled, rows = np.array(values), np.array([row for row, _, _ in places])
        for score_name, column, clusters, excluded in (
            (f"cyclic_{count}", answers.right, answers.rows, answers.excluded),
            (f"settled_{count}", settled, rows, {}),
        ):
            n = int((~np.isnan(column)).sum())
            yield from statistics(
                (score_name,),
                column[:, None],
                clusters,
                ends=(0, 1),
                counts=[n],
                excluded=excluded,
            )


def _place(case: Case) -> tuple[int, int]:
    return route_of(case.variant)[1], case.number


def _right(label: str, key: str) -> float:
    return float(label == key) if label in YES_NO.values else math.nan


def forward_scores(
    first: CriterionAnswers,
    last: CriterionAnswers,
    score_names: Sequence[str] = ("forward", "forward_chance"),
) -> list[Score]:
    """Pearson's r of the 0/1 outcomes of both orders of an edit, and r of shuffled pairs.

    With retests also r without the judge's noise, `forward_corrected`. Questions without an answer
    on either side are excluded.
    """
    a, b = first.right, last.right
    gap = np.isnan(a) | np.isnan(b)
    yes = np.where(gap | (first.true == 0), np.nan, 1.0)
    no = np.where(gap | (first.true == 1), np.nan, 1.0)
    answered = np.where(gap, np.nan, 1.0)
    columns = [a * answered, b * answered, a * b * answered, a * yes, b * yes, a * no, b * no]
    columns.append(first.true * answered)

    def statistic(means: Array) -> Array:
        moments = [means[..., place] for place in range(8)]
        r = pearson_of(*moments[:3])
        return np.stack(
            [r, shuffled_pearson((moments[3], moments[4]), (moments[5], moments[6]), moments[7])],
            -1,
        )

    n = int((~gap).sum())
    scores = statistics(
        score_names,
        np.stack(columns, axis=1),
        first.rows,
        ends=(0, 1),
        statistic=statistic,
        counts=[n, n],
        unit="1",
        excluded=_added(first, last),
    )
    twice = np.where(gap | np.isnan(first.retest) | np.isnan(last.retest), np.nan, 1.0)
    if not np.isnan(twice).all():
        scores += _corrected(first, last, twice)
    return scores


def _corrected(first: CriterionAnswers, last: CriterionAnswers, answered: Array) -> list[Score]:
    a, b, a2, b2 = first.right, last.right, first.retest, last.retest
    columns = [a, b, a * b, a2, a * a2, b2, b * b2]

    def statistic(means: Array) -> Array:
        a, b, product, a2, twice_a, b2, twice_b = (means[..., place] for place in range(7))
        corrected = corrected_pearson(
            pearson_of(a, b, product), pearson_of(a, a2, twice_a), pearson_of(b, b2, twice_b)
        )
        return np.asarray(corrected[..., None])

    return statistics(
        ("forward_corrected",),
        np.stack([column * answered for column in columns], axis=1),
        first.rows,
        ends=(0, 1),
        statistic=statistic,
        counts=[int((~np.isnan(answered)).sum())],
        unit="1",
    )


def accuracy_scores(criterion: str, answers: CriterionAnswers) -> list[Score]:
    """Accuracy, F1 of yes, the accuracy of shuffled pairs, and the share of wrong answers that the
    judge takes back when it is asked again."""
    right, true = answers.right, answers.true
    columns = [right, right * true, (1 - right) * (1 - true), (1 - right) * true]

    def statistic(means: Array) -> Array:
        right, hit, false_alarm, miss = (means[..., place] for place in range(4))
        chance = shuffled_accuracy(hit + false_alarm, hit + miss)
        return np.stack([right, f1_of(hit, false_alarm, miss), chance], axis=-1)

    n = int((~np.isnan(right)).sum())
    score_names = (criterion, f"{criterion}_f1", f"{criterion}_chance")
    scores = statistics(
        score_names,
        np.stack(columns, axis=1),
        answers.rows,
        ends=(0, 1),
        statistic=statistic,
        counts=[n, n, n],
        excluded=answers.excluded,
    )
    if not np.isnan(right * answers.retest).all():
        retest_of_wrong = np.where(right == 0, answers.retest, np.nan)
        scores += statistics(
            (f"{criterion}_taken_back",),
            retest_of_wrong[:, None],
            answers.rows,
            ends=(0, 1),
            counts=[int((~np.isnan(retest_of_wrong)).sum())],
        )
    return scores


def _accuracy(name: str, answers: CriterionAnswers) -> list[Score]:
    """The accuracy alone; nothing without questions."""
    if not len(answers.right):
        return []
    return statistics(
        (name,),
        answers.right[:, None],
        answers.rows,
        ends=(0, 1),
        counts=[int((~np.isnan(answers.right)).sum())],
        excluded=answers.excluded,
    )


def _row_items(outcomes: Sequence[Outcome]) -> Items:
    """Row -> the share of its questions that are answered right, over all criteria of the run."""
    values_by_row: dict[str, list[float]] = {}
    for outcome in outcomes:
        if route_of(outcome.case.variant)[0].criterion not in CRITERIA:
            continue
        values = (_right(outcome.label(name), key) for name, key in outcome.case.key.items())
        values_by_row.setdefault(outcome.case.row, []).extend(values)
    return {row: Item((_mean(row_values),), row) for row, row_values in values_by_row.items()}


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if not math.isnan(value)]
    return sum(finite) / len(finite) if finite else math.nan


class ConsistencySuite(Suite[Consistency]):
    """Cyclic consistency, forward equivariance and conjugated consistency of a grid of models."""

    name = "consistency"
    personas = PERSONAS
    population = "starts"
    takes_trips = True
    variants = tuple(v for route in ROUTES.values() for v in variants_of(route, EDITS))
    optional = tuple(v for v, route in ROUTES.items() if route.cycles > 1)
    worths = dict.fromkeys(NAMES, YES_NO)
    headline = Headline(
        score="right",
        better="higher",
        meaning="Share of all questions about what a run made that are answered rightly.",
        items=_row_items,
        checks=(*("given", "cyclic", "conjugated", "edit_first", "edit_last"), "asked_twice"),
    )
    meanings = {
        "right": "Share of all questions about what a run made that are answered rightly.",
        **{
            f"{criterion}{end}": f"{share} {subject}"
            for criterion, subject in {
                "given": "about the image or caption itself, without any model.",
                "cyclic": "about the start, asked of what came back.",
                "conjugated": "about an edit that was made on the other side.",
                "edit_first": "about an edit that was made before the other modality.",
                "edit_last": "about an edit that was made after it.",
            }.items()
            for end, share in {
                "": "Share of right answers to questions",
                "_f1": "F1 of the answer yes to questions",
                "_chance": "Share of right answers in shuffled pairs of answers and keys,",
                "_taken_back": "Of the wrong answers, the share that is right when the judge is "
                "asked about the same a second time, of questions",
            }.items()
        },
        "cyclic_similarities": "`cyclic` over the five questions in which image and drawing "
        "agreed when the row was written.",
        "cyclic_differences": "`cyclic` over the five in which they differed: the harder half.",
        **{
            name: meaning
            for count in range(2, MOST_CYCLES + 1)
            for name, meaning in (
                (
                    f"cyclic_{count}",
                    f"Share of right answers about the start, asked after {count} round trips.",
                ),
                (
                    f"settled_{count}",
                    f"Share of answers after {count} round trips that are the same as after "
                    f"{count - 1}; 100 once the loop has converged, right or wrong.",
                ),
            )
        },
        "forward": "Pearson's r of the right answers of both orders of an edit; judge's noise "
        "lowers it, and so does a share of right answers near 0 or 1.",
        "forward_chance": "The same where each order meets another row's: what is due to questions "
        "that are easy on both sides.",
        "forward_corrected": "r divided by the root of how well the judge agrees with itself.",
        "asked_twice": "Share of questions that the judge answers alike when it is asked twice.",
    }

    @property
    def prompts(self) -> tuple[str, ...]:
        return (f"assess_{self.persona}", f"read_{self.persona}")

    def cases(self, row: Consistency, seeds: int) -> Iterator[Case]:
        for variant in self.variants:
            route, number = route_of(variant)
            places = self._question_places(number)
            key = {NAMES[place]: "yes" if row.answers[place] else "no" for place in places}
            prompt = row.edits[number - 1] if number else row.caption
            for place, seed in enumerate(row.seeds[: seeds if route.steps else 1]):
                yield Case(row.id, variant, seed, place, prompt, (row.id,), key=key)

    def questions(
        self, row: Consistency, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        if is_mirrored(probe) or (self.persona == PAPER and probe != ORIGINAL):
            return []
        route, number = route_of(case.variant)
        assess, read = self.prompts
        is_text = route.end == "text"
        prompt = read_prompt(read if is_text else assess)
        image = None if is_text else images[-1]
        return [
            ask_yes_no(case, NAMES[place], prompt, row.questions[place], image, probe)
            for place in self._question_places(number)
        ]

    @staticmethod
    def _question_places(number: int) -> range:
        """Places of the questions about an edit from 1, or about the start for 0."""
        return range(TEN + 2 * (number - 1), TEN + 2 * number) if number else range(TEN)

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        by_criterion = {criterion: answers_of(outcomes, criterion) for criterion in CRITERIA}
        pooled = _joined(list(by_criterion.values()))
        scores = [
            *statistics(
                ("right",),
                pooled.right[:, None],
                pooled.rows,
                ends=(0, 1),
                counts=[int((~np.isnan(pooled.right)).sum())],
                excluded=pooled.excluded,
                missing=np.isnan(pooled.right)[:, None],
            )
        ]
        for criterion, answers in by_criterion.items():
            if len(answers.right):
                scores += accuracy_scores(criterion, answers)
        for part, names in PARTS.items():
            scores += _accuracy(f"cyclic_{part}", answers_of(outcomes, "cyclic", names))
        if len(by_criterion["edit_first"].right) and len(by_criterion["edit_last"].right):
            scores += forward_scores(by_criterion["edit_first"], by_criterion["edit_last"])
        scores += cycle_scores(outcomes)
        alike = (pooled.right == pooled.retest) + 0 * pooled.right * pooled.retest
        if not np.isnan(alike).all():
            n = int((~np.isnan(alike)).sum())
            scores += statistics(
                ("asked_twice",), alike[:, None], pooled.rows, ends=(0, 1), counts=[n]
            )
        return scores


def _added(*groups: CriterionAnswers) -> dict[str, int]:
    """Excluded questions of all of them, by label."""
    total = sum((Counter(group.excluded) for group in groups), Counter[str]())
    return dict(sorted(total.items()))


def _joined(groups: Sequence[CriterionAnswers]) -> CriterionAnswers:
    arrays = ([getattr(group, name) for group in groups] for name in ("right", "retest", "true"))
    right, retest, true = (np.concatenate(each) for each in arrays)
    rows = np.concatenate([group.rows for group in groups])
    return CriterionAnswers(right, retest, true, rows, _added(*groups))
