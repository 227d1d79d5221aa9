"""The vendored sprite atlas: one picture for every entity, and the props that people hold.

Made by ``atlas/make_atlas.py``; art and licences are listed in ``atlas/NOTICE.md``.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

from PIL import Image

PROP = "prop "
"""Prefix of the names of props, which are no entities."""


def _file(name: str) -> Any:
    return resources.files(__package__).joinpath("atlas", name)


@cache
def _index() -> dict[str, dict[str, Any]]:
    index: dict[str, dict[str, Any]] = json.loads(_file("index.json").read_text("utf-8"))
    return index


@cache
def _sheet() -> Image.Image:
    with _file("atlas.webp").open("rb") as file, Image.open(file) as sheet:
        return sheet.convert("RGBA")


@cache
def entity_names() -> tuple[str, ...]:
    """Names of all entities that have a sprite, sorted."""
    return tuple(sorted(name for name in _index() if not name.startswith(PROP)))


@cache
def sprite(name: str) -> Image.Image:
    """The RGBA picture of an entity or prop, cropped; KeyError for an unknown name."""
    return _sheet().crop(_index()[name]["box"])


def clothes(name: str) -> tuple[str, str, str] | None:
    """Body colour, trousers colour and prop of a person; None for animals and objects."""
    entry = _index()[name]
    return (entry["body"], entry["trousers"], entry["prop"]) if "body" in entry else None


@cache
def atlas_digest() -> str:
    """SHA-256 over picture and index: part of the renderer's identity."""
    digest = hashlib.sha256(_file("atlas.webp").read_bytes())
    digest.update(_file("index.json").read_bytes())
    return digest.hexdigest()
