"""`i2i_homogenization`: is it always the left one that acts? (OTS-Bench)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL.Image import Image

from ...schema import I2IHomogenization, Row
from ..core import Case, Outcome, both
from ..judges import Question
from ..prompts import read_prompt
from .asking import Subject, ask_which
from .homogenization import bias_scores
from .scores import Score, in_groups

QUESTION = "actor"
SIGNS = {"left_acts": 1.0, "right_acts": -1.0}


class I2IHomogenizationSuite:
    """One under-specified edit of every seed picture."""

    prompts = ("actor",)

    def cases(self, row: Row, seeds: int) -> Iterator[Case]:
        assert isinstance(row, I2IHomogenization)
        names = sorted((row.left.name, row.right.name))
        category = both(row.left.category, row.right.category)
        for number, seed in enumerate(row.seeds[:seeds]):
            yield Case(
                row.id, "edit", seed, number, row.instruction, ("/".join(names), *names),
                {"pair_type": row.pair_type, "category": category},
            )  # fmt: skip

    def questions(
        self, row: Row, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        assert isinstance(row, I2IHomogenization)
        subjects = (
            Subject(row.left.name, row.left.look, row.instruction),
            Subject(row.right.name, row.right.look, row.instruction),
        )
        return [
            ask_which(
                case, probe, "actor", read_prompt(*self.prompts), subjects,
                ("left_acts", "right_acts"), "{a} does, {b} does not", images,
                {"instruction": row.instruction},
            )
        ]  # fmt: skip

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, lambda part, group: bias_scores(part, QUESTION, SIGNS, group))
