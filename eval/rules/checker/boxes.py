"""Axis-aligned boxes (x1, y1, x2, y2) in pixels, y growing downward."""

from __future__ import annotations

from typing import Literal, NamedTuple

Relation = Literal["left_of", "right_of", "above", "below"]
SIDEWAYS = ("left_of", "right_of")


class Box(NamedTuple):
    """Left, top, right, bottom."""

    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def area(self) -> float:
        """Square pixels."""
        return (self.x2 - self.x1) * (self.y2 - self.y1)

    @property
    def centre(self) -> tuple[float, float]:
        """Middle of the box, pixels."""
        return (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2


class Size(NamedTuple):
    """Width and height of a picture, pixels."""

    width: int
    height: int

    @classmethod
    def parse(cls, text: str) -> Size:
        """From ``WIDTHxHEIGHT``; ValueError where the text is none.

        >>> Size.parse("512x384")
        Size(width=512, height=384)
        """
        width, _, height = text.partition("x")
        if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
            raise ValueError(f"size {text!r}: write WIDTHxHEIGHT in pixels, e.g. 512x512")
        return cls(int(width), int(height))


def iou(a: Box, b: Box) -> float:
    """Intersection over union, in [0, 1]; 0 for two boxes without area."""
    width = max(0.0, min(a.x2, b.x2) - max(a.x1, b.x1))
    height = max(0.0, min(a.y2, b.y2) - max(a.y1, b.y1))
    shared = width * height
    union = a.area + b.area - shared
    return shared / union if union > 0 else 0.0


def offset(a: Box, b: Box, relation: Relation, size: Size) -> float:
    """Signed distance of the centres as a share of the side: negative where a is left or above."""
    axis = 0 if relation in SIDEWAYS else 1
    return (a.centre[axis] - b.centre[axis]) / size[axis]
