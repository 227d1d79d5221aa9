"""`i2i_correctness`: do the actions go to whom they were given? (OTS-Bench)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL.Image import Image

from ...schema import I2ICorrectness, Row
from ..core import Case, Outcome, both
from ..judges import Question
from ..prompts import read_prompt
from .asking import Subject, ask_binding
from .correctness import VARIANTS, accuracy_scores
from .scores import Score, in_groups

QUESTION = "binding"


class I2ICorrectnessSuite:
    """Each edit in both mention orders; who does what is the same."""

    prompts = ("binding",)

    def cases(self, row: Row, seeds: int) -> Iterator[Case]:
        assert isinstance(row, I2ICorrectness)
        pair = "/".join(sorted((row.left.name, row.right.name)))
        instructions = (row.aligned_instruction, row.reverse_instruction)
        category = both(row.left.category, row.right.category)
        for variant, instruction in zip(VARIANTS, instructions, strict=True):
            for number, seed in enumerate(row.seeds[:seeds]):
                yield Case(
                    row.id, variant, seed, number, instruction, (pair,),
                    {"pair_type": row.pair_type, "category": category, "relation": row.relation},
                )  # fmt: skip

    def questions(
        self, row: Row, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        assert isinstance(row, I2ICorrectness)
        subjects = (
            Subject(row.left.name, row.left.look, row.left_expected),
            Subject(row.right.name, row.right.look, row.right_expected),
        )
        return [
            ask_binding(
                case, probe, read_prompt(*self.prompts), subjects, ("correct", "wrong"), images
            )
        ]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, lambda part, group: accuracy_scores(part, QUESTION, group))
