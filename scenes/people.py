"""People: head and shoulders from the atlas, on a body drawn joint by joint."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PIL import Image, ImageColor, ImageDraw

from .layers import reduced
from .sprites import TONES, bust, clothes, sprite

WIDTH, HEIGHT = 300, 340
"""Canvas of a person, in units; one unit is one pixel at scale 1."""
_SUPERSAMPLING = 2
_BUST = 118
_CENTER, _SHOULDER_Y, _HIP_Y = 150, 136, 212
_UPPER_ARM, _FOREARM, _THIGH, _SHIN = 42, 40, 50, 48
_YELLOW_HAND = "#f2b61f"
_SHOE = "#3b2f2a"

Point = tuple[float, float]
"""x to the viewer's right and y downward, units."""

Limb = tuple[float, float]
"""Angles of the upper and the lower part, degrees from straight down, outward positive."""


@dataclass(frozen=True)
class Posture:
    """Angles of a body; by default it stands with its arms down.

    The first limb of a pair is on the viewer's left; that hand holds the prop.
    """

    arms: tuple[Limb, Limb] = ((14, 6), (14, 6))
    legs: tuple[Limb, Limb] = ((6, 2), (6, 2))
    head: float = 0
    """Tilt of the head, degrees counter-clockwise."""


STANDING = Posture()


def draw_person(name: str, posture: Posture, scale: float, tone: str = "") -> Image.Image:
    """RGBA image of a person, feet at the lower edge, `WIDTH` x `HEIGHT` units at `scale`.

    tone: of face and hands, in `sprites.TONES`; Noto's yellow for any other.
    """
    worn = clothes(name)
    if worn is None:
        raise ValueError(f"{name!r} is not a person")
    factor = scale * _SUPERSAMPLING
    size = (round(WIDTH * scale) * _SUPERSAMPLING, round(HEIGHT * scale) * _SUPERSAMPLING)
    canvas = Image.new("RGBA", size)
    pen = _Pen(ImageDraw.Draw(canvas), factor, TONES[tone].skin if tone in TONES else _YELLOW_HAND)
    for side, leg in zip((-1, 1), posture.legs, strict=True):
        hip = (_CENTER + side * 17, _HIP_Y)
        knee, foot = _joints(hip, leg, side, _THIGH, _SHIN)
        pen.line([hip, knee, foot], worn.trousers, 27)
        pen.line([(foot[0] - side * 4, foot[1] + 7), (foot[0] + side * 13, foot[1] + 7)], _SHOE, 17)
    arms = []
    for side, arm in zip((-1, 1), posture.arms, strict=True):
        shoulder = (_CENTER + side * 43, _SHOULDER_Y)
        elbow, hand = _joints(shoulder, arm, side, _UPPER_ARM, _FOREARM)
        if abs(arm[0]) < 60:  # arms that hang lie behind the trunk, raised ones in front
            pen.arm(shoulder, elbow, hand, worn.body)
        arms.append((shoulder, elbow, hand))
    pen.polygon(
        [(_CENTER - 52, 122), (_CENTER + 52, 122), (_CENTER + 36, 226), (_CENTER - 36, 226)],
        worn.body,
    )
    _paste_bust(canvas, bust(name, tone), posture.head, factor)
    for joints, arm in zip(arms, posture.arms, strict=True):
        if abs(arm[0]) >= 60 or abs(arm[1]) > 60:
            pen.arm(*joints, worn.body)
    _paste_prop(canvas, worn.prop, arms[0][2], factor)
    small = Image.new("RGBA", (size[0] // _SUPERSAMPLING, size[1] // _SUPERSAMPLING))
    if (drawn := reduced(canvas, _SUPERSAMPLING)) is not None:
        small.paste(drawn.image, drawn.corner)
    return small


def _joints(start: Point, limb: Limb, side: int, upper: float, lower: float) -> tuple[Point, Point]:
    middle = _polar(start, limb[0], side, upper)
    return middle, _polar(middle, limb[1], side, lower)


def _polar(start: Point, degrees: float, side: int, length: float) -> Point:
    angle = math.radians(degrees)
    # Rounded, so that the last bit of a machine's sine can't move a pixel.
    return (
        round(start[0] + side * length * math.sin(angle), 3),
        round(start[1] + length * math.cos(angle), 3),
    )


def _darker(color: str) -> str:
    r, g, b = ImageColor.getrgb(color)[:3]
    return f"#{r * 86 // 100:02x}{g * 86 // 100:02x}{b * 86 // 100:02x}"


def _paste_bust(canvas: Image.Image, image: Image.Image, tilt: float, factor: float) -> None:
    size = (round(_BUST * factor), round(_BUST * factor * image.height / image.width))
    image = image.resize(size, Image.Resampling.LANCZOS)
    if tilt:
        image = image.rotate(tilt, Image.Resampling.BICUBIC, expand=True)
    left = round(_CENTER * factor - image.width / 2)
    bottom = round((_SHOULDER_Y + 6) * factor)
    canvas.alpha_composite(image, (left, max(0, bottom - image.height)))


def _paste_prop(canvas: Image.Image, prop: str, hand: Point, factor: float) -> None:
    image = sprite(prop)
    size = 50 * factor / max(image.size)
    image = image.resize(
        (round(image.width * size), round(image.height * size)), Image.Resampling.LANCZOS
    )
    x = round(hand[0] * factor - image.width / 2)
    y = round(hand[1] * factor - image.height / 2)
    x = min(max(x, 0), canvas.width - image.width)
    y = min(max(y, 0), canvas.height - image.height)
    canvas.alpha_composite(image, (x, y))


class _Pen:
    """Draws in units, lines with rounded ends."""

    def __init__(self, draw: ImageDraw.ImageDraw, factor: float, skin: str) -> None:
        self._draw = draw
        self._factor = factor
        self._skin = skin

    def arm(self, shoulder: Point, elbow: Point, hand: Point, sleeve: str) -> None:
        self.line([shoulder, elbow, hand], _darker(sleeve), 22)
        self.dot(hand, self._skin, 12)

    def line(self, points: list[Point], color: str, width: float) -> None:
        scaled = [(x * self._factor, y * self._factor) for x, y in points]
        self._draw.line(scaled, color, round(width * self._factor), joint="curve")
        for point in points:
            self.dot(point, color, width / 2)

    def dot(self, center: Point, color: str, radius: float) -> None:
        x, y, r = center[0] * self._factor, center[1] * self._factor, radius * self._factor
        self._draw.ellipse((x - r, y - r, x + r, y + r), color)

    def polygon(self, points: list[Point], color: str) -> None:
        self._draw.polygon([(x * self._factor, y * self._factor) for x, y in points], color)
