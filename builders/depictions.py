"""Depictions: how the parts of a fact look, from which code draws gold images of constrained pairs.

A depiction never says where a thing is for the viewer. Its drawing shows the fact's axis running to
the right, code holds the order of its parts to the fact, and the frame turns them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from pydantic import Field

from ..scenes.people import Point
from ..scenes.vector import (
    UNITS,
    Extent,
    PlacedPart,
    ShapeError,
    Turn,
    VectorImage,
    VectorShape,
    VectorStyle,
)
from ..schema import Frame, GoldLayout, Struct
from .bank import BankFaults, read_by_name
from .constrained import ConstrainedPair
from .facts import SAME, FactError, FactTables
from .gold import (
    GROUND,
    REACH,
    DrawnFolder,
    Layers,
    extent_of,
    ground_of,
    seed_of,
    shape_faults,
    shapes_of,
    visible,
)

if TYPE_CHECKING:
    from ..scenes.svg import SvgLayer

LAYERS = (GROUND, "scene", "behind", "parts", "over")
"""Layers of a drawing."""
EACH = "{part}"
"""Layer of the parts without a layer of their own; in a text, the name of such a part."""
LAYOUTS: tuple[GoldLayout, ...] = get_args(GoldLayout)
HALF_TURNS: frozenset[Frame] = frozenset({"turned", "south-up", "sky-south-up"})
"""Frames in which top and bottom are exchanged too."""
SHRUNK = 0.72
"""Width of the stage in a doubled layout, which leaves room for the second copy."""
LABEL = 0.94
"""Share of the width of a part's box that its name may take."""
OUTSIDE = 0.021
"""Share of its box, or of the stage, by which a shape of a part, or its box, may be outside."""
COVERED = 0.12
"""Share of another part's box that a moved part may cover before the other one is left out."""


class DepictionEntry(Struct):
    """What a bank file says of a depiction."""

    id: str
    """Slug; its drawing is the SVG file of this name."""
    fact: str
    """Fact table whose parts it shows."""
    pairs: tuple[str, ...]
    """Ids of the constrained pairs for whose prompt it is a right image."""
    area: Extent = (0.15, 0.15, 0.85, 0.85)
    """Where on the stage the outermost centers of the fact's parts are, for those that are drawn by
    the layer `{part}`."""
    whole: bool = False
    """Whether it is one body, e.g. a fish or a flag: seen the other way round, and in a swapped
    image, all of it is mirrored. Else things change places and keep their shape."""
    keeps_heights: bool = False
    """Whether things that change places keep the height at which they are, e.g. a tall and a short
    one that stand on the ground. Else each comes to the height of the other."""
    plan: bool = False
    """Whether it is seen from above, so that the opposite frame is half a turn."""
    spare: str = ""
    """Part whose place a second copy takes in a doubled image; beside the stage if empty."""
    styles: tuple[VectorStyle, ...] = ("flat", "outlined", "shaded")
    """Styles in which both things can be told; add `blueprint` and `ink` where no color decides."""


class Depiction(DepictionEntry):
    """The parts of one fact, ready to be drawn: each field is a layer of the drawing."""

    parts: dict[str, PlacedPart] = Field(default_factory=dict)
    """Part of the fact -> how it looks where the fact's axis runs to the right; drawn in this
    order. In the drawing, each is a layer of the layer `parts`. Its box is its invisible shape,
    else what its shapes extend over."""
    each: PlacedPart | None = None
    """How all other parts of the fact look, e.g. a key with `{part}` on it: the layer `{part}` of
    the layer `parts`; None to leave them out. The fact places them."""
    scene: tuple[VectorShape, ...] = ()
    """Shapes behind everything on the stage; unchanged in a swapped image, e.g. a pole."""
    behind: tuple[VectorShape, ...] = ()
    """Shapes that belong to the parts and are behind them, e.g. the body of a fish."""
    over: tuple[VectorShape, ...] = ()
    """Shapes in front of the parts, on the stage."""
    ground: str = ""
    """Color behind the stage; a light one if empty."""


@dataclass(frozen=True)
class Drawable:
    """A pair with what it takes to draw it."""

    pair: ConstrainedPair
    depiction: Depiction
    left: str
    """Part that the left phrase names."""
    right: str
    """Part that the right phrase names."""
    places: Mapping[str, Point]
    """Part -> where the fact has it."""
    sign: int
    """1 where the fact's axis runs to the viewer's right, else -1."""
    entry: str
    """File of the depiction, relative to the bank."""

    def image(self, layout: GoldLayout, style: VectorStyle, seed: int) -> VectorImage:
        """Returns the pair in a layout, whichever of the two things the entry calls left.

        right: as the fact has it. swapped: the two exchanged. missing: one of them left out.
        doubled: one of them there twice. above: one above the other.
        """
        depiction, turn = self.depiction, self._turn
        scene_turn = turn
        placed, stage = list(self._standing), (0.0, 0.0, 1.0, 1.0)
        if layout == "swapped":
            if depiction.whole:
                turn = Turn(not turn.mirrored, turn.upside)
            else:
                placed = self._cleared(self._exchanged)
        elif layout == "missing":
            placed = [p for p in placed if p.name != self._chosen]
        elif layout == "doubled":
            placed, stage = self._doubled
        elif layout == "above":
            lying = Turn(turn.mirrored, turn.upside, quarter=True)
            if depiction.whole and self._is_steep(lying):
                turn = scene_turn = lying
            else:
                placed = self._cleared(self._stacked)
        return VectorImage(
            parts=tuple(placed),
            scene=depiction.scene,
            scene_turn=scene_turn,
            behind=depiction.behind,
            over=depiction.over,
            ground=depiction.ground,
            turn=turn,
            upright=not depiction.whole,
            stage=stage,
            style=style,
            seed=seed_of(self.pair.id, seed),
        )

    @property
    def shows_both(self) -> bool:
        """Whether its two things are drawn, and not one above the other."""
        a, b = self._part(self.left), self._part(self.right)
        apart = abs(a.center[0] - b.center[0]) > SAME
        return apart and bool(a.shapes and b.shapes)

    @property
    def _turn(self) -> Turn:
        away = self.sign < 0
        upside = self.pair.frame in HALF_TURNS or (self.depiction.plan and away)
        return Turn(mirrored=away, upside=upside)

    @property
    def _chosen(self) -> str:
        """Thing that is missing or doubled: either, by the hash of the pair."""
        return sorted((self.left, self.right))[int(_hash(self.pair.id), 16) % 2]

    @cached_property
    def _standing(self) -> tuple[PlacedPart, ...]:
        """Every part where the fact has it, axis to the right."""
        return tuple(_standing(self.depiction, self.places))

    def _part(self, name: str) -> PlacedPart:
        return next(placed for placed in self._standing if placed.name == name)

    @property
    def _exchanged(self) -> dict[str, PlacedPart]:
        """Both at each other's outer edge, so that a wide and a narrow thing stay on the stage."""
        first, last = sorted(
            (self._part(self.left), self._part(self.right)), key=lambda placed: placed.center[0]
        )
        return {
            last.name: _moved(last, (first.box[0] + last.size[0] / 2, self._level(last, first))),
            first.name: _moved(first, (last.box[2] - first.size[0] / 2, self._level(first, last))),
        }

    def _level(self, moved: PlacedPart, place: PlacedPart) -> float:
        """Returns the height of its center at another's place."""
        return (moved if self.depiction.keeps_heights else place).center[1]

    def _is_steep(self, turn: Turn) -> bool:
        """Whether a turn has one of the two clearly above the other, and not beside it."""
        (x, y), (u, v) = (turn(self._part(name).center) for name in (self.left, self.right))
        return abs(y - v) > 2.5 * abs(x - u) + SAME

    @property
    def _stacked(self) -> dict[str, PlacedPart]:
        a, b = self._part(self.left), self._part(self.right)
        tall = max(a.size[1], b.size[1])
        apart = max(1.15 * tall, min(abs(a.center[0] - b.center[0]), 0.98 - tall))
        shrink = min(1.0, 0.96 / (apart + tall))
        x = (a.center[0] + b.center[0]) / 2
        up = (0.5 - shrink * apart / 2, 0.5 + shrink * apart / 2)
        return {
            placed.name: _moved(placed, (x, y), shrink)
            for placed, y in zip((a, b), up, strict=True)
        }

    @property
    def _doubled(self) -> tuple[list[PlacedPart], Extent]:
        extra, single = self._part(self._chosen), self._other
        if spare := self.depiction.spare:
            place = self._part(spare)
            remaining = [placed for placed in self._standing if placed.name != spare]
            return [*remaining, _moved(extra, place.center)], (0.0, 0.0, 1.0, 1.0)
        # Beyond the other one, so that it is on both sides of it.
        room = (1 - SHRUNK) / SHRUNK
        extra = _moved(extra, extra.center, min(1.0, room / extra.size[0]))
        after = single.center[0] > extra.center[0]
        edges = [edge for placed in self._standing for edge in (placed.box[0], placed.box[2])]
        far = (max(edges) + extra.size[0] / 2) if after else (min(edges) - extra.size[0] / 2)
        seen_after = after != self._turn.mirrored
        far = (
            min(far, 1 + room - extra.size[0] / 2) if after else max(far, extra.size[0] / 2 - room)
        )
        lower = 1 - SHRUNK
        stage = (
            0.0 if seen_after else lower,
            lower / 2,
            SHRUNK if seen_after else 1.0,
            SHRUNK + lower / 2,
        )
        return [*self._standing, _moved(extra, (far, extra.center[1]))], stage

    @property
    def _other(self) -> PlacedPart:
        return self._part(self.right if self._chosen == self.left else self.left)

    def _cleared(self, moved: dict[str, PlacedPart]) -> list[PlacedPart]:
        """All parts with those moved, without others that would be covered."""
        return [
            moved.get(placed.name, placed)
            for placed in self._standing
            if placed.name in moved or not any(_covers(m, placed) for m in moved.values())
        ]


def _standing(depiction: Depiction, places: Mapping[str, Point]) -> Iterator[PlacedPart]:
    if depiction.each is not None:
        spread = [_range([place[axis] for place in places.values()]) for axis in (0, 1)]
        x0, y0, x1, y1 = depiction.area
        for name, (x, y) in places.items():
            if name not in depiction.parts:
                across, up = _share(x, spread[0]), _share(y, spread[1])
                center = x0 + (x1 - x0) * across, y1 - (y1 - y0) * up
                yield replace(_named(depiction.each, name), center=center)
    yield from depiction.parts.values()


def _named(each: PlacedPart, name: str) -> PlacedPart:
    """A part as the layer `{part}` draws it, its name smaller where the box is narrow."""
    from ..scenes.canvas import text_width

    across = LABEL * each.size[0] * UNITS
    shapes = []
    for shape in each.shapes:
        if text := shape.text.replace(EACH, name):
            height = min(shape.height, across / text_width(text))
            shape = shape.model_copy(update={"text": text, "height": height})
        shapes.append(shape)
    return replace(each, name=name, shapes=tuple(shapes))


def _range(values: list[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (0.0, 0.0)


def _share(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return (value - low) / (high - low) if high - low > SAME else 0.5


def _moved(placed: PlacedPart, center: Point, scale: float = 1.0) -> PlacedPart:
    return replace(placed, center=center, scale=placed.scale * scale)


def _covers(first: PlacedPart, second: PlacedPart) -> bool:
    (a, b, c, d), (e, f, g, h) = first.box, second.box
    shared = max(0.0, min(c, g) - max(a, e)) * max(0.0, min(d, h) - max(b, f))
    return shared > COVERED * min(first.size[0] * first.size[1], second.size[0] * second.size[1])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _depiction(entry: DepictionEntry, layers: Layers) -> Depiction:
    from ..scenes.svg import SvgLayer

    parts = [_part(layer) for layer in layers.get("parts", SvgLayer("parts")).content]
    if twice := sorted(name for name, n in Counter(p.name for p in parts).items() if n > 1):
        raise ShapeError(
            f"layer 'parts': two layers are named {twice[0]!r}: make them one", code="duplicate-id"
        )
    by_part = {part.name: part for part in parts}
    return Depiction(
        **entry.model_dump(),
        each=by_part.pop(EACH, None),
        parts=by_part,
        scene=shapes_of(layers, "scene"),
        behind=shapes_of(layers, "behind"),
        over=shapes_of(layers, "over"),
        ground=ground_of(layers),
    )


def _part(layer: SvgLayer | VectorShape) -> PlacedPart:
    if isinstance(layer, VectorShape):
        raise ShapeError(
            "layer 'parts': a shape is in no layer of a part: move it into one", code="bad-value"
        )
    seen, hidden = visible(layer.shapes), [s for s in layer.shapes if not s.fill and not s.stroke]
    if not seen and not hidden:
        raise ShapeError(
            f"layer 'parts', {layer.name!r}: is empty: mark its place with an invisible shape",
            code="bad-value",
        )
    edges = np.array([shape.bounds() for shape in hidden or seen]) / UNITS
    (x0, y0), (x1, y1) = edges[:, :2].min(axis=0).tolist(), edges[:, 2:].max(axis=0).tolist()
    if x0 == x1 or y0 == y1:
        raise ShapeError(
            f"layer 'parts', {layer.name!r}: its box has no area: mark one with an invisible shape",
            code="bad-value",
        )
    return PlacedPart(layer.name, seen, (x0, y0, x1, y1), ((x0 + x1) / 2, (y0 + y1) / 2))


DEPICTIONS = DrawnFolder("depictions", DepictionEntry, "id", LAYERS, _depiction)


class GoldLook(Struct):
    """Verdict of a model that looked at a gold image, right or swapped, without its key."""

    image: str
    """SHA-256 of the image's file: a look is worth nothing once the image is another one."""
    said: Literal["right", "swapped", "unsure"]
    """Layout that it took the image for."""


def read_looks(bank: Path) -> dict[str, str]:
    """SHA-256 of an image -> what it was taken for; none where the bank has no such file.

    Raises BankError for an entry that can't be read or an image that is there twice.
    """
    looks = read_by_name(bank / "gold_looks.yaml", GoldLook, "image")
    return {image: look.said for image, look in looks.items()}


def drawable_pairs(
    depictions: Mapping[str, list[Depiction]],
    pairs: Mapping[str, ConstrainedPair],
    facts: FactTables,
) -> dict[str, Drawable]:
    """Every pair that a depiction names, by id. Raises BankError naming file, entry and fault."""
    drawables: dict[str, Drawable] = {}
    faults = BankFaults()
    for domain, listed in depictions.items():
        for depiction in listed:
            entry = f"{DEPICTIONS.name}/{domain}.yaml"
            wrong = list(depiction_faults(depiction, facts))
            for fault in wrong:
                faults.add(f"{entry}, {depiction.id}: {fault}")
            for name in depiction.pairs if not wrong else ():
                if why := _unusable(name, pairs, drawables):
                    faults.add(f"{entry}, {depiction.id}: pairs: {name} {why}")
                    continue
                try:
                    drawables[name] = _drawable(pairs[name], depiction, facts, entry)
                except FactError as error:
                    faults.add(f"{entry}, {depiction.id}: {name}: {error}")
    faults.raise_any()
    return drawables


def drawable_by_fact(
    pair: ConstrainedPair, depictions: Mapping[str, list[Depiction]], facts: FactTables
) -> Drawable | None:
    """A pair that no depiction names yet, by the first one of its fact that shows both its things.

    None without such a depiction, or if the fact lacks a thing, the frame or the scope.
    """
    for domain, listed in depictions.items():
        for depiction in listed:
            if depiction.fact == pair.fact:
                with suppress(FactError):
                    drawable = _drawable(pair, depiction, facts, f"{DEPICTIONS.name}/{domain}.yaml")
                    if drawable.shows_both:
                        return drawable
    return None


def _unusable(
    name: str, pairs: Mapping[str, ConstrainedPair], drawn: Mapping[str, Drawable]
) -> str:
    """Returns why a depiction can't name a pair; empty if it can."""
    if name not in pairs:
        return "is not a pair of the bank"
    if pairs[name].status == "retired":
        return "is retired"
    if why := pairs[name].undrawn:
        return f"says that it can't be drawn: {why}"
    return "is drawn twice" if name in drawn else ""


def _drawable(
    pair: ConstrainedPair, depiction: Depiction, facts: FactTables, entry: str
) -> Drawable:
    if pair.fact != depiction.fact:
        raise FactError(
            f"rests on fact {pair.fact!r}, the depiction draws {depiction.fact!r}",
            code="unknown-reference",
        )
    left, right = (facts.part(pair.fact, phrase) for phrase in (pair.left, pair.right))
    places = _places(depiction, facts, (left, right))
    for name in (left, right):
        if name not in depiction.parts and depiction.each is None:
            raise FactError(f"part {name!r} is not drawn", code="unknown-reference")
    sign = facts.sign(pair.fact, pair.frame, pair.scope)
    return Drawable(pair, depiction, left, right, places, sign, entry)


def _places(
    depiction: Depiction, facts: FactTables, phrases: tuple[str, ...] = ()
) -> dict[str, Point]:
    """Returns the places of the fact's parts and of drawn numbers. Raises FactError for others."""
    places = dict(facts.places(depiction.fact))
    for name in (*depiction.parts, *phrases):
        if name not in places:
            places[name] = facts.place(depiction.fact, name)
    return places


def depiction_faults(depiction: Depiction, facts: FactTables) -> Iterator[str]:
    """Yields the faults of a depiction: parts, order, shapes, letters, boxes."""
    if depiction.fact not in facts.facts:
        yield f"fact: {depiction.fact!r} is unknown"
        return
    try:
        places = _places(depiction, facts)
    except FactError as error:
        yield f"parts: {error}: name the layers {', '.join(facts.places(depiction.fact))}"
        return
    if not depiction.styles:
        yield "styles: name at least one"
    standing = list(_standing(depiction, places))
    around = -REACH, -REACH, 1 + REACH, 1 + REACH
    try:
        for layer in ("scene", "behind", "over"):
            yield from shape_faults(layer, getattr(depiction, layer), around)
        for placed in standing:
            yield from _part_faults(placed)
    except ShapeError as error:
        yield str(error)
        return
    if depiction.spare and depiction.spare not in {placed.name for placed in standing}:
        yield f"spare: {depiction.spare!r} is not drawn"
    for first in standing:
        for second in standing:
            apart = places[first.name][0] - places[second.name][0]
            if apart < -SAME and first.center[0] > second.center[0] + SAME:
                order = f"{first.name} stands after {second.name}, the fact has it before"
                yield f"{order}: exchange them"


def _part_faults(placed: PlacedPart) -> Iterator[str]:
    """Yields what is wrong with a part as it stands. Raises ShapeError as `shape_faults`."""
    if placed.shapes and not all(-OUTSIDE <= edge <= 1 + OUTSIDE for edge in placed.box):
        left, top, right, bottom = (edge * UNITS for edge in placed.box)
        box = extent_of((left, top, right, bottom))
        yield f"{placed.name}: its box, {box}, leaves the stage, 0 to {UNITS}"
    x0, y0, x1, y1 = placed.drawn
    across, down = OUTSIDE * (x1 - x0), OUTSIDE * (y1 - y0)
    room = x0 - across, y0 - down, x1 + across, y1 + down
    yield from shape_faults(placed.name, placed.shapes, room)
    if any(EACH in shape.text for shape in placed.shapes):
        yield f"{placed.name}: {EACH} is for the layer {EACH} only"
