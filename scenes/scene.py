"""What a picture of the renderer shows: figures with place, size and pose on a background."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

WIDTH, HEIGHT = 512, 384
"""Size of every picture, pixels."""


@dataclass(frozen=True)
class Figure:
    """One entity in the picture."""

    entity: str
    """Name of the entity, as in the atlas."""
    x: float
    """Horizontal centre, in [0, 1] of the width."""
    base: float
    """Where its feet stand, in [0, 1] of the height from the top."""
    scale: float
    """Size relative to the usual one, about 1."""
    faces: int = 1
    """Where it looks: 1 to the viewer's right, -1 to the left; says nothing of its own side."""
    pose: str = ""
    """Name of a pose in `poses.POSES`; empty for none."""


@dataclass(frozen=True)
class Scene:
    """A whole picture."""

    figures: tuple[Figure, ...]
    """Drawn in this order, later ones in front."""
    background: int
    """Seed of the background."""
    faults: tuple[str, ...] = ()
    """Faults that were put in on purpose, by name."""

    def to_json(self) -> str:
        """The scene as JSON, for the picture's metadata."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Scene:
        """The inverse of `to_json`. Raises ValueError where the text is none of a scene."""
        try:
            data: dict[str, Any] = json.loads(text)
            figures = tuple(Figure(**figure) for figure in data["figures"])
            return cls(figures, data["background"], tuple(data["faults"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a scene of the renderer: {error}") from None
