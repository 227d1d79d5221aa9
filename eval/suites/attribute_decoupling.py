"""`attribute_decoupling`: the same concepts in rare and in common company (CF-World 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL.Image import Image

from ...schema import AttributeDecoupling, Row
from ..core import Case, Outcome
from ..judges import Question
from ..prompts import read_prompt
from .assessed import ask_point, shown_by_variant
from .scores import Score

VARIANTS = ("common", "rare")


class AttributeDecouplingSuite:
    """Share of pictures with the attribute, where it is usual and where it isn't."""

    def __init__(self, persona: str) -> None:
        self.prompts = (f"assess_{persona}",)

    def cases(self, row: Row, seeds: int) -> Iterator[Case]:
        assert isinstance(row, AttributeDecoupling)
        for number, seed in enumerate(row.seeds[:seeds]):
            yield Case(row.id, row.rarity, seed, number, row.prompt, (row.pair,))

    def questions(
        self, row: Row, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        assert isinstance(row, AttributeDecoupling)
        return ask_point(case, row.assessment_point, images, probe, read_prompt(*self.prompts))

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return shown_by_variant(outcomes, VARIANTS, "gap")
