"""`geneval`: the relation by the centers of the surest boxes, less their sizes (GenEval)."""

from __future__ import annotations

from ..geometry.boxes import RELATIONS
from ..geometry.geneval import relations
from .by_rule import Measured, RuleJudge, Sighting


class GenEvalJudge(RuleJudge):
    """1 or 0; a missing subject scores 0."""

    KIND = "geneval"
    RELATIONS = frozenset(RELATIONS)

    def measure(self, seen: Sighting, relation: str) -> Measured:
        if not seen.has_both:
            return Measured(None, 0.0, "missing")
        held = relation in relations(*seen.boxes)
        return Measured(held, float(held))
