"""`counterfactual_denominalized`: outcomes named and outcomes described (CF-World 5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL.Image import Image

from ...schema import CounterfactualDenominalized, Row
from ..core import Case, Outcome
from ..judges import Question
from ..prompts import read_prompt
from .assessed import ask_point, shown_by_variant
from .scores import Score

VARIANTS = ("described", "named")


class CounterfactualDenominalizedSuite:
    """Each L2 with its outcome described and with its outcome named: the gain is the noun's."""

    def __init__(self, persona: str) -> None:
        self.prompts = (f"assess_{persona}",)

    def cases(self, row: Row, seeds: int) -> Iterator[Case]:
        assert isinstance(row, CounterfactualDenominalized)
        prompts = (row.prompt, row.original_prompt)
        for variant, prompt in zip(VARIANTS, prompts, strict=True):
            for number, seed in enumerate(row.seeds[:seeds]):
                yield Case(row.id, variant, seed, number, prompt, (row.group,))

    def questions(
        self, row: Row, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        assert isinstance(row, CounterfactualDenominalized)
        return ask_point(case, row.assessment_point, images, probe, read_prompt(*self.prompts))

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return shown_by_variant(outcomes, VARIANTS, "denominalization_gain")
