"""The drawings of gold images as `render:` takes them: of a group's worlds, of a constrained pair.

Read from the shipped bank file by file, so that one drawing doesn't need all of them. The bank's
own checks (`Banks`) have seen each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from ..scenes.vector import VectorImage
from ..schema import GoldLayout
from .bank import DEFAULT_BANK, read_entries
from .constrained import ConstrainedPair
from .depictions import DEPICTIONS, Drawable, drawable_pairs
from .facts import FactTables, read_facts
from .gold import style_of
from .world_drawings import DRAWN, WORLD_DRAWINGS, WorldDrawing


def draws_world(group: str) -> bool:
    """Whether the bank has a drawing of a group."""
    return _drawing_of(group) is not None


def world_images(group: str, shown: str, seed: int) -> list[VectorImage]:
    """A group's scene, in a style that the seed chooses: the panels of an image, from the left.

    shown: `real` or `altered`; `both`, a panel of each; `absent`, the backdrop alone. Raises
    KeyError for a group without a drawing.
    """
    drawing = _drawing_of(group)
    if drawing is None:
        raise KeyError(group)
    style = style_of(group, drawing.styles, seed)
    real, altered = (drawing.image(world, style, seed) for world in DRAWN)
    panels = {
        "real": [real],
        "altered": [altered],
        "both": [real, altered],
        "absent": [replace(real, behind=(), over=())],
    }
    return panels[shown]


def drawn_worlds(file: str) -> list[str]:
    """Ids of the groups that a file of the bank draws, in its order."""
    return list(_worlds(file))


def draws_pair(domain: str, left: str, right: str, context: str) -> bool:
    """Whether the bank has a depiction of a constrained pair."""
    return _depicted(domain).get((left, right, context)) is not None


def pair_image(
    domain: str, left: str, right: str, context: str, layout: GoldLayout, seed: int
) -> VectorImage:
    """A constrained pair in a layout, in a style that the seed chooses.

    Raises KeyError for a pair without a depiction.
    """
    drawable = _depicted(domain)[left, right, context]
    style = style_of(drawable.pair.id, drawable.depiction.styles, seed)
    return drawable.image(layout, style, seed)


def drawn_pairs(domain: str) -> list[ConstrainedPair]:
    """The pairs of a domain that the bank draws, in the order of the depictions."""
    return [drawable.pair for drawable in _depicted(domain).values()]


def _drawing_of(group: str) -> WorldDrawing | None:
    """The drawing of a group; the file whose name is in the group's is read first."""
    files = [path.stem for path in sorted((DEFAULT_BANK / WORLD_DRAWINGS.name).glob("*.yaml"))]
    found: Iterator[WorldDrawing] = (
        drawings[group]
        for file in sorted(files, key=lambda name: name not in group)
        if group in (drawings := _worlds(file))
    )
    return next(found, None)


@cache
def _worlds(file: str) -> dict[str, WorldDrawing]:
    return {drawing.group: drawing for drawing in WORLD_DRAWINGS.read_file(DEFAULT_BANK, file)}


@cache
def _facts() -> FactTables:
    return read_facts(DEFAULT_BANK)


@cache
def _depicted(domain: str) -> dict[tuple[str, str, str], Drawable]:
    """(left, right, context) -> pair of a domain with its drawing; empty for a domain without."""
    path = DEFAULT_BANK / DEPICTIONS.name / f"{domain}.yaml"
    if domain != path.stem or not path.exists():
        return {}
    pairs = read_entries(DEFAULT_BANK / "constrained" / f"{domain}.yaml", ConstrainedPair)
    by_id = {pair.id: pair for pair in pairs}
    drawables = drawable_pairs(
        {domain: DEPICTIONS.read_file(DEFAULT_BANK, domain)}, by_id, _facts()
    )
    return {(d.pair.left, d.pair.right, d.pair.context): d for d in drawables.values()}
