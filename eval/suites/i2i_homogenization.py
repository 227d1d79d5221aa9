"""`i2i_homogenization`: is it always the left one that acts? (OTS-Bench)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from PIL.Image import Image

from ...scenes.scene import Scene
from ...schema import I2IHomogenization
from ..core import Case, Outcome, Question, Score
from ..prompts import read_prompt
from .asking import Alternative, Subject, ask_which
from .base import INVALID, Trial, Worth
from .homogenization import MEANINGS, Homogenization, homogenization_headline
from .scores import in_groups
from .trials import acting_trials, both

QUESTION = "actor"
SIGNS = Worth({"left_acts": 1.0, "right_acts": -1.0}, prior="left_acts", others=(INVALID,))


class I2IHomogenizationSuite(Homogenization[I2IHomogenization]):
    """One under-specified edit of every seed image."""

    name = "i2i_homogenization"
    variants = ("edit",)
    prompts = ("actor",)
    worths = {QUESTION: SIGNS}
    headline = homogenization_headline(
        QUESTION, SIGNS, "How far it is always the same side that acts"
    )
    meanings = MEANINGS

    def cases(self, row: I2IHomogenization, seeds: int) -> Iterator[Case]:
        names = sorted((row.left.name, row.right.name))
        groups = {
            "pair_type": row.pair_type,
            "category": both(row.left.category, row.right.category),
        }
        for number, seed in enumerate(row.seeds[:seeds]):
            yield Case(
                row=row.id,
                variant="edit",
                seed=seed,
                number=number,
                prompt=row.instruction,
                clusters=("/".join(names), *names),
                groups=groups,
            )

    def questions(
        self, row: I2IHomogenization, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        asked = Alternative(
            task="actor",
            prompt=read_prompt("actor"),
            subjects=(
                Subject(row.left.name, row.left.look, row.instruction),
                Subject(row.right.name, row.right.look, row.instruction),
            ),
            labels=("left_acts", "right_acts"),
            prior="left_acts",
            statement="{a} does, {b} does not",
            values={"instruction": row.instruction},
        )
        return [ask_which(asked, case, probe, images)]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, self.bias_scores)

    def truth(self, row: I2IHomogenization, case: Case, scene: Scene) -> Mapping[str, str]:
        return {QUESTION: "left_acts" if scene.pose_of(row.left.name) else "right_acts"}

    def trials(self) -> Iterator[Trial]:
        return acting_trials()
