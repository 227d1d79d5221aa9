"""`consistency`: what is left of an image, or of its caption, after a round trip (ACON).

A run starts from images or from captions, and has a captioner, a generator, both, or neither; which
of the variants are its own follows from that, see `roundtrips.routes`. Ten questions about the
start, or two about each edit, have right answers; `swap` asks each a second time, with the answers
in the other order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from ...schema import Consistency
from ..core import Case, Outcome, Question, Score, count_excluded, is_mirrored
from ..questions import read_prompt
from ..questions.asking import ask_yes_no
from ..roundtrips.criteria import (
    corrected_pearson,
    f1_of,
    pearson_of,
    share_of,
    shuffled_accuracy,
    shuffled_pearson,
)
from ..roundtrips.routes import ROUTES, route_of, variants_of
from ..stats.bootstrap import Array
from .base import Headline, Item, Items, Suite
from .scoring import statistics
from .worths import YES_NO

TEN = 10
"""Questions about the start; those about the edits follow, two each."""
EDITS = 3
NAMES = tuple(f"q{number}" for number in range(1, TEN + 2 * EDITS + 1))
SWAP = "swap"
CRITERIA = ("given", "cyclic", "conjugated", "edit_first", "edit_last")
"""Of `roundtrips.routes`."""


@dataclass(frozen=True)
class AskedOnce:
    """Every question about some outcomes, one place each; shapes (n,)."""

    right: Array
    """1 where the answer is the right one, 0 where it is not, NaN without an answer."""
    again: Array
    """The same of the second asking."""
    true: Array
    """1 where yes is the right answer."""
    rows: NDArray[np.str_]
    """Id of the row: what is resampled together."""
    excluded: Mapping[str, int]
    """Questions without an answer, by label."""


def asked_of(outcomes: Iterable[Outcome], criterion: str) -> AskedOnce:
    """The questions of one criterion, in an order that other runs share."""
    right, again, true, rows, labels = [], [], [], [], []
    for outcome in sorted(outcomes, key=lambda one: (one.case.row, _place(one.case))):
        if route_of(outcome.case.variant)[0].criterion != criterion:
            continue
        for name, key in outcome.case.key.items():
            said = outcome.label(name)
            labels.append(said)
            right.append(_right(said, key))
            again.append(_right(outcome.label(name, SWAP), key))
            true.append(float(key == "yes"))
            rows.append(outcome.case.row)
    return AskedOnce(
        np.array(right, dtype=float),
        np.array(again, dtype=float),
        np.array(true, dtype=float),
        np.array(rows, dtype=str),
        count_excluded(labels, YES_NO.values),
    )


def _place(case: Case) -> tuple[int, int]:
    return route_of(case.variant)[1], case.number


def _right(said: str, key: str) -> float:
    return float(said == key) if said in YES_NO.values else math.nan


def forward_scores(
    first: AskedOnce, last: AskedOnce, names: Sequence[str] = ("forward", "forward_chance")
) -> list[Score]:
    """Pearson's r of the 0/1 outcomes of both orders of an edit, and what shuffled pairs give.

    With a second asking also r without the judge's noise, `forward_corrected`. Questions without
    an answer on either side are in no pair.
    """
    a, b = first.right, last.right
    gap = np.isnan(a) | np.isnan(b)
    yes = np.where(gap | (first.true == 0), np.nan, 1.0)
    no = np.where(gap | (first.true == 1), np.nan, 1.0)
    kept = np.where(gap, np.nan, 1.0)
    columns = [a * kept, b * kept, a * b * kept, a * yes, b * yes, a * no, b * no]
    columns.append(first.true * kept)

    def statistic(means: Array) -> Array:
        part = [means[..., place] for place in range(8)]
        r = pearson_of(*part[:3])
        return np.stack([r, shuffled_pearson((part[3], part[4]), (part[5], part[6]), part[7])], -1)

    n = int((~gap).sum())
    found = statistics(
        names,
        np.stack(columns, axis=1),
        first.rows,
        ends=(0, 1),
        statistic=statistic,
        counts=[n, n],
        unit="1",
        excluded=_added(first, last),
    )
    twice = np.where(gap | np.isnan(first.again) | np.isnan(last.again), np.nan, 1.0)
    if not np.isnan(twice).all():
        found += _corrected(first, last, twice)
    return found


def _corrected(first: AskedOnce, last: AskedOnce, kept: Array) -> list[Score]:
    a, b, a2, b2 = first.right, last.right, first.again, last.again
    columns = [a, b, a * b, a2, a * a2, b2, b * b2]

    def statistic(means: Array) -> Array:
        a, b, both, a2, twice_a, b2, twice_b = (means[..., place] for place in range(7))
        found = corrected_pearson(
            pearson_of(a, b, both), pearson_of(a, a2, twice_a), pearson_of(b, b2, twice_b)
        )
        return np.asarray(found[..., None])

    return statistics(
        ("forward_corrected",),
        np.stack([column * kept for column in columns], axis=1),
        first.rows,
        ends=(0, 1),
        statistic=statistic,
        counts=[int((~np.isnan(kept)).sum())],
        unit="1",
    )


def accuracy_scores(criterion: str, asked: AskedOnce) -> list[Score]:
    """Accuracy, F1 of yes, the accuracy of shuffled pairs, and the share of wrong answers that the
    judge takes back when it is asked again."""
    right, true = asked.right, asked.true
    columns = [right, right * true, (1 - right) * (1 - true), (1 - right) * true]

    def statistic(means: Array) -> Array:
        right, hit, false_alarm, miss = (means[..., place] for place in range(4))
        chance = shuffled_accuracy(hit + false_alarm, hit + miss)
        return np.stack([right, f1_of(hit, false_alarm, miss), chance], axis=-1)

    n = int((~np.isnan(right)).sum())
    names = (criterion, f"{criterion}_f1", f"{criterion}_chance")
    found = statistics(
        names,
        np.stack(columns, axis=1),
        asked.rows,
        ends=(0, 1),
        statistic=statistic,
        counts=[n, n, n],
        excluded=asked.excluded,
    )
    wrong = (1 - right) * np.where(np.isnan(asked.again), np.nan, 1.0)
    if not np.isnan(wrong).all():
        found += statistics(
            (f"{criterion}_taken_back",),
            np.stack([wrong, wrong * asked.again], axis=1),
            asked.rows,
            ends=(0, 1),
            statistic=lambda means: share_of(means[..., 1:], means[..., :1]),
            counts=[int(np.nansum(wrong))],
        )
    return found


def _row_items(outcomes: Sequence[Outcome]) -> Items:
    """Row -> the share of its questions that are answered right, over all criteria of the run."""
    said: dict[str, list[float]] = {}
    for outcome in outcomes:
        values = (_right(outcome.label(name), key) for name, key in outcome.case.key.items())
        said.setdefault(outcome.case.row, []).extend(values)
    return {row: Item((_mean(found),), row) for row, found in said.items()}


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


class ConsistencySuite(Suite[Consistency]):
    """Cyclic consistency, forward equivariance and conjugated consistency of a grid of models."""

    name = "consistency"
    takes_trips = True
    variants = tuple(v for route in ROUTES.values() for v in variants_of(route, EDITS))
    worths = dict.fromkeys(NAMES, YES_NO)
    headline = Headline(
        score="right",
        better="higher",
        meaning="Share of all questions about what a run made that are answered rightly.",
        items=_row_items,
    )
    meanings = {
        "right": "Share of all questions about what a run made that are answered rightly.",
        **{
            f"{criterion}{end}": f"{told} {what}"
            for criterion, what in {
                "given": "about the image or caption itself, without any model.",
                "cyclic": "about the start, asked of what came back.",
                "conjugated": "about an edit that was made on the other side.",
                "edit_first": "about an edit that was made before the other modality.",
                "edit_last": "about an edit that was made after it.",
            }.items()
            for end, told in {
                "": "Share of right answers to questions",
                "_f1": "F1 of the answer yes to questions",
                "_chance": "Share of right answers in shuffled pairs of answers and keys,",
                "_taken_back": "Of the wrong answers, the share that is right when the judge is "
                "asked about the same a second time, of questions",
            }.items()
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
            asked = self._asked(number)
            key = {NAMES[place]: "yes" if row.answers[place] else "no" for place in asked}
            prompt = row.edits[number - 1] if number else row.caption
            for place, seed in enumerate(row.seeds[: seeds if route.steps else 1]):
                yield Case(row.id, variant, seed, place, prompt, (row.id,), key=key)

    def questions(
        self, row: Consistency, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        if is_mirrored(probe):
            return []
        route, number = route_of(case.variant)
        assess, read = self.prompts
        is_text = route.end == "text"
        prompt = read_prompt(read if is_text else assess)
        image = None if is_text else images[-1]
        return [
            ask_yes_no(case, NAMES[place], prompt, row.questions[place], image, probe)
            for place in self._asked(number)
        ]

    @staticmethod
    def _asked(number: int) -> range:
        """Places of the questions about an edit from 1, or about the start for 0."""
        return range(TEN + 2 * (number - 1), TEN + 2 * number) if number else range(TEN)

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        parts = {criterion: asked_of(outcomes, criterion) for criterion in CRITERIA}
        whole = _joined(list(parts.values()))
        found = [
            *statistics(
                ("right",),
                whole.right[:, None],
                whole.rows,
                ends=(0, 1),
                counts=[int((~np.isnan(whole.right)).sum())],
                excluded=whole.excluded,
            )
        ]
        for criterion, asked in parts.items():
            if len(asked.right):
                found += accuracy_scores(criterion, asked)
        if len(parts["edit_first"].right) and len(parts["edit_last"].right):
            found += forward_scores(parts["edit_first"], parts["edit_last"])
        alike = (whole.right == whole.again) + 0 * whole.right * whole.again
        if not np.isnan(alike).all():
            n = int((~np.isnan(alike)).sum())
            found += statistics(
                ("asked_twice",), alike[:, None], whole.rows, ends=(0, 1), counts=[n]
            )
        return found


def _added(*parts: AskedOnce) -> dict[str, int]:
    """What all of them leave out."""
    total = sum((Counter(part.excluded) for part in parts), Counter[str]())
    return dict(sorted(total.items()))


def _joined(parts: Sequence[AskedOnce]) -> AskedOnce:
    arrays = ([getattr(part, name) for part in parts] for name in ("right", "again", "true"))
    right, again, true = (np.concatenate(each) for each in arrays)
    rows = np.concatenate([part.rows for part in parts])
    return AskedOnce(right, again, true, rows, _added(*parts))
