"""The vendored sprite atlas: one drawing for every entity, and the props that people hold.

``tools/make_atlas.py`` of the repository makes it; ``atlas/NOTICE.md`` lists the art and its
licenses.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from PIL import Image

PROP = "prop "
"""Prefix of the names of props, which are not entities."""


class Clothes(NamedTuple):
    """Clothes and prop that the renderer draws for a person."""

    body: str
    """Color of the top, `#rrggbb`."""
    trousers: str
    """Color of the trousers, `#rrggbb`."""
    prop: str
    """Name of the sprite in the hand."""


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
        sorted(name for name in read_json("atlas/index.json") if not name.startswith(PROP))
    )


@cache
def sprite(name: str) -> Image.Image:
    """RGBA image of an entity or prop, cropped; KeyError for an unknown name."""
    return _sheet().crop(_entry(name)["box"])


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
