"""Scene of a rendered image: figures with place, size and pose on a background."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from PIL import ImageOps
from PIL.Image import Image

from ..errors import DataError

WIDTH, HEIGHT = 512, 384
"""Size of every image, pixels."""


@dataclass(frozen=True)
class Figure:
    """One entity in the image."""

    entity: str
    """Name of the entity, as in the atlas."""
    x: float
    """Horizontal center, in [0, 1] of the width."""
    base: float
    """Where its feet stand, in [0, 1] of the height from the top."""
    scale: float
    """Size relative to the usual one, about 1."""
    faces: int = 1
    """Where it looks: 1 to the viewer's right, -1 to the left; independent of where it stands."""
    pose: str = ""
    """Name of a pose in `poses.POSES`; empty for none."""
    tone: str = ""
    """Skin tone of a person, in `sprites.TONES`; empty for anything else, and for people as earlier
    versions drew them, in Noto's yellow."""


@dataclass(frozen=True)
class Scene:
    """A whole image."""

    figures: tuple[Figure, ...]
    """Drawn in this order, later ones in front."""
    background: int
    """Seed of the background."""
    faults: tuple[str, ...] = ()
    """Names of the faults that were put in on purpose; empty for a sound scene."""
    drawing: str = ""
    """Name of the bank's drawing that the image is made from; empty for figures of the atlas."""
    world: str = ""
    """What the drawing of a group's worlds shows: `real`, `altered`, `both` at once, or `absent`
    for its backdrop alone; empty for any other scene."""

    def left_to_right(self) -> tuple[str, ...]:
        """Entities by horizontal center, leftmost first; one drawn twice is there twice.

        >>> Scene((Figure("cat", 0.7, 0.9, 1), Figure("owl", 0.3, 0.9, 1)), 0).left_to_right()
        ('owl', 'cat')
        """
        return tuple(figure.entity for figure in sorted(self.figures, key=lambda f: f.x))

    def pose_of(self, entity: str) -> str:
        """Pose of the first figure of the entity, empty for none; KeyError if it is absent."""
        for figure in self.figures:
            if figure.entity == entity:
                return figure.pose
        raise KeyError(entity)

    def mirrored(self) -> Scene:
        """The scene of the mirror image."""
        figures = tuple(replace(f, x=1 - f.x, faces=-f.faces) for f in self.figures)
        return replace(self, figures=figures)

    def to_json(self) -> str:
        """The scene as JSON, for the image's metadata."""
        plain = asdict(self)
        for figure in plain["figures"]:
            if not figure["tone"]:
                del figure["tone"]
        for name in ("drawing", "world"):  # most scenes have none
            if not plain[name]:
                del plain[name]
        return json.dumps(plain, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Scene:
        """The inverse of `to_json`. Raises DataError for any other text."""
        try:
            data = json.loads(text)
            figures = tuple(Figure(**figure) for figure in data["figures"])
            drawn = (data.get("drawing", ""), data.get("world", ""))
            return cls(figures, data["background"], tuple(data["faults"]), *drawn)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"not a scene of the renderer: {error}", code="no-scene") from None

    @classmethod
    def of(cls, image: Image) -> Scene:
        """The scene in a rendered image's metadata. Raises DataError if it has none."""
        text = image.info.get("scene")
        if not isinstance(text, str):
            raise DataError(
                "the image has no scene: only the renderer (`render:`) writes one",
                code="no-scene",
            )
        return cls.from_json(text)


def mirror_image(image: Image) -> Image:
    """The mirror image, with the mirrored scene in its metadata if the image has one."""
    mirror = ImageOps.mirror(image)
    mirror.info.pop("scene", None)
    with suppress(DataError):
        mirror.info["scene"] = Scene.of(image).mirrored().to_json()
    return mirror
