"""`counterfactual_denominalized`: outcomes named and outcomes described (CF-World 5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL.Image import Image

from ...schema import CounterfactualDenominalized, EvaluationQuestion
from ..core import ALL, Case, Outcome, Question, Score
from ..prompts import read_prompt
from .asking import ask_yes_no
from .base import Headline
from .worlds import QUESTIONS, Worlds, gated_items, premise_ratio, world_scores

VARIANTS = ("plain", "named", "described")
GAIN = "denominalization_gain"


class CounterfactualDenominalizedSuite(Worlds[CounterfactualDenominalized]):
    """Each group's L1, its L2, and its L2 with the outcome described: scored as CF-Eval, gated."""

    name = "counterfactual_denominalized"
    variants = VARIANTS
    meanings = {
        "score_plain": "Mean score of the plain scene (L1), 0 to 1.",
        "score_named": "Mean gated score of L2 as written.",
        "score_described": "Mean gated score of L2 whose outcome is described, not named.",
        "prr_named": "Premise retention of L2 as written.",
        "prr_described": "Premise retention of L2 whose outcome is described.",
        GAIN: "Described less named: what the noun alone costs.",
        "gate_passed": "Share of groups whose plain scene scores at least 0.5.",
    }
    headline = Headline(
        score="prr_described",
        better="higher",
        meaning="What is left of the plain scene's score where the outcome is described, not "
        "named.",
        items=lambda outcomes: gated_items(outcomes, VARIANTS),
        statistic=lambda means: premise_ratio(means[..., 0], means[..., 2])[..., None],
    )

    def cases(self, row: CounterfactualDenominalized, seeds: int) -> Iterator[Case]:
        prompts = (row.plain_prompt, row.original_prompt, row.prompt)
        for variant, prompt in zip(VARIANTS, prompts, strict=True):
            for number, seed in enumerate(row.seeds[:seeds]):
                yield Case(
                    row=row.id,
                    variant=variant,
                    seed=seed,
                    number=number,
                    prompt=prompt,
                    clusters=(row.altered_law, row.group),
                    weights={name: _question(row, variant, name).weight for name in QUESTIONS},
                )

    def questions(
        self, row: CounterfactualDenominalized, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        if probe != "original":
            return []
        prompt = read_prompt(*self.prompts)
        return [
            ask_yes_no(case, n, prompt, _question(row, case.variant, n).text, images[-1])
            for n in QUESTIONS
        ]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        ratios = {"prr_named": ("plain", "named"), "prr_described": ("plain", "described")}
        return world_scores(outcomes, VARIANTS, ratios, ALL, gap=GAIN)


def _question(row: CounterfactualDenominalized, variant: str, name: str) -> EvaluationQuestion:
    """A question of the plain scene, or of the altered one."""
    found: EvaluationQuestion = getattr(row, f"plain_{name}" if variant == "plain" else name)
    return found
