"""`i2i_correctness`: do the actions go to whom they were given? (OTS-Bench)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from PIL.Image import Image

from ...scenes.scene import Scene
from ...schema import I2ICorrectness
from ..core import Case, Question
from ..prompts import read_prompt
from .asking import Alternative, Subject, ask_binding
from .base import Trial
from .correctness import RIGHT, VARIANTS, Correctness, correctness_headline
from .trials import binding_trials, both, expected_pose

QUESTION = "binding"


class I2ICorrectnessSuite(Correctness[I2ICorrectness]):
    """Each edit in both mention orders; who does what is the same."""

    name = "i2i_correctness"
    prompts = ("binding",)
    worths = {QUESTION: RIGHT}
    headline = correctness_headline(QUESTION)

    def cases(self, row: I2ICorrectness, seeds: int) -> Iterator[Case]:
        groups = {
            "pair_type": row.pair_type,
            "category": both(row.left.category, row.right.category),
            "relation": row.relation,
        }
        instructions = (row.aligned_instruction, row.reverse_instruction)
        for variant, instruction in zip(VARIANTS, instructions, strict=True):
            for number, seed in enumerate(row.seeds[:seeds]):
                yield Case(
                    row=row.id,
                    variant=variant,
                    seed=seed,
                    number=number,
                    prompt=instruction,
                    clusters=("/".join(sorted((row.left.name, row.right.name))),),
                    groups=groups,
                )

    def questions(
        self, row: I2ICorrectness, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        asked = Alternative(
            task="binding",
            prompt=read_prompt("binding"),
            subjects=(
                Subject(row.left.name, row.left.look, row.left_expected),
                Subject(row.right.name, row.right.look, row.right_expected),
            ),
            labels=("correct", "wrong"),
            prior=RIGHT.prior,
        )
        return [ask_binding(asked, case, probe, images)]

    def truth(self, row: I2ICorrectness, case: Case, scene: Scene) -> Mapping[str, str]:
        right = scene.pose_of(row.left.name) == expected_pose()
        return {QUESTION: "correct" if right else "wrong"}

    def trials(self) -> Iterator[Trial]:
        return binding_trials()
