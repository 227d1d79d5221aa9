"""`pse`: how surely a pixel of one subject lies on the asked side of a pixel of the other."""

from __future__ import annotations

from ..geometry.boxes import RELATIONS, DepthRelation, intersection
from ..geometry.pse import pse, pse_3d, pse_binary
from .by_rule import Measured, RuleJudge, Sighting


class PseJudge(RuleJudge):
    """PSE as the number, PSE(.5) as the verdict; a missing subject scores 0, as published.

    In the plane all instances of a subject count together. In depth `authors` takes the surest one
    alone, as their program does. Hidden by: behind it, where the boxes touch (the paper states no
    rule for it; this is our reading).
    """

    KIND = "pse"
    RELATIONS = frozenset([*RELATIONS, "in_front_of", "behind", "hidden_by"])
    DETECTOR = "grounded-sam:"
    argument = "[DETECTOR]"

    def measure(self, seen: Sighting, relation: str) -> Measured:
        if not seen.has_both:
            return Measured(None, 0.0, "missing")
        number = self._number(seen, relation)
        return Measured(bool(pse_binary(number, self.settings.convention)), number)

    def _number(self, seen: Sighting, relation: str) -> float:
        if relation in RELATIONS:
            return float(pse(seen.mask(seen.a), seen.mask(seen.b), relation))
        if relation == "hidden_by" and not intersection(*seen.boxes):
            return 0.0
        alone = self.settings.convention == "authors"
        a, b = (seen.mask(group[:1] if alone else group) for group in (seen.a, seen.b))
        asked: DepthRelation = "in_front_of" if relation == "in_front_of" else "behind"
        return float(pse_3d(a, b, seen.nearness, asked, self.settings.convention))
