"""Draws the sprite atlas: ``atlas.webp`` and ``index.json`` in ``scenes/atlas``.

Needs the Noto Emoji set of Iconify (npm package ``@iconify-json/noto``, its ``icons.json``) and
the wheel ``resvg-py``; neither is needed by the package, which ships what this program made::

    npm pack @iconify-json/noto@1.2.9 && tar xzf iconify-json-noto-1.2.9.tgz
    pip install resvg-py==0.2.6 pillow==13.0.0
    python tools/make_atlas.py package/icons.json

Every entity of the taxonomy gets one sprite. People are head and shoulders, with the colors of the
body that the renderer draws below them, and a prop for the hand; things are whole.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

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


class Glyphs:
    """Noto's drawings by name, as SVG of 128 x 128 units."""

    def __init__(self, path: Path) -> None:
        data = json.loads(path.read_text(encoding="utf-8"))
        self._icons = data["icons"]
        self._aliases = data.get("aliases", {})

    def inner(self, name: str) -> str:
        icon = self._icons.get(name) or self._icons[self._aliases[name]["parent"]]
        return str(icon["body"])


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
    return {name: made[name] for name in sorted(made)}


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
