"""`compbench`: T2I-CompBench's spatial score, from boxes, in 3D with a depth map."""

from __future__ import annotations

from ..geometry.compbench import (
    COMPBENCH_DEPTH_RELATIONS,
    COMPBENCH_RELATIONS,
    depth_position,
    position,
    score_2d,
    score_3d,
)
from .by_rule import Measured, RuleJudge, Sighting

PASSES = 0.5
"""Score from which the relation counts as held: below it the program writes 0."""


class CompBenchJudge(RuleJudge):
    """A quarter of each detection score and half of the position, of the surest boxes.

    A missing subject leaves the quarter of the other, which is below one half: 0 in the plane. The
    relation holds where the position scores and the whole reaches one half.
    """

    KIND = "compbench"
    RELATIONS = frozenset([*COMPBENCH_RELATIONS, *COMPBENCH_DEPTH_RELATIONS])

    def measure(self, seen: Sighting, relation: str) -> Measured:
        deep = relation in COMPBENCH_DEPTH_RELATIONS
        first, second = (group[0].score if group else 0.0 for group in (seen.a, seen.b))
        placed = self._placed(seen, relation) if seen.has_both else 0.0
        number = float((score_3d if deep else score_2d)(first, second, placed))
        if not seen.has_both:
            return Measured(None, number, "missing")
        return Measured(placed > 0 and number >= PASSES, number, f"position {placed:.3f}")

    def _placed(self, seen: Sighting, relation: str) -> float:
        if relation in COMPBENCH_DEPTH_RELATIONS:
            convention = self.settings.convention
            return depth_position(*seen.boxes, seen.nearness, relation, convention)  # type: ignore[arg-type]
        return float(position(*seen.boxes, relation, self.settings.convention))  # type: ignore[arg-type]
