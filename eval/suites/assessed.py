"""Suites with one question an image: does it show its assessment point?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from PIL.Image import Image

from ..core import ALL, Case, Outcome, Question, Score, count_excluded
from ..prompts import read_prompt
from .asking import ask_yes_no
from .base import YES_NO, Headline, Measure, R, Suite, by_variant, case_items, values_of
from .scores import cluster_labels, mean_score, statistics

QUESTION = "shows"


def shown_headline(variant: str, meaning: str) -> Headline:
    """Ranks by the share of one variant's images that show their point."""
    return Headline(
        score=f"shown_{variant}",
        better="higher",
        meaning=meaning,
        items=case_items(QUESTION, YES_NO, variant),
        broken_down=("shown",),
    )


class Assessed(Suite[R]):
    """Share of images that show their point, in two variants, and the gap between them."""

    has_right_images = True
    worths = {QUESTION: YES_NO}

    @property
    def prompts(self) -> tuple[str, ...]:
        return (f"assess_{self.persona}",)

    def ask_point(
        self, case: Case, point: str, images: Sequence[Image], probe: str
    ) -> list[Question]:
        """Whether the image shows the assessment point."""
        if probe != "original":
            return []
        question = f"Does the picture show the following? {point}"
        return [ask_yes_no(case, QUESTION, read_prompt(*self.prompts), question, images[-1])]

    def correctness(self, outcome: Outcome) -> float:
        return YES_NO.of(outcome.verdict(QUESTION))

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        for variant, part in by_variant(outcomes, self.variants):
            yield self.measure(f"shown_{variant}", part, QUESTION, unit="1")

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        shares = [
            shown_share(part, f"shown_{variant}", ALL)
            for variant, part in by_variant(outcomes, self.variants)
        ]
        return [*shares, *self._gap(outcomes)]

    def _gap(self, outcomes: Sequence[Outcome]) -> list[Score]:
        """Share of the first variant less that of the second."""
        values = values_of(outcomes, QUESTION, YES_NO)
        columns = np.full((len(outcomes), 2), np.nan)
        for place, outcome in enumerate(outcomes):
            columns[place, self.variants.index(outcome.case.variant)] = values[place]
        return statistics(
            ("gap",),
            columns,
            cluster_labels(outcomes),
            ends=(0, 1),
            statistic=lambda means: means[..., :1] - means[..., 1:],
            counts=(int((~np.isnan(values)).sum()),),
            unit="1",
            excluded=_left_out(outcomes),
        )


def shown_share(outcomes: Sequence[Outcome], name: str, group: str) -> Score:
    """Share of images that show their point."""
    values = values_of(outcomes, QUESTION, YES_NO)
    return mean_score(name, values, outcomes, unit="1", group=group, excluded=_left_out(outcomes))


def _left_out(outcomes: Sequence[Outcome]) -> dict[str, int]:
    return count_excluded([o.label(QUESTION) for o in outcomes], YES_NO.values)
