"""`hrs`: the relation by the edges of the surest box of each subject (HRS-Bench)."""

from __future__ import annotations

from ..geometry.boxes import RELATIONS
from ..geometry.hrs import relation_holds
from .by_rule import Measured, RuleJudge, Sighting


class HrsJudge(RuleJudge):
    """1 or 0; a missing subject scores 0."""

    KIND = "hrs"
    RELATIONS = frozenset(RELATIONS)

    def measure(self, seen: Sighting, relation: str) -> Measured:
        if not seen.has_both:
            return Measured(None, 0.0, "missing")
        held = bool(relation_holds(*seen.boxes, relation, self.settings.convention))  # type: ignore[arg-type]
        return Measured(held, float(held))
