"""`attribute_decoupling`: the same concepts in rare and in common company (CF-World 5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL.Image import Image

from ...schema import AttributeDecoupling
from ..core import Case, Question
from .assessed import Assessed, shown_headline


class AttributeDecouplingSuite(Assessed[AttributeDecoupling]):
    """Share of images with the attribute, where it is usual and where it isn't."""

    name = "attribute_decoupling"
    variants = ("common", "rare")
    headline = shown_headline("rare", "Share of images that show a rare attribute.")
    meanings = {
        "shown_common": "Share of images that show an attribute where it is usual.",
        "shown_rare": "Share of images that show an attribute where it is rare.",
        "gap": "Common less rare.",
    }

    def cases(self, row: AttributeDecoupling, seeds: int) -> Iterator[Case]:
        for number, seed in enumerate(row.seeds[:seeds]):
            yield Case(
                row=row.id,
                variant=row.rarity,
                seed=seed,
                number=number,
                prompt=row.prompt,
                clusters=(row.pair,),
            )

    def together(self, row: AttributeDecoupling) -> str:
        return row.pair

    def questions(
        self, row: AttributeDecoupling, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        return self.ask_point(case, row.assessment_point, images, probe)
