"""Draws the sprite atlas: ``atlas.webp`` and ``index.json`` in ``scenes/atlas``.

Needs the Noto Emoji set of Iconify (npm package ``@iconify-json/noto``, its ``icons.json``) and
the wheel ``resvg-py``; neither is needed by the package, which ships what this program made::

    npm pack @iconify-json/noto@1.2.9 && tar xzf iconify-json-noto-1.2.9.tgz
    pip install resvg-py==0.2.6 pillow==13.0.0
    python tools/make_atlas.py package/icons.json

Every entity of the taxonomy gets one sprite. People are head and shoulders, with the colors of the
body that the renderer draws below them, a prop for the hand, and a mask of what a skin tone
changes; things are whole.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import resvg_py
from PIL import Image

ATLAS = Path(__file__).parents[1] / "scenes" / "atlas"
SIZE = 176
"""Longer side of a sprite, pixels."""
PROP_SIZE = 96
COLUMNS = 14

RECIPES = json.loads((ATLAS / "recipes.json").read_text("utf-8"))
"""What each sprite is made from.

`people` by occupation: `glyph` follows man-/woman-, a `shirt` of null keeps the glyph's clothes.
`glyphs` are Noto's names of the rest. `faces`: animals of which the set has only the face, set on
a body of ours. `drawn` and `props drawn`: SVG elements of ours.
"""

MASKED = {
    "#ff0000": ("#ffca28", "#ffca26"),
    "#00ff00": ("#e59600", "#e59502", "#e39503", "#e3970a", "#e59700", "#ffb300"),
    "#0000ff": (
        *("#404040", "#3f4040", "#795548", "#785446"),
        *("#6d4c41", "#6d4c3f", "#543930", "#62453b", "#63453b"),
    ),
}
"""Color of the mask -> Noto's colors of that part: skin, its shade, features and brown hair."""
TONED = ("{}-medium-dark-skin-tone", "{}ed-medium-dark-skin-tone")
"""Noto's names of a person with another skin tone; `{}` is the person."""


class Glyphs:
    """Noto's drawings by name, as SVG of 128 x 128 units."""

    def __init__(self, path: Path) -> None:
        data = json.loads(path.read_text(encoding="utf-8"))
        self._icons = data["icons"]
        self._aliases = data.get("aliases", {})

    def inner(self, name: str) -> str:
        icon = self._icons.get(name) or self._icons[self._aliases[name]["parent"]]
        return str(icon["body"])

    def toned(self, person: str) -> str:
        """A person with another skin tone, of the same shapes as far as Noto kept them."""
        sex, _, rest = person.partition("-")
        names = [name.format(person) for name in TONED]
        for name in (*names, f"{sex}-medium-dark-skin-tone-{rest}"):
            if name in self._icons or name in self._aliases:
                return self.inner(name)
        raise KeyError(person)


def draw(inner: str, size: int) -> Image.Image:
    """SVG elements on a 128 x 128 canvas as RGBA, `size` pixels wide."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 128 128" width="{size}" height="{size}">{inner}</svg>'
    )
    encoded = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=size, height=size))
    return Image.open(io.BytesIO(encoded)).convert("RGBA")


def face_with_body(glyphs: Glyphs, glyph: str, fur: str, belly: str, paws: str) -> str:
    """A sitting animal: the set's face on a body of ours."""
    return f"""
      <ellipse cx="64" cy="92" rx="38" ry="34" fill="{fur}"/>
      <ellipse cx="64" cy="98" rx="22" ry="24" fill="{belly}"/>
      <ellipse cx="44" cy="122" rx="14" ry="6" fill="{paws}"/>
      <ellipse cx="84" cy="122" rx="14" ry="6" fill="{paws}"/>
      <ellipse cx="34" cy="96" rx="9" ry="15" fill="{fur}" transform="rotate(18 34 96)"/>
      <ellipse cx="94" cy="96" rx="9" ry="15" fill="{fur}" transform="rotate(-18 94 96)"/>
      <g transform="translate(22 0) scale(.66)">{glyphs.inner(glyph)}</g>"""


def mask(glyphs: Glyphs, person: str) -> str:
    """The person in the colors of `MASKED`, everything that no tone changes in black.

    A badge or tassel of a color of skin keeps it in Noto's toned person, which tells it apart.
    """
    ElementTree.register_namespace("xlink", XLINK)
    root, toned = _parsed(glyphs.inner(person)), _parsed(glyphs.toned(person))
    paints = {}
    for shape, fill in _shapes(toned):
        paints.setdefault(_geometry(shape), set()).add(_paint(toned, fill))
    parts = {color: part for part, colors in MASKED.items() for color in colors}
    for shape, fill in list(_shapes(root)):
        kept = _paint(root, fill) in paints.get(_geometry(shape), ())
        stops = _stops(root, fill)
        for stop in stops:
            stop.set("stop-color", "#000000" if kept else parts.get(_color(stop), "#000000"))
        if not stops and fill != "none":
            shape.set("fill", "#000000" if kept else parts.get(fill, "#000000"))
        if shape.get("stroke", "none") != "none":
            shape.set("stroke", "#000000")
    return "".join(ElementTree.tostring(child, "unicode") for child in root)


XLINK = "http://www.w3.org/1999/xlink"


def _parsed(inner: str) -> ElementTree.Element:
    return ElementTree.fromstring(f'<svg xmlns:xlink="{XLINK}">{inner}</svg>')


def _shapes(
    element: ElementTree.Element, inherited: str = "#000000"
) -> Iterator[tuple[ElementTree.Element, str]]:
    """Every shape with its fill, in order."""
    fill = element.get("fill", inherited)
    if element.tag in ("path", "ellipse", "circle"):
        yield element, fill
    for child in element:
        if element.tag != "clipPath":
            yield from _shapes(child, fill)


def _geometry(shape: ElementTree.Element) -> str:
    places = ("cx", "cy", "rx", "ry", "r", "transform")
    return shape.get("d") or " ".join(shape.get(name, "") for name in places)


def _stops(root: ElementTree.Element, fill: str) -> list[ElementTree.Element]:
    """The stops of a gradient; empty for a plain color."""
    name = fill.removeprefix("url(#").removesuffix(")")
    return [s for g in root.iter() if g.get("id") == name for s in g.findall("stop")]


def _color(stop: ElementTree.Element) -> str:
    return stop.get("stop-color", "#000000")


def _paint(root: ElementTree.Element, fill: str) -> tuple[str, ...]:
    return tuple(map(_color, _stops(root, fill))) or (fill,)


def recolored_shirt(image: Image.Image, color: str) -> Image.Image:
    """The figure with its plain teal or violet shirt in another color, shading kept."""
    target = tuple(int(color[i : i + 2], 16) for i in (1, 3, 5))
    pixels = image.load()
    for y in range(image.height * 2 // 3, image.height):
        for x in range(image.width):
            r, g, b, a = pixels[x, y]
            teal = g > r + 40 and b > r + 30 and g >= b - 10
            violet = b > r + 40 and b > g + 60
            if a and (teal or violet):
                shade = (g / 190) if teal else (b / 245)
                pixels[x, y] = (*(min(255, round(c * min(shade, 1.1))) for c in target), a)
    return image


def sprites(glyphs: Glyphs) -> dict[str, tuple[Image.Image, dict[str, str]]]:
    """Name to image and its entry in the index."""
    made: dict[str, tuple[Image.Image, dict[str, str]]] = {}
    masks: dict[str, Image.Image] = {}
    for occupation, person in RECIPES["people"].items():
        glyph, shirt, prop = person["glyph"], person["shirt"], person["prop"]
        for gender, prefix in (("male", "man-"), ("female", "woman-")):
            inner = glyphs.inner(prefix + glyph)
            if occupation == "civil engineer":  # the white helmet of those who plan
                inner = inner.replace("#ffea00", "#fafafa").replace("#edbf00", "#cfd8dc")
            bust = draw(inner, SIZE)
            if shirt is not None:
                bust = recolored_shirt(bust, shirt)
            entry = {
                "art": f"noto {prefix}{glyph}",
                "body": person["body"],
                "trousers": person["trousers"],
                "prop": f"prop {occupation}",
            }
            made[f"{gender} {occupation}"] = bust, entry
            masks[f"mask noto {prefix}{glyph}"] = on_black(
                draw(mask(glyphs, prefix + glyph), SIZE).crop(bust.getbbox())
            )
        drawn = RECIPES["props drawn"].get(prop)
        inner = "\n".join(drawn) if drawn else glyphs.inner(prop)
        made[f"prop {occupation}"] = (
            draw(inner, PROP_SIZE),
            {"art": "ours" if drawn else f"noto {prop}"},
        )
    for name, glyph in RECIPES["glyphs"].items():
        made[name] = draw(glyphs.inner(glyph), SIZE), {"art": f"noto {glyph}"}
    for name, face in RECIPES["faces"].items():
        image = draw(face_with_body(glyphs, **face), SIZE)
        made[name] = image, {"art": f"noto {face['glyph']} (face), ours (body)"}
    for name, lines in RECIPES["drawn"].items():
        made[name] = draw("\n".join(lines), SIZE), {"art": "ours"}
    made |= {name: (image, {}) for name, image in masks.items()}
    return {name: made[name] for name in sorted(made)}


def on_black(image: Image.Image) -> Image.Image:
    """Opaque, with the colors under what is half transparent, and black where nothing is."""
    colors = image.convert("RGB")
    colors.paste("black", (0, 0), image.getchannel("A").point(lambda a: 255 * (a == 0)))
    return colors.convert("RGBA")


def main(icons: Path) -> None:
    cropped = {}
    for name, (image, entry) in sprites(Glyphs(icons)).items():
        cropped[name] = image.crop(image.getbbox()), entry
    sheet, index = pack(cropped)
    sheet.save(ATLAS / "atlas.webp", lossless=True, quality=100, method=6, exact=False)
    text = json.dumps(index, indent=1, sort_keys=True)
    (ATLAS / "index.json").write_text(text + "\n", encoding="utf-8")
    print(f"{len(index)} sprites, {sheet.size}, {(ATLAS / 'atlas.webp').stat().st_size:,} bytes")


def pack(
    cropped: dict[str, tuple[Image.Image, dict[str, str]]],
) -> tuple[Image.Image, dict[str, object]]:
    """All images on one sheet, row by row, with their boxes."""
    width = COLUMNS * SIZE
    x = y = row = 0
    index: dict[str, object] = {}
    places = []
    for name, (image, entry) in cropped.items():
        if x + image.width > width:
            x, y, row = 0, y + row, 0
        places.append((image, x, y))
        index[name] = {"box": [x, y, x + image.width, y + image.height], **entry}
        x += image.width
        row = max(row, image.height)
    sheet = Image.new("RGBA", (width, y + row))
    for image, left, top in places:
        sheet.paste(image, (left, top))
    return sheet, index


if __name__ == "__main__":
    main(Path(sys.argv[1]))
