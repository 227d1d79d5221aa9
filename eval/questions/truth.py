"""True answers about rendered images, by the scene that the renderer recorded."""

from __future__ import annotations

import math
from typing import NamedTuple

from ...scenes.scene import Scene
from ...scenes.sprites import drawn_as
from ..core import INVALID
from .asking import Stated

NEAR = 0.5
"""Distance of two figures of a scene, in its width, below which they are near each other."""
STANDING = frozenset(("vertical", "overlap"))
"""Faults after which two things no longer stand side by side."""


class WorldAspect(NamedTuple):
    """What a yes/no question about a drawn world asks."""

    aspect: str
    """`presence`: are the things of the scene there; `point`: does it show the detail of a world;
    `logic`: does the whole scene obey its law."""
    world: str = ""
    """The world in which the answer is yes, `real` or `altered`; empty for `presence`."""

    def answer(self, scene: Scene) -> str:
        """`yes` or `no` about a drawn world; empty for a scene of another kind.

        An image of both worlds at once shows the points of both, and obeys neither law.
        """
        if not scene.world:
            return ""
        shown = {
            "presence": scene.world != "absent",
            "point": scene.world in (self.world, "both"),
            "logic": scene.world == self.world,
        }
        return "yes" if shown[self.aspect] else "no"


def _is_between(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether a lies between b and c along the line through both, as `geometry.pos.between`."""
    along, place = ([end - start for start, end in zip(b, to, strict=True)] for to in (c, a))
    length = sum(side * side for side in along)
    share = sum(x * y for x, y in zip(along, place, strict=True)) / length if length else -1
    return 0 < share < 1


def scene_label(scene: Scene, claim: Stated) -> str:
    """Label of a rendered scene for a claim: `holds`, `opposite`, or `invalid` for a thing that is
    missing or doubled."""
    places = []
    for name in (claim.a, *claim.references) if claim.axis == "middle" else claim.order:
        there = [f for f in scene.figures if f.entity.lower() == drawn_as(name.lower())]
        if len(there) != 1:
            return INVALID
        places.append(there[0])
    if claim.axis == "middle":
        return "holds" if _is_between(*((f.x, f.base) for f in places)) else "opposite"
    first, second = places
    if claim.axis in ("falling", "rising"):
        # Along a diagonal both sides decide; what agrees on one alone is neither.
        down = 1 if claim.axis == "falling" else -1
        sides = {first.x < second.x, down * first.base < down * second.base}
        return INVALID if len(sides) == 2 else "holds" if True in sides else "opposite"
    if claim.axis == "distance":
        apart = math.hypot(first.x - second.x, first.base - second.base)
        return "holds" if (apart < NEAR) == (claim.relation == "near") else "opposite"
    if claim.axis == "horizontal":
        before = first.x < second.x
    elif claim.axis == "vertical":
        before = first.base < second.base
    elif claim.axis not in ("depth", "occlusion"):
        return INVALID  # what is inside of something is not drawn
    else:  # on one ground, whoever stands lower is nearer; what is hidden is behind
        before = (first.base > second.base) == (claim.axis == "depth")
    return "holds" if before else "opposite"
