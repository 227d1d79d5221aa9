"""`t2i_correctness`: does the image follow the world or the order of mention? (OTS-Bench)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from PIL.Image import Image

from ...scenes.scene import Scene
from ...schema import T2ICorrectness
from ..core import Case, Question, is_mirrored
from ..prompts import read_prompt
from .asking import Alternative, Subject, ask_which
from .base import Trial
from .correctness import RIGHT, VARIANTS, Correctness, correctness_headline
from .trials import grounding_trials

QUESTION = "arrangement"


class T2ICorrectnessSuite(Correctness[T2ICorrectness]):
    """Each pair in both mention orders; the right layout is the same."""

    name = "t2i_correctness"
    prompts = ("arrangement",)
    worths = {QUESTION: RIGHT}
    headline = correctness_headline(QUESTION)

    def cases(self, row: T2ICorrectness, seeds: int) -> Iterator[Case]:
        groups = {"domain": row.domain, "difficulty": row.difficulty, "kind": row.kind}
        prompts = (row.aligned_prompt, row.reverse_prompt)
        for variant, prompt in zip(VARIANTS, prompts, strict=True):
            for number, seed in enumerate(row.seeds[:seeds]):
                yield Case(
                    row=row.id,
                    variant=variant,
                    seed=seed,
                    number=number,
                    prompt=prompt,
                    clusters=(row.id,),
                    groups=groups,
                )

    def questions(
        self, row: T2ICorrectness, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        if is_mirrored(probe) and not row.mirror_safe:
            return []
        asked = Alternative(
            task="arrangement",
            prompt=read_prompt("arrangement"),
            subjects=(Subject(row.left, row.tell_left), Subject(row.right, row.tell_right)),
            labels=("correct", "wrong"),
            prior=RIGHT.prior,
            values={"context": row.context},
        )
        return [ask_which(asked, case, probe, images)]

    def truth(self, row: T2ICorrectness, case: Case, scene: Scene) -> Mapping[str, str]:
        order = scene.left_to_right()
        right_way = order.index(row.left) < order.index(row.right)
        return {QUESTION: "correct" if right_way else "wrong"}

    def trials(self) -> Iterator[Trial]:
        return grounding_trials()
