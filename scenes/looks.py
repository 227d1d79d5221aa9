"""Descriptions of entities as drawn, in words for someone who sees the image.

``atlas/looks.json`` describes every sprite and names every color of clothes; people, who are drawn
from parts, are described from their parts.
"""

from __future__ import annotations

from functools import cache

from .sprites import art, clothes, drawn_as, read_json


@cache
def look(entity: str) -> str:
    """Returns a description of an entity as drawn, without a word for its side.

    Raises KeyError for an entity that the atlas lacks.

    >>> look("male security guard")
    'man in a tall dark gray bearskin hat, red top, black trousers, holding a teal flashlight'
    """
    entity = drawn_as(entity)
    words = read_json("atlas/looks.json")
    worn = clothes(entity)
    if worn is None:
        return str(words["things"][entity])
    colors, head, prop = words["colors"], words["heads"][art(entity)], words["props"][worn.prop]
    top, trousers = colors[worn.body], colors[worn.trousers]
    dress = f"{top} top and trousers" if top == trousers else f"{top} top, {trousers} trousers"
    return f"{head}, {dress}, holding {prop}"
