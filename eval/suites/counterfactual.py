"""`counterfactual`: does the image follow the premise, or the world it knows? (CF-World)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from PIL.Image import Image

from ...schema import Counterfactual
from ..core import Case, Outcome, Question, Score
from ..prompts import read_prompt
from .asking import ask_yes_no
from .base import Headline
from .scores import in_groups
from .worlds import QUESTIONS, Worlds, gated_items, premise_ratio, world_scores

LEVELS: tuple[str, ...] = get_args(Counterfactual.model_fields["level"].annotation)
LEVEL_MEANINGS = {
    "score_L1": "Mean score of the plain scene, 0 to 1.",
    "score_L2": "Mean score of the scene whose altered law and outcome are told; 0 where the plain "
    "scene failed.",
    "score_L3": "Mean score of the scene whose altered law alone is told; 0 where the plain scene "
    "failed.",
    "prr": "Premise retention: E[S_L2] / sqrt(E[S_L1]) (CF-World 3.3). Can exceed 1.",
    "rrr": "Reasoning retention: E[S_L3] / sqrt(E[S_L2]) (CF-World 3.3). Can exceed 1.",
    "gate_passed": "Share of groups whose plain scene scores at least 0.5; groups without such a "
    "score are left out.",
}


class CounterfactualSuite(Worlds[Counterfactual]):
    """Three levels of every group, three weighted questions each."""

    name = "counterfactual"
    variants = LEVELS
    meanings = LEVEL_MEANINGS
    headline = Headline(
        score="prr",
        better="higher",
        meaning="What is left of the score of the plain scene under an altered law.",
        items=lambda outcomes: gated_items(outcomes, LEVELS),
        statistic=lambda means: premise_ratio(means[..., 0], means[..., 1])[..., None],
        broken_down=("prr",),
    )

    def cases(self, row: Counterfactual, seeds: int) -> Iterator[Case]:
        for number, seed in enumerate(row.seeds[:seeds]):
            yield Case(
                row=row.id,
                variant=row.level,
                seed=seed,
                number=number,
                prompt=row.prompt,
                clusters=(row.altered_law, row.group),
                groups={"discipline": row.discipline},
                weights={name: getattr(row, name).weight for name in QUESTIONS},
            )

    def together(self, row: Counterfactual) -> str:
        return row.group

    def questions(
        self, row: Counterfactual, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        if probe != "original":
            return []
        prompt = read_prompt(*self.prompts)
        return [
            ask_yes_no(case, name, prompt, getattr(row, name).text, images[-1])
            for name in QUESTIONS
        ]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        ratios = {"prr": ("L1", "L2"), "rrr": ("L2", "L3")}
        return in_groups(outcomes, lambda part, group: world_scores(part, LEVELS, ratios, group))
