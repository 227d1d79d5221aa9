"""The vendored sprite atlas: one drawing for every entity, and the props that people hold.

``tools/make_atlas.py`` of the repository makes it; ``atlas/NOTICE.md`` lists the art and its
licenses.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor

PROP = "prop "
"""Prefix of the names of props, which are not entities."""
MASK = "mask "
"""Prefix of the names of masks, which are not entities: each is named after a person's drawing.

Its red is skin, its green the shade of skin, and its blue what is darker on dark skin: eyes, mouth,
and brown hair.
"""
YELLOW, YELLOW_SHADE = "#ffca28", "#e59600"
"""Skin and its shade in the sprites themselves."""


class Clothes(NamedTuple):
    """Clothes and prop that the renderer draws for a person."""

    body: str
    """Color of the top, `#rrggbb`."""
    trousers: str
    """Color of the trousers, `#rrggbb`."""
    prop: str
    """Name of the sprite in the hand."""


class Tone(NamedTuple):
    """Colors of a skin tone, as in Noto's people."""

    skin: str
    """Color of the face, `#rrggbb`."""
    shade: str
    """Color of ears, neck and nose, `#rrggbb`."""
    brightness: int
    """Of eyes, mouth and brown hair, percent of that in the sprite.

    Noto also has fair and black hair here. It stays brown: rows describe people by their hair, and
    a tone must not change who is meant.
    """


TONES = {
    "light": Tone("#f9ddbd", "#dba689", 100),
    "medium-light": Tone("#e0bb95", "#c48e6a", 100),
    "medium": Tone("#ba8d68", "#99674f", 90),
    "medium-dark": Tone("#a56c43", "#875334", 72),
    "dark": Tone("#70534a", "#3c2b24", 60),
}
"""Skin tones of people, by name."""


def _file(name: str) -> Any:
    return resources.files(__package__).joinpath(name)


@cache
def read_json(name: str) -> Any:
    """Content of a JSON file of this folder, e.g. `atlas/index.json`."""
    return json.loads(_file(name).read_text("utf-8"))


def _entry(name: str) -> dict[str, Any]:
    entry: dict[str, Any] = read_json("atlas/index.json")[name]
    return entry


@cache
def _sheet() -> Image.Image:
    with _file("atlas/atlas.webp").open("rb") as file, Image.open(file) as sheet:
        return sheet.convert("RGBA")


ALIASES = {
    "clock": "table clock",
    "female counselor": "female school counselor",
    "male counselor": "male school counselor",
}
"""Other name, as of a class of COCO or of an earlier bank -> the entity that is drawn for it."""


def drawn_as(name: str) -> str:
    """The entity that is drawn for a name, in small letters: itself, unless it is an alias.

    >>> drawn_as("clock"), drawn_as("cat")
    ('table clock', 'cat')
    """
    return ALIASES.get(name, name)


@cache
def entity_names() -> tuple[str, ...]:
    """Names of all entities that have a sprite, sorted."""
    return tuple(
        sorted(name for name in read_json("atlas/index.json") if not name.startswith((PROP, MASK)))
    )


@cache
def sprite(name: str) -> Image.Image:
    """RGBA image of an entity or prop, cropped; KeyError for an unknown name."""
    return _sheet().crop(_entry(name)["box"])


@lru_cache(maxsize=320)  # each person in each tone: 30 MB
def bust(name: str, tone: str = "") -> Image.Image:
    """RGBA image of a person's head and shoulders in a tone of `TONES`; in Noto's yellow for any
    other."""
    image, colors = sprite(name), TONES.get(tone)
    if colors is None:
        return image
    *bands, alpha = image.split()
    skin, shade, dark = map(_numbers, sprite(MASK + art(name)).split()[:3])
    darker = dark * (colors.brightness - 100)
    toned = []
    for band, of_skin, of_shade in zip(
        bands, _apart(colors.skin, YELLOW), _apart(colors.shade, YELLOW_SHADE), strict=True
    ):
        base = _numbers(band)
        change = skin * (100 * of_skin) + shade * (100 * of_shade) + darker * base
        level = base + (change + 12_750) // 25_500  # whole numbers: alike everywhere
        toned.append(Image.fromarray(level.clip(0, 255).astype(np.uint8)))
    return Image.merge("RGBA", [*toned, alpha])


def _numbers(band: Image.Image) -> NDArray[np.int32]:
    return np.asarray(band, dtype=np.int32)


def _apart(color: str, other: str) -> list[int]:
    """How far a color is from another, by band."""
    colors = (ImageColor.getrgb(name) for name in (color, other))
    return [level - from_level for level, from_level in zip(*colors, strict=True)]


def art(name: str) -> str:
    """The drawing that an entity or prop is made from, e.g. `noto woman-guard`."""
    return str(_entry(name)["art"])


def clothes(name: str) -> Clothes | None:
    """Returns a person's clothes and prop; None for animals and objects."""
    entry = _entry(name)
    if "body" not in entry:
        return None
    return Clothes(body=entry["body"], trousers=entry["trousers"], prop=entry["prop"])


@cache
def atlas_digest() -> str:
    """SHA-256 over sheet and index: part of the renderer's identity."""
    digest = hashlib.sha256(_file("atlas/atlas.webp").read_bytes())
    digest.update(_file("atlas/index.json").read_bytes())
    return digest.hexdigest()
