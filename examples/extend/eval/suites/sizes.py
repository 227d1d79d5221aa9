"""`size_override`: are sizes drawn as stated, or as usual?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL.Image import Image

from ...schema import SizeOverride
from ..core import ORIGINAL, Case, Outcome, Question, Score
from ..questions import read_prompt
from ..questions.asking import ask_yes_no
from .base import Headline, Suite, by_variant, case_items
from .scoring import mean_worth, variant_scores
from .worths import YES_NO


class SizeOverrideSuite(Suite[SizeOverride]):
    """Share of images with the stated sizes, where they are usual and where they are not."""

    name = "size_override"
    variants = ("usual", "exchanged")
    has_right_images = True
    worths = {"shows": YES_NO}
    meanings = {
        "shown_usual": "Share of images with the usual sizes, which were asked for.",
        "shown_exchanged": "Share of images with exchanged sizes, which were asked for.",
        "gap": "Usual less exchanged: what habit decides.",
    }
    headline = Headline(
        score="shown_exchanged",
        better="higher",
        meaning="Share of images with exchanged sizes, which were asked for.",
        items=case_items("shows", YES_NO, "exchanged"),
    )

    def cases(self, row: SizeOverride, seeds: int) -> Iterator[Case]:
        return self.seeded(row, seeds, {row.sizes: row.prompt}, (row.pair,))

    def together(self, row: SizeOverride) -> str:
        return row.pair

    def questions(
        self, row: SizeOverride, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        if probe != ORIGINAL:
            return []
        question = f"Does the picture show the following? {row.assessment_point}"
        return [ask_yes_no(case, "shows", read_prompt(*self.prompts), question, images[-1])]

    def correctness(self, outcome: Outcome) -> float:
        return YES_NO.of(outcome.verdict("shows"))

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        shares = [
            mean_worth(f"shown_{variant}", part, "shows", YES_NO, unit="1")
            for variant, part in by_variant(outcomes, self.variants)
        ]
        gap = variant_scores(("gap",), outcomes, "shows", YES_NO, self.variants, unit="1")
        return [*shares, *gap]
