"""Actions and states that an image can show: the words that name them, and what is drawn.

A text asks for the pose with the longest trigger that it contains. Poses that contrast in the
taxonomy clearly differ in the image.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .people import Limb, Posture
from .sprites import read_json

_DOWN: Limb = (14, 6)
_LEG: Limb = (6, 2)


@dataclass(frozen=True)
class Pose:
    """How one action or state is drawn."""

    name: str
    """Key in `POSES`."""
    triggers: tuple[str, ...] = ()
    """Lower-case phrases that name it."""
    near: Limb = _DOWN
    """The arm of a person on the side away from where it faces; it holds the prop."""
    far: Limb = _DOWN
    """The arm of a person on the side where it faces."""
    legs: tuple[Limb, Limb] = (_LEG, _LEG)
    """A person's legs, in the same order."""
    head: float = 0
    """Tilt of a person's head, degrees."""
    lean: float = 0
    """Rotation of a whole person, degrees, backward positive."""
    turn: float = 0
    """Rotation of an animal or object, degrees, front up positive."""
    stretch: tuple[float, float] = (1, 1)
    """Factors on the width and height of an animal or object."""
    lift: float = 0
    """Height above the ground, share of the image's height."""
    shade: int = 100
    """Brightness in percent."""
    behind: tuple[str, ...] = ()
    """Effects drawn before the figure."""
    over: tuple[str, ...] = ()
    """Effects drawn after it."""

    def posture(self) -> Posture:
        """A person's joints, facing the viewer's right."""
        return Posture((self.near, self.far), self.legs, self.head)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


POSES = {
    name: Pose(name, **{field: _tuples(value) for field, value in drawn.items()})
    for poses in read_json("poses.json").values()
    for name, drawn in poses.items()
}
"""Every pose by name; ``poses.json`` gives the fields that differ from standing still."""


def find_pose(text: str) -> str | None:
    """Name of the pose that the text asks for, or None.

    >>> find_pose("is kneeling on one knee")
    'kneeling'
    """
    lowered = text.lower()
    matches = [
        (len(trigger), pose.name)
        for pose in POSES.values()
        for trigger in pose.triggers
        if trigger in lowered
    ]
    return max(matches)[1] if matches else None
