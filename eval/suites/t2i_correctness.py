"""`t2i_correctness`: does the picture follow the world or the order of mention? (OTS-Bench)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL.Image import Image

from ...schema import Row, T2ICorrectness
from ..core import Case, Outcome
from ..judges import Question
from ..prompts import read_prompt
from .asking import Subject, ask_which
from .correctness import VARIANTS, accuracy_scores
from .scores import Score, in_groups

QUESTION = "arrangement"


class T2ICorrectnessSuite:
    """Each pair in both mention orders; the right layout is the same."""

    prompts = ("arrangement",)

    def cases(self, row: Row, seeds: int) -> Iterator[Case]:
        assert isinstance(row, T2ICorrectness)
        prompts = (row.aligned_prompt, row.reverse_prompt)
        for variant, prompt in zip(VARIANTS, prompts, strict=True):
            for number, seed in enumerate(row.seeds[:seeds]):
                yield Case(
                    row.id, variant, seed, number, prompt, (row.id,),
                    {"domain": row.domain, "difficulty": row.difficulty, "kind": row.kind},
                )  # fmt: skip

    def questions(
        self, row: Row, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        assert isinstance(row, T2ICorrectness)
        if probe == "mirror" and not row.mirror_safe:
            return []
        subjects = (Subject(row.left, row.tell_left), Subject(row.right, row.tell_right))
        return [
            ask_which(
                case, probe, "arrangement", read_prompt(*self.prompts), subjects,
                ("correct", "wrong"), "{a} is to the left of {b}", images,
                {"context": row.context},
            )
        ]  # fmt: skip

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, lambda part, group: accuracy_scores(part, QUESTION, group))
