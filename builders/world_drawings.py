"""Drawings of altered worlds: from each, code draws gold images of a group's two worlds.

A drawing says what both worlds share and what each has alone, so the two images differ by nothing
but what the law changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

from ..scenes.vector import (
    ShapeError,
    VectorImage,
    VectorShape,
    VectorStyle,
    draw_vector,
)
from ..schema import Struct, World
from .bank import BankFaults
from .counterfactual import Law
from .gold import (
    GROUND,
    LEAST_DIFFERENCE,
    STYLES_EACH,
    DrawnFolder,
    Layers,
    ground_of,
    seed_of,
    shape_faults,
    shapes_of,
    style_of,
    visible_difference,
)
from .worlds import WorldEntry

LAYERS = ("scene", "behind", "real", "altered", "over")
"""Layers of a drawing with shapes; besides, it may have a ground."""
REACH = 1.0
"""Distance that shapes may reach beyond the stage: beams, horizons and slopes leave the image."""
DRAWN: tuple[World, ...] = get_args(World)


class WorldDrawingEntry(Struct):
    """What a bank file says of a drawing."""

    group: str
    """Id of the group; its drawing is the SVG file of this name."""
    styles: tuple[VectorStyle, ...] = ("flat", "outlined", "shaded")
    """Styles in which the worlds can be told apart; add `blueprint` and `ink` where no color
    decides."""


class WorldDrawing(WorldDrawingEntry):
    """A group's scene as both worlds show it: each field is a layer of the drawing, whose shapes
    are on the stage and may reach beyond it."""

    scene: tuple[VectorShape, ...] = ()
    """Backdrop of both worlds, which throws no shadow."""
    behind: tuple[VectorShape, ...] = ()
    """Shapes of both worlds, behind those of one world alone."""
    real: tuple[VectorShape, ...] = ()
    """Shapes of the real world alone."""
    altered: tuple[VectorShape, ...] = ()
    """Shapes of the altered world alone."""
    over: tuple[VectorShape, ...] = ()
    """Shapes of both worlds, in front."""
    ground: str = ""
    """Color behind the stage, e.g. a night sky; a light one if empty."""

    def image(self, world: World, style: VectorStyle, seed: int) -> VectorImage:
        """One of the worlds; both look the same in size, position and ground with one seed."""
        return VectorImage(
            parts=(),
            scene=self.scene,
            behind=(*self.behind, *(self.real if world == "real" else self.altered)),
            over=self.over,
            ground=self.ground,
            style=style,
            seed=seed_of(self.group, seed),
        )

    def versions(self) -> Iterator[tuple[World, VectorStyle, int]]:
        """World, style and seed of every gold image: both worlds in each of two styles."""
        for seed in range(STYLES_EACH):
            for world in DRAWN:
                yield world, style_of(self.group, self.styles, seed), seed


@dataclass(frozen=True)
class DrawnGroup:
    """A drawing that has passed its checks."""

    drawing: WorldDrawing
    entry: str
    """File of the drawing, relative to the bank."""


def _world_drawing(entry: WorldDrawingEntry, layers: Layers) -> WorldDrawing:
    return WorldDrawing(
        **entry.model_dump(),
        scene=shapes_of(layers, "scene"),
        behind=shapes_of(layers, "behind"),
        real=shapes_of(layers, "real"),
        altered=shapes_of(layers, "altered"),
        over=shapes_of(layers, "over"),
        ground=ground_of(layers),
    )


WORLD_DRAWINGS = DrawnFolder(
    "world_drawings", WorldDrawingEntry, "group", (GROUND, *LAYERS), _world_drawing
)


def drawn_groups(
    files: Mapping[str, list[WorldDrawing]],
    laws: Mapping[str, list[Law]],
    worlds: Mapping[str, WorldEntry],
) -> dict[str, DrawnGroup]:
    """Every drawing by its group. Raises BankError naming file, entry and fault."""
    status = {s.id: s.status for some in laws.values() for law in some for s in law.scenes}
    groups, faults = {}, BankFaults()
    for file, drawings in files.items():
        for drawing in drawings:
            entry = f"{WORLD_DRAWINGS.name}/{file}.yaml"
            for fault in (*_group_faults(drawing, status, worlds), *drawing_faults(drawing)):
                faults.add(f"{entry}, {drawing.group}: {fault}")
            groups[drawing.group] = DrawnGroup(drawing, entry)
    faults.raise_any()
    return groups


def _group_faults(
    drawing: WorldDrawing, status: Mapping[str, str], worlds: Mapping[str, WorldEntry]
) -> Iterator[str]:
    if drawing.group not in status:
        yield "group: is not a group of the bank"
    elif status[drawing.group] == "retired":
        yield "group: is retired"
    elif drawing.group not in worlds:
        yield "group: has no entry in worlds/, so nobody knows what its scene must show"


def drawing_faults(drawing: WorldDrawing) -> Iterator[str]:
    """Yields the faults of a drawing: letters, places, or no difference at all."""
    if not drawing.styles:
        yield "styles: name at least one"
    if not drawing.real and not drawing.altered:
        yield "real, altered: nothing is in one world alone"
    around = -REACH, -REACH, 1 + REACH, 1 + REACH
    try:
        for layer in LAYERS:
            yield from shape_faults(layer, getattr(drawing, layer), around)
    except ShapeError as error:
        yield str(error)


def alike_faults(drawing: WorldDrawing, styles: Iterable[VectorStyle] = ()) -> Iterator[str]:
    """Styles in which the two worlds can hardly be told apart; all of the drawing's unless given.

    Raises ShapeError for a drawing with `drawing_faults`.
    """
    for style in styles or drawing.styles:
        images = (draw_vector(drawing.image(world, style, 0)) for world in DRAWN)
        if (share := visible_difference(*images)) < LEAST_DIFFERENCE:
            yield f"{style}: the two worlds look alike: {share:.2%} of the pixels differ"
