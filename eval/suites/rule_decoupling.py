"""`rule_decoupling`: rules as they hold here and elsewhere, on plain shapes (CF-World 5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PIL.Image import Image

from ...schema import Row, RuleDecoupling
from ..core import Case, Outcome
from ..judges import Question
from ..prompts import read_prompt
from .assessed import ask_point, shown_by_variant, shown_share
from .scores import Score

VARIANTS = ("factual", "counterfactual")


class RuleDecouplingSuite:
    """Share of pictures that obey the stated rule, where it is ours and where it isn't."""

    def __init__(self, persona: str) -> None:
        self.prompts = (f"assess_{persona}",)

    def cases(self, row: Row, seeds: int) -> Iterator[Case]:
        assert isinstance(row, RuleDecoupling)
        variant = VARIANTS[0] if row.factual else VARIANTS[1]
        for number, seed in enumerate(row.seeds[:seeds]):
            yield Case(row.id, variant, seed, number, row.prompt, (row.rule,), {"rule": row.rule})

    def questions(
        self, row: Row, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        assert isinstance(row, RuleDecoupling)
        return ask_point(case, row.assessment_point, images, probe, read_prompt(*self.prompts))

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        rules = sorted({outcome.case.groups["rule"] for outcome in outcomes})
        by_rule = [
            shown_share([o for o in outcomes if o.case.groups["rule"] == r], "shown", f"rule={r}")
            for r in rules
        ]
        return [*shown_by_variant(outcomes, VARIANTS, "gap"), *by_rule]
