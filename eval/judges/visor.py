"""`visor`: are both subjects there, and does any instance stand as asked, by the boxes' centers?"""

from __future__ import annotations

from ..geometry.boxes import RELATIONS
from ..geometry.visor import relation_holds
from .by_rule import Measured, RuleJudge, Sighting


class VisorJudge(RuleJudge):
    """With both subjects the relation holds or fails; without, the image lacks object accuracy."""

    KIND = "visor"
    RELATIONS = frozenset(RELATIONS)

    def measure(self, seen: Sighting, relation: str) -> Measured:
        if not seen.has_both:
            return Measured(None, 0.0, "missing")
        a, b = ([one.box for one in group] for group in (seen.a, seen.b))
        held = relation_holds(a, b, relation)  # type: ignore[arg-type]
        return Measured(held, float(held))
