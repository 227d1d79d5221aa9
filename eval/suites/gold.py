"""`t2i_correctness_gold`: can a judge be believed? Images whose layout is known (no paper)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from PIL.Image import Image

from ...schema import T2ICorrectnessGold
from ..core import FAILURES, INVALID, Case, Outcome, Question, Score, count_excluded
from ..tallies.scores import in_groups, mean_score
from .base import Headline, Item, Items, Suite
from .correctness import RIGHT, ask_arrangement

SAID = {"right": "correct", "swapped": "wrong"}
"""Layout -> what a judge says of it who sees what is there; any other is invalid."""
QUESTION = "arrangement"


class T2ICorrectnessGoldSuite(Suite[T2ICorrectnessGold]):
    """The judge's question about a pair, asked of images that code drew right or wrong."""

    name = "t2i_correctness_gold"
    prompts = (QUESTION,)
    variants = ("right", "swapped", "missing", "doubled", "above")
    worths = {QUESTION: RIGHT}
    headline = Headline(
        score="recognized",
        better="higher",
        meaning="Share of right and swapped images that the judge tells apart.",
        items=lambda outcomes: _items(outcomes),
        broken_down=("recognized",),
    )
    meanings = {
        "recognized": "Share of right and swapped images of which the judge says what they are.",
        "right_recognized": "Share of right images that the judge calls correct.",
        "swapped_recognized": "Share of images with the two things exchanged that it calls wrong.",
        "swapped_called_correct": "Share of them that it calls correct: it knows the answer, "
        "and does not look.",
        "controls_recognized": "Share of images with one thing missing, one twice or one above "
        "the other of which it says that neither holds.",
    }

    def cases(self, row: T2ICorrectnessGold, seeds: int) -> Iterator[Case]:
        groups = {"domain": row.domain, "layout": row.layout, "style": row.style}
        return self.seeded(row, seeds, {row.layout: row.prompt}, (row.family,), groups)

    def questions(
        self, row: T2ICorrectnessGold, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        return [ask_arrangement(row, case, probe, images)]

    def together(self, row: T2ICorrectnessGold) -> str:
        return row.source_id

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, _scores)


def _scores(outcomes: list[Outcome], group: str) -> Iterator[Score]:
    layouts = {
        "recognized": ("right", "swapped"),
        "right_recognized": ("right",),
        "swapped_recognized": ("swapped",),
        "swapped_called_correct": ("swapped",),
        "controls_recognized": ("missing", "doubled", "above"),
    }
    for name, shown in layouts.items():
        part = [o for o in outcomes if o.case.variant in shown]
        said = "correct" if name == "swapped_called_correct" else ""
        labels = [o.label(QUESTION) for o in part]
        yield mean_score(
            name,
            np.array([_says(o, said) for o in part], dtype=float),
            part,
            group=group,
            excluded=count_excluded(labels, set(labels) - set(FAILURES)),
        )


def _says(outcome: Outcome, said: str = "") -> float:
    """1 where the judge says this, or what is there; NaN for a failure."""
    label = outcome.label(QUESTION)
    if label in FAILURES:
        return math.nan
    return float(label == (said or SAID.get(outcome.case.variant, INVALID)))


def _items(outcomes: Sequence[Outcome]) -> Items:
    return {
        o.case.id: Item((_says(o),), o.case.clusters[0]) for o in outcomes if o.case.variant in SAID
    }
