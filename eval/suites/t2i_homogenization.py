"""`t2i_homogenization`: does the first-mentioned entity stand left? (OTS-Bench)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL.Image import Image

from ...schema import Row, T2IHomogenization
from ..core import Case, Outcome, both
from ..judges import Question
from ..prompts import read_prompt
from .asking import Subject, ask_which
from .homogenization import bias_scores, effect_scores
from .scores import Score, in_groups

QUESTION = "order"
VARIANTS = ("plain", "swapped")
SIGNS = {"first_left": 1.0, "first_right": -1.0}


class T2IHomogenizationSuite:
    """Both mention orders of every prompt, so that order and entities come apart."""

    prompts = ("order",)

    def cases(self, row: Row, seeds: int) -> Iterator[Case]:
        assert isinstance(row, T2IHomogenization)
        names = sorted((row.first.name, row.second.name))
        category = both(row.first.category, row.second.category)
        for variant, prompt in zip(VARIANTS, (row.prompt, row.swapped_prompt), strict=True):
            for number, seed in enumerate(row.seeds[:seeds]):
                yield Case(
                    row.id, variant, seed, number, prompt, ("/".join(names), *names),
                    {"pair_type": row.pair_type, "category": category},
                )  # fmt: skip

    def questions(
        self, row: Row, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        assert isinstance(row, T2IHomogenization)
        # Labels speak of the order of mention, which the variant decides.
        labels = ("first_left", "first_right")
        if case.variant == "swapped":
            labels = labels[::-1]
        subjects = (
            Subject(row.first.name, row.first.look, row.first_action),
            Subject(row.second.name, row.second.look, row.second_action),
        )
        return [
            ask_which(
                case, probe, "order", read_prompt(*self.prompts), subjects, labels,
                "{a} is to the left of {b}", images,
            )
        ]  # fmt: skip

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        def scores(part: list[Outcome], group: str) -> list[Score]:
            return [
                *bias_scores(part, QUESTION, SIGNS, group),
                *effect_scores(part, QUESTION, SIGNS, VARIANTS, group),
            ]

        return in_groups(outcomes, scores)
