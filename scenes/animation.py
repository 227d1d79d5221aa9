"""Scenes that move: figures sway where they stand, and walk past each other at a set time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from .scene import Scene

SWAY = 0.012
"""Amplitude of a standing figure's sway, in widths of the image."""
STEPS = 1.37
"""Sways in a clip; not an integer, so that no two frames are alike."""
CROSSING = 0.08
"""Share of the clip in which figures walk past each other, around the set time."""


def animate(scene: Scene, frames: int, swaps_at: float = 1.0) -> list[Scene]:
    """Returns the scene in each of `frames` frames, evenly spaced in time from 0 to 1.

    swaps_at: when the figures exchange their sides, mirrored, in [0, 1): half-way through their
    walk; at 1 they stay. The order from left to right before and after it is known.
    """
    moved_scenes = []
    for number in range(frames):
        time = number / max(1, frames - 1)
        walked = 0.0 if swaps_at >= 1 else _clamped((time - swaps_at) / CROSSING + 0.5)
        sway = SWAY * math.sin(2 * math.pi * STEPS * time)
        figures = []
        for place, figure in enumerate(scene.figures):
            x = figure.x + walked * (1 - 2 * figure.x) + (sway if place % 2 == 0 else -sway)
            faces = figure.faces
            if 0 < walked < 1:
                faces = 1 if figure.x < 0.5 else -1
            figures.append(replace(figure, x=round(x, 4), faces=faces))
        moved_scenes.append(replace(scene, figures=tuple(figures)))
    return moved_scenes


def sides(scenes: Sequence[Scene]) -> list[tuple[str, ...]]:
    """Entities from left to right in each frame."""
    return [scene.left_to_right() for scene in scenes]


def _clamped(share: float) -> float:
    return min(1.0, max(0.0, share))
