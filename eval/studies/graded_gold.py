"""Drawn gold of rising difficulty: the questions of `real_gold`, of images whose truth is known.

A judge's errors by level are a curve: how much of what it recognizes in a clear drawing is left as
things get small, close, cut off, hidden among others and blurred. See `scenes.graded`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from PIL.Image import Image

from ...readings import ImageReading, Placed, Seen, columns_of
from ...scenes.graded import LEVELS, SHOWN, GradedScene, things
from ...schema import Provenance
from ..core import Generator, ImageRequest
from ..detectors.loading import COCO
from ..organisms.data import ENTITIES
from ..suites.real import GradedGold

IMAGES = 104
"""Scenes, each drawn at every level: eight times what `_CYCLE` shows."""
_CYCLE = (*SHOWN[:4], *SHOWN)
"""What successive scenes show: both things in 8 of 13."""
VERSION = "4"
"""Raised whenever a scene or its label changes."""


class GradedImages(Generator):
    """Draws the images of its rows."""

    def __init__(self) -> None:
        self._scenes: dict[str, GradedScene] = {}
        self.rows: Sequence[GradedGold] = [
            self._row(number, level) for number in range(IMAGES) for level in range(LEVELS)
        ]

    def _row(self, number: int, level: int) -> GradedGold:
        scene = graded_scene(number, level)
        name = f"level-{level}/{number:03}.png"
        row = GradedGold(
            image_file=name,
            object_a=scene.a,
            object_b=scene.b,
            difficulty=level,
            review=["code"],
            provenance=Provenance(bank="drawn", entry=name, author="code", calls=[]),
            # Code knows what it drew: it says so as often as two readers must.
            **columns_of(dict.fromkeys(("code", "code again"), reading_of(scene)), _KINDS),
        )
        self._scenes[row.id] = scene
        return row

    def identity(self) -> dict[str, str]:
        return {"kind": "gold", "rows": f"drawn, version {VERSION}"}

    def generate(self, request: ImageRequest) -> Image:
        """Raises FileNotFoundError for a request that is none of its rows."""
        if request.case is None or request.case.row not in self._scenes:
            raise FileNotFoundError("only scenes of drawn gold are here")
        return self._scenes[request.case.row].draw()


_KINDS = {"code": "unstated", "code again": "unstated"}


def graded_scene(number: int, level: int) -> GradedScene:
    """A scene at a level: things that organisms' judges know, or things of COCO, by turns."""
    rng = random.Random(f"graded gold/{number}")
    drawn = things()
    known = ENTITIES if number // len(_CYCLE) % 2 else [name for name in COCO if name in drawn]
    a, b, other = rng.sample(list(known), 3)
    return GradedScene(number, level, a, b, other, _CYCLE[number % len(_CYCLE)])


def reading_of(scene: GradedScene) -> ImageReading:
    """What a reader says who misses nothing."""
    first, _, axis = scene.shown.partition(" ")
    order: dict[str, Placed] = dict.fromkeys(("left", "upper", "front"), "none")
    a: Seen = "whole"
    b: Seen = "whole"
    if axis in ("left", "above"):
        order = {"left": "same", "upper": "same", "front": "same"}
        order["left" if axis == "left" else "upper"] = "A" if first == "A" else "B"
    elif scene.shown == "merged":
        a = b = "merged"
    else:
        absent: Seen = "other" if axis == "other" else "no"
        a, b = ("whole", absent) if "A" in scene.shown else (absent, "whole")
    return ImageReading(a=a, b=b, sure=3, **order)
