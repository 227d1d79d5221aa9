"""Gold images: code shared by those of pairs and those of worlds.

Drawings (SVG files), the PNG of an image, styles and seeds, and whether two images differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from PIL import Image, ImageChops
from pydantic import TypeAdapter

from ..images import encode_drawing, opened
from ..scenes.vector import (
    UNITS,
    Extent,
    ShapeError,
    VectorImage,
    VectorShape,
    VectorStyle,
    draw_vector,
)
from ..schema import Struct
from .bank import BankFaults, by_name, read_entries
from .drawings import drawings

if TYPE_CHECKING:
    from ..scenes.svg import SvgLayer

E = TypeVar("E", bound=Struct)
D = TypeVar("D", bound=Struct)
Layers = dict[str, "SvgLayer"]
"""Layers of a drawing by name."""

REACH = 0.35
"""Distance that shapes of the scene may reach beyond the stage, in stage widths."""
STYLES_EACH = 2
"""Images of the same thing: each in a style and with a seed of its own."""
LEAST_DIFFERENCE = 0.0007
"""Share of the pixels that must differ visibly between two images of one style."""
VISIBLE = 24
"""Difference of a pixel's brightness that is seen, of 255."""
LOOKED = "reviewer-model-on-images"
"""Mark of an image that was recognized by a model that looked at it without its key."""
LICENSE = "CC-BY-4.0"
"""License of the texts and the drawings."""
GROUND = "ground"
"""Layer of a drawing whose color fills the whole image."""


@dataclass(frozen=True)
class DrawnFolder(Generic[E, D]):
    """A folder of the bank whose entries, in `FILE.yaml`, have each a drawing, `FILE/NAME.svg`."""

    name: str
    entry: type[E]
    """What `FILE.yaml` lists."""
    field: str
    """Field of an entry that names its drawing."""
    layers: Collection[str]
    """Layers that a drawing may have."""
    whole: Callable[[E, Layers], D]
    """An entry with what its drawing shows. Raises ShapeError."""

    def read(self, bank: Path, faults: BankFaults | None = None) -> dict[str, list[D]]:
        """The entries of every file, by its name without suffix, sorted; none without the folder.

        Raises BankError naming all faults of entries and drawings, names that are used twice and
        drawings without an entry, or adds them to `faults` and leaves those entries out.
        """
        own = BankFaults() if faults is None else faults
        names = sorted(path.stem for path in (bank / self.name).glob("*.yaml"))
        for folder in sorted({path.parent for path in (bank / self.name).glob("*/*.svg")}):
            if folder.name not in names:
                own.add(f"{folder}: no file {folder.name}.yaml has entries of its drawings")
        files = {name: self.read_file(bank, name, own) for name in names}
        with own.caught():
            entries = (entry for some in files.values() for entry in some)
            by_name(entries, self.field, str(bank / self.name))
        if faults is None:
            own.raise_any()
        return files

    def read_file(self, bank: Path, file: str, faults: BankFaults | None = None) -> list[D]:
        """The entries of one file. Raises or adds to `faults` as `read`, but for repeated names."""
        path, own = bank / self.name / f"{file}.yaml", BankFaults() if faults is None else faults
        entries, drawn, folder = [], [], path.with_suffix("")
        before = len(own.lines)
        with own.caught():
            entries = read_entries(path, self.entry, own)
        if len(own.lines) == before:  # else the entry of a drawing may be a faulty one
            named = {getattr(entry, self.field) for entry in entries}
            for extra in sorted({file.stem for file in folder.glob("*.svg")} - named):
                fault = f"no entry of {path.name} has the {self.field} {extra!r}"
                own.add(f"{folder / extra}.svg: {fault}: add one, or delete the file")
        for entry in entries:
            drawing = folder / f"{getattr(entry, self.field)}.svg"
            try:
                drawn.append(self.whole(entry, _read_layers(drawing, self.layers)))
            except OSError as error:
                own.add(
                    f"{drawing}: can't be read: {error.strerror}: each entry of {path.name} needs "
                    f"the drawing {self.field.upper()}.svg"
                )
            except ShapeError as error:
                own.add(f"{drawing}: {error}")
        if faults is None:
            own.raise_any()
        return drawn


class SvgRequest(NamedTuple):
    """A drawing to read: its paths take most of the time in which a bank is read."""

    data: bytes

    @property
    def key(self) -> str:
        """The file's bytes."""
        return f"bank drawing {self.data.decode('latin-1')}"

    def draw(self) -> bytes:
        """Its layers as JSON; nothing if it has a fault."""
        from ..scenes.svg import read_layers

        try:
            return _as_layers().dump_json(read_layers(self.data))
        except ShapeError:
            return b""  # who reads the drawing says what is wrong


@cache
def _as_layers() -> TypeAdapter[tuple[SvgLayer, ...]]:
    from ..scenes.svg import SvgLayer

    return TypeAdapter(tuple[SvgLayer, ...])


@lru_cache(maxsize=1024)
def _layers_of(data: bytes) -> tuple[SvgLayer, ...]:
    """The layers of a drawing, cached as the entries of other files are. Raises ShapeError."""
    from ..scenes.svg import read_layers

    kept = drawings()(SvgRequest(data))
    return _as_layers().validate_json(kept) if kept else read_layers(data)


def _read_layers(file: Path, known: Collection[str]) -> Layers:
    layers: Layers = {}
    for layer in _layers_of(file.read_bytes()):
        if layer.name not in known:
            names = ", ".join(known)
            raise ShapeError(
                f"layer {layer.name!r} is unknown: layers are {names}", code="unknown-name"
            )
        if layer.name in layers:
            raise ShapeError(
                f"two layers are named {layer.name!r}: make them one", code="duplicate-id"
            )
        layers[layer.name] = layer
    return layers


def shapes_of(layers: Layers, name: str) -> tuple[VectorShape, ...]:
    """What is seen of a layer; nothing of one that is not there."""
    return visible(layers[name].shapes) if name in layers else ()


def visible(shapes: Iterable[VectorShape]) -> tuple[VectorShape, ...]:
    """Shapes with a fill or a stroke."""
    return tuple(shape for shape in shapes if shape.fill or shape.stroke)


def ground_of(layers: Layers) -> str:
    """The color of the layer `ground`, which fills the whole image; empty without such a layer.

    Raises ShapeError for a layer of more than one color.
    """
    shapes = shapes_of(layers, GROUND)
    colors = {shape.fill for shape in shapes}
    if len(colors) > 1 or "" in colors:
        raise ShapeError(
            f"layer {GROUND!r} is not of one color: leave one shape with a fill", code="bad-value"
        )
    return colors.pop() if colors else ""


def shape_faults(where: str, shapes: Iterable[VectorShape], room: Extent) -> Iterator[str]:
    """Letters and places that can't be drawn. Raises ShapeError for a path that can't be read.

    room: where on the stage outlines, and the middles of texts, may be.
    """
    from ..scenes.canvas import can_write, quoted

    x0, y0, x1, y1 = (edge * UNITS for edge in room)

    def leaves(bounds: Extent) -> bool:
        left, top, right, bottom = bounds
        return left < x0 or top < y0 or right > x1 or bottom > y1

    for shape in shapes:
        if shape.text:
            if not can_write(shape.text):
                yield f"{where}: the font lacks a letter of {shape.text!r}"
            bounds = *shape.at, *shape.at
        else:
            bounds = shape.bounds(exact=False)
            if leaves(bounds):  # exact bounds take a hundred times as long
                bounds = shape.bounds()
        if leaves(bounds):
            what = quoted(shape.text) if shape.text else "a shape"
            box = extent_of((x0, y0, x1, y1))
            yield f"{where}: {what} at {extent_of(bounds)} leaves its box, {box}"


def extent_of(bounds: Extent) -> str:
    """Bounds in the units of shapes for a message.

    >>> extent_of((0, 10.04, 1, 20))
    'x 0 to 1, y 10 to 20'
    """
    x0, y0, x1, y1 = (f"{round(edge, 1):g}" for edge in bounds)
    return f"x {x0} to {x1}, y {y0} to {y1}"


def style_of(name: str, styles: Sequence[VectorStyle], seed: int) -> VectorStyle:
    """Returns one of the styles; the name decides the first, and each seed takes the next."""
    return styles[(int(hashlib.sha256(name.encode()).hexdigest(), 16) + seed) % len(styles)]


def seed_of(name: str, seed: int) -> int:
    """The seed of size, position and ground in [0, 2**31): no two things have the same ones."""
    return int(hashlib.sha256(f"{name}/{seed}".encode()).hexdigest()[:12], 16) % 2**31


@dataclass(frozen=True)
class GoldRequest:
    """One gold image to draw."""

    image: VectorImage

    @property
    def key(self) -> str:
        """The image as JSON."""
        return f"gold {_as_json().dump_json(self.image).decode()}"

    def draw(self) -> bytes:
        """The PNG. Raises ShapeError for what can't be drawn."""
        return encode_drawing(draw_vector(self.image), flat=self.image.style != "shaded")


@cache
def _as_json() -> TypeAdapter[VectorImage]:
    return TypeAdapter(VectorImage)


def begin_gold(images: Iterable[VectorImage]) -> None:
    """Starts drawing images that `draw_gold` will be asked for."""
    drawings().begin([GoldRequest(image) for image in images])


def draw_gold(image: VectorImage) -> bytes:
    """The PNG of one gold image. Raises ShapeError for what can't be drawn."""
    return drawings()(GoldRequest(image))


class DifferenceRequest(NamedTuple):
    """Two gold images to compare."""

    first: bytes
    second: bytes

    @property
    def key(self) -> str:
        """The digests of both."""
        return " ".join(["difference", *(hashlib.sha256(data).hexdigest() for data in self)])

    def draw(self) -> bytes:
        """Share of the pixels that visibly differ, as text."""
        with opened(BytesIO(self.first)) as a, opened(BytesIO(self.second)) as b:
            return repr(visible_difference(a, b)).encode()


def differences(pairs: Iterable[tuple[bytes, bytes]]) -> list[float]:
    """Share of the pixels that visibly differ between the encoded images of each pair, which have
    one size."""
    requests = [DifferenceRequest(*pair) for pair in pairs]
    drawings().begin(requests)
    return [float(drawings()(request)) for request in requests]


def difference(first: bytes, second: bytes) -> float:
    """Share of the pixels that visibly differ between two encoded images of one size."""
    return differences([(first, second)])[0]


def visible_difference(first: Image.Image, second: Image.Image) -> float:
    """Share of the pixels that visibly differ between two images of one size, in [0, 1]."""
    apart = ImageChops.difference(first.convert("RGB"), second.convert("RGB"))
    red, green, blue = apart.split()
    most = ImageChops.lighter(ImageChops.lighter(red, green), blue).histogram()
    return sum(most[VISIBLE + 1 :]) / sum(most)
