"""`rule_decoupling`: rules as they hold here and elsewhere, on plain shapes (CF-World 5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL.Image import Image

from ...schema import RuleDecoupling
from ..core import ALL, Case, Outcome, Question, Score
from .assessed import Assessed, shown_headline, shown_share
from .scores import grouped


class RuleDecouplingSuite(Assessed[RuleDecoupling]):
    """Share of images that obey the stated rule, where it is ours and where it isn't."""

    name = "rule_decoupling"
    variants = ("factual", "counterfactual")
    headline = shown_headline(
        "counterfactual", "Share of images that obey a rule which doesn't hold here."
    )
    meanings = {
        "shown_factual": "Share of images that obey a rule of our world.",
        "shown_counterfactual": "Share of images that obey a rule which doesn't hold here.",
        "gap": "Factual less counterfactual.",
        "shown": "Share of images that obey the rule, in all of its variants.",
    }

    def cases(self, row: RuleDecoupling, seeds: int) -> Iterator[Case]:
        for number, seed in enumerate(row.seeds[:seeds]):
            yield Case(
                row=row.id,
                variant=self.variants[0 if row.factual else 1],
                seed=seed,
                number=number,
                prompt=row.prompt,
                clusters=(row.rule,),
                groups={"rule": row.rule},
            )

    def together(self, row: RuleDecoupling) -> str:
        return row.rule

    def questions(
        self, row: RuleDecoupling, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        return self.ask_point(case, row.assessment_point, images, probe)

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        by_rule = [shown_share(part, "shown", g) for g, part in grouped(outcomes) if g != ALL]
        return [*super().score(outcomes), *by_rule]
