"""`real_gold`: a judge's questions about images of real generators, which readers have labeled.

(No paper.) Drawn gold images are clear. Here things are half drawn, fused, hidden or missing, and
readers say what is there. The question is that of spatial prompts, of whichever thing the prompt
mentions first: is it left of the other one, and is it above it?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from PIL.Image import Image
from pydantic import BaseModel

from ...parsing import parse, read_rows
from ...readings import UNSETTLED, ImageReading, columns_of
from ...schema import Provenance, RealGold
from ..core import FAILURES, INVALID, Case, Outcome, Question, Score
from ..questions.asking import Stated, ask_stated, b_comes_first
from .base import Headline, Item, Items, Suite, each_once
from .columns import cluster_numbers
from .scoring import in_groups, mean_value, paired_difference, statistics
from .spatial import HOLDS, QUESTION

AXES: Mapping[str, str] = {"horizontal": "left_of", "vertical": "above"}
"""Variant of a case -> relation of A to B that a judge is asked about."""
LABELS = {"A": "holds", "B": "opposite", "same": INVALID}
"""What readers say comes first on the axis -> right label."""
BOTH, ONE, NEITHER, MERGED = "both", "one", "neither", "merged"
CONDITIONS = (BOTH, ONE, NEITHER, MERGED)
"""What is there of the two things: both; one of them; none; both fused into one."""


def condition_of(row: RealGold) -> str:
    """One of `CONDITIONS`, or `unsettled`."""
    shown = (row.a_shown, row.b_shown)
    if UNSETTLED in shown:
        return UNSETTLED
    if MERGED in shown:
        return MERGED
    return (NEITHER, ONE, BOTH)[shown.count("there")]


def right_label(row: RealGold, axis: str) -> str:
    """Right label of an axis; `unsettled` where readers don't agree about it."""
    condition = condition_of(row)
    if condition != BOTH:
        return UNSETTLED if condition == UNSETTLED else INVALID
    return LABELS.get(row.further_left if axis == "horizontal" else row.higher, UNSETTLED)


class GradedGold(RealGold):
    """The same of an image that code drew, at a level of difficulty; in no release."""

    difficulty: int
    """Level of `scenes.graded`, from 0."""


class RealGoldSuite(Suite[RealGold]):
    """Two questions about each image, in a case each: they have one name, as in spatial configs."""

    name = "real_gold"
    population = "objects"
    prompts = ("order", "stack")
    variants = tuple(AXES)
    worths = {QUESTION: HOLDS}
    offline_rows = 0
    headline = Headline(
        score="recognized",
        better="higher",
        meaning="Share of images of whose two things the judge says which comes first.",
        items=lambda outcomes: _items(outcomes),
        broken_down=("recognized",),
    )
    meanings = {
        "recognized": "Share of images with both things, one clearly left of the other (or above "
        "it), of which the judge says which. Who always says the same gets about 50.",
        "taken_for_opposite": "Share of these images of which it says the opposite.",
        "informedness": "Share recognized of images whose first-mentioned thing comes first, and "
        "of those whose other thing does, together, less 1 (Youden's J): 1 for a judge that sees, "
        "0 for one that guesses between the two or always says the same.",
        "level_refused": "Share of images with both things side by side or one above the other, "
        "asked about the other axis, of which it says that neither comes first.",
        "one_missing_refused": "Share of images with only one of the two things of which it says "
        "that neither comes first.",
        "both_missing_refused": "The same of images with none of them.",
        "merged_refused": "The same of images in which the two are fused into one.",
        "accuracy": "Share of all images with a settled label to which it gives this label.",
        "toward_first_mentioned": "How much more often it says that the first-mentioned thing "
        "comes first than this is so, in points of percent, of images with a clear order.",
        "toward_first_named": "How much more often it says that of the thing that its question "
        "names first than this is so, of the same images.",
    }

    @classmethod
    def read_file(cls, text: str) -> list[RealGold] | None:
        """The rows of labels that `audit merge --kind real` merged; None for other paths."""
        path = Path(text)
        return merged_rows(path) if path.suffix == ".jsonl" and path.is_file() else None

    def cases(self, row: RealGold, seeds: int) -> Iterator[Case]:
        pair = "/".join(sorted((row.object_a, row.object_b)))
        for axis in AXES:
            label = right_label(row, axis)
            groups = {"axis": axis, "shown": condition_of(row)}
            if isinstance(row, GradedGold):
                groups["difficulty"] = str(row.difficulty)
            yield Case(
                row=row.id,
                variant=axis,
                seed=row.seeds[0],
                number=0,
                prompt=row.prompt,
                clusters=(pair, row.object_a, row.object_b),
                groups=groups | ({"model": row.model} if row.model else {}),
                key={} if label == UNSETTLED else {QUESTION: label},
            )

    def questions(
        self, row: RealGold, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        claim = Stated(row.object_a, AXES[case.variant], row.object_b)
        return ask_stated(claim, case, probe, images)

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, _scores)


def _scores(outcomes: Sequence[Outcome], group: str) -> Iterator[Score]:
    """The scores of which there are images."""
    clear = [o for o in outcomes if o.case.key.get(QUESTION) in HOLDS.values]
    level = [
        o
        for o in outcomes
        if o.case.groups["shown"] == BOTH and o.case.key.get(QUESTION) == INVALID
    ]
    shown = {
        name: [o for o in outcomes if o.case.groups["shown"] == condition]
        for name, condition in (
            ("one_missing_refused", ONE),
            ("both_missing_refused", NEITHER),
            ("merged_refused", MERGED),
        )
    }
    share = partial(mean_value, group=group, unit="%")
    if clear:
        yield share("recognized", clear, _is_right, _label)
        yield share("taken_for_opposite", clear, _is_opposite, _label)
        yield _informedness(clear, group)
    if level:
        yield share("level_refused", level, _is_right, _label)
    for name, images in shown.items():
        if images:
            yield share(name, images, _is_right, _label)
    yield share("accuracy", outcomes, _is_right, _reason)
    if clear:
        yield _toward("toward_first_mentioned", clear, lambda case: "holds", group)
        yield _toward("toward_first_named", clear, _first_named, group)


def _label(outcome: Outcome) -> str:
    return outcome.label(QUESTION)


def _reason(outcome: Outcome) -> str:
    """Why an image does not count."""
    return _label(outcome) if QUESTION in outcome.case.key else UNSETTLED


def _is_right(outcome: Outcome) -> float:
    """1 for the readers' label, 0 for another; NaN for a failure, or where it is unsettled."""
    label, right = _label(outcome), outcome.case.key.get(QUESTION)
    return math.nan if label in FAILURES or right is None else float(label == right)


def _is_opposite(outcome: Outcome) -> float:
    label = _label(outcome)
    return math.nan if label in FAILURES else float(label == _other(outcome.case.key[QUESTION]))


def _other(label: str) -> str:
    return "opposite" if label == "holds" else "holds"


def _informedness(clear: Sequence[Outcome], group: str) -> Score:
    right = np.array([_is_right(outcome) for outcome in clear])
    is_first = np.array([outcome.case.key[QUESTION] == "holds" for outcome in clear])
    columns = np.stack([np.where(is_first, right, np.nan), np.where(is_first, np.nan, right)], 1)
    failed = [
        _label(outcome) for outcome, value in zip(clear, right, strict=True) if value != value
    ]
    (score,) = statistics(
        ("informedness",),
        columns,
        cluster_numbers(clear),
        ends=(0, 1),
        statistic=lambda means: means.sum(axis=-1, keepdims=True) - 1,
        counts=[len(clear) - len(failed)],
        unit="1",
        group=group,
        excluded={name: failed.count(name) for name in sorted(set(failed))},
    )
    return score


def _toward(name: str, clear: Sequence[Outcome], first: Callable[[Case], str], group: str) -> Score:
    """Paired difference: how often the judge says a label, less how often it is right.

    Images that it calls neither, or fails on, are left out, as it then prefers no thing.
    """
    pairs = np.array(
        [
            (float(_label(o) == first(o.case)), float(o.case.key[QUESTION] == first(o.case)))
            if _label(o) in HOLDS.values
            else (math.nan, math.nan)
            for o in clear
        ]
    )
    left_out = [_label(o) for o in clear if _label(o) not in HOLDS.values]
    return paired_difference(
        name,
        pairs,
        cluster_numbers(clear),
        group=group,
        excluded={label: left_out.count(label) for label in sorted(set(left_out))},
    )


def _first_named(case: Case) -> str:
    """The label that says that the thing comes first which the question names first."""
    return "opposite" if b_comes_first(case) else "holds"


def _items(outcomes: Sequence[Outcome]) -> Items:
    return {
        o.case.id: Item((_is_right(o),), o.case.cluster)
        for o in outcomes
        if o.case.key.get(QUESTION) in HOLDS.values
    }


class _MergedLabels(BaseModel, frozen=True):
    """A row of `audit merge --kind real`."""

    image: str
    """Name of the image, below the folder of the images."""
    object_a: str
    object_b: str
    votes: dict[str, ImageReading]
    """Reader -> what they saw."""


def merged_rows(path: Path) -> list[RealGold]:
    """Rows of images of the user's own. Raises DataError for a row that does not fit."""

    def row_of(merged: _MergedLabels) -> RealGold:
        return RealGold(
            image_file=merged.image,
            object_a=merged.object_a,
            object_b=merged.object_b,
            review=[],
            provenance=Provenance(bank=path.name, entry=merged.image, author="", calls=[]),
            **columns_of(merged.votes, dict.fromkeys(merged.votes, "unstated")),
        )

    rows = ((n, row_of(parse(_MergedLabels, row, path, n))) for n, row in read_rows(path))
    return each_once(rows, path)
