"""Draws the sprite atlas: ``atlas.webp`` and ``index.json`` in this folder.

Needs the Noto Emoji set of Iconify (npm package ``@iconify-json/noto``, its ``icons.json``) and
the wheel ``resvg-py``; neither is needed by the package, which ships what this program made::

    npm pack @iconify-json/noto@1.2.9 && tar xzf iconify-json-noto-1.2.9.tgz
    pip install resvg-py==0.2.6 pillow==13.0.0
    python make_atlas.py package/icons.json

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

HERE = Path(__file__).parent
SIZE = 176
"""Longer side of a sprite, pixels."""
PROP_SIZE = 96
COLUMNS = 14

# Base glyph (after man-/woman-), shirt color, body color, trousers color, prop glyph.
# A shirt color of None keeps the glyph's own clothes.
OCCUPATIONS: dict[str, tuple[str, str | None, str, str, str]] = {
    "physician": ("health-worker", None, "#f2f6f8", "#37474f", "stethoscope"),
    "nurse": ("red-hair", "#7fc8f0", "#7fc8f0", "#7fc8f0", "syringe"),
    "dentist": ("white-hair", "#9fe3cd", "#9fe3cd", "#9fe3cd", "tooth"),
    "pharmacist": ("curly-hair", "#fbfbfb", "#fbfbfb", "#8d6e63", "pill"),
    "teacher": ("teacher", None, "#26a69a", "#455a64", "pencil"),
    "professor": ("student", None, "#2b2b2b", "#2b2b2b", "scroll"),
    "librarian": ("blond-hair", "#a1665e", "#a1665e", "#5d4037", "books"),
    "counselor": ("white-hair", "#8e9cc9", "#8e9cc9", "#5c6370", "left-speech-bubble"),
    "civil engineer": ("construction-worker", None, "#ef7c22", "#3f51b5", "building-construction"),
    "architect": ("curly-hair", "#303030", "#303030", "#616161", "triangular-ruler"),
    "electrician": ("factory-worker", None, "#1e88e5", "#1565c0", "electric-plug"),
    "mechanical engineer": ("mechanic", None, "#3949ab", "#283593", "gear"),
    "chef": ("cook", None, "#f5f5f5", "#616161", "cooking"),
    "waiter": ("in-tuxedo", None, "#2e2e2e", "#2e2e2e", "bellhop-bell"),
    "barista": ("red-hair", "#6d4527", "#6d4527", "#37474f", "hot-beverage"),
    "bartender": ("curly-hair", "#7b1f35", "#7b1f35", "#212121", "cocktail-glass"),
    "manager": ("office-worker", None, "#b3d4f5", "#37474f", "briefcase"),
    "financial manager": ("white-hair", "#1f3a68", "#1f3a68", "#1f3a68", "money-bag"),
    "construction manager": ("construction-worker", None, "#f9d71c", "#795548", "clipboard"),
    "sales manager": ("blond-hair", "#c9a227", "#c9a227", "#5d4a1f", "chart-increasing"),
    "designer": ("blond-hair", "#ec5fa3", "#ec5fa3", "#37474f", "swatches"),
    "photographer": ("curly-hair", "#7a8450", "#7a8450", "#4e5b31", "camera-with-flash"),
    "musician": ("singer", None, "#26a6a6", "#303f9f", "musical-note"),
    "artist": ("artist", None, "#f5f5f5", "#607d8b", "framed-picture"),
    "police officer": ("police-officer", None, "#1e50a0", "#173d7a", "police-car-light"),
    "firefighter": ("firefighter", None, "#e53935", "#b71c1c", "fire-extinguisher"),
    "security guard": ("guard", None, "#d32f2f", "#212121", "flashlight"),
    "paramedic": ("red-hair", "#2e7d32", "#2e7d32", "#1b5e20", "ambulance"),
    "hairdresser": ("curly-hair", "#b05fd0", "#b05fd0", "#212121", "scissors"),
    "fitness trainer": ("red-hair", "#f4511e", "#f4511e", "#212121", "stopwatch"),
    "childcare worker": ("blond-hair", "#aed581", "#aed581", "#5c6bc0", "teddy-bear"),
    "postal worker": ("white-hair", "#3f6fc4", "#3f6fc4", "#2a4a8a", "postbox"),
}

NAMESAKES = (
    "cat rabbit hedgehog dog pig goat horse cow elephant giraffe parrot owl eagle penguin "
    "turtle lizard snake crocodile chair bed spoon laptop keyboard television camera "
    "skateboard bicycle motorcycle bus airplane guitar violin drum saxophone trumpet flute "
    "umbrella backpack handbag"
).split()
GLYPHS = {name: name for name in NAMESAKES} | {
    "sheep": "ewe",
    "chicken": "rooster",
    "cabinet": "file-cabinet",
    "knife": "kitchen-knife",
    "mouse": "computer-mouse",
    "cell phone": "mobile-phone",
    "ball": "soccer-ball",
    "ski": "skis",
    "frisbee": "flying-disc",
    "car": "automobile",
    "truck": "delivery-truck",
    "boat": "sailboat",
    "book": "closed-book",
    "suitcase": "luggage",
    "clock": "mantelpiece-clock",
    "vase": "amphora",
}

# Animals of which the set has only the face: a body of ours below it (fur, belly, paws).
FACES = {
    "hamster": ("hamster", "#f2a655", "#fff3e0", "#f7c9a8"),
    "fox": ("fox", "#ff6d1f", "#ffffff", "#5d4037"),
    "bear": ("bear", "#795548", "#a1887f", "#5d4037"),
    "frog": ("frog", "#a6c93b", "#e6ee9c", "#7f9e24"),
}

WOOD, DARK_WOOD, STEEL, DARK_STEEL = "#c98d54", "#8d5a2b", "#d7dde2", "#9aa7b0"

DRAWN = {
    "guinea pig": """
      <ellipse cx="72" cy="78" rx="52" ry="34" fill="#fbf3e6"/>
      <path d="M52 46 q34 -10 56 14 q22 26 12 44 q-20 10 -34 6 q-30 -26 -34 -64z" fill="#6d4c41"/>
      <circle cx="32" cy="66" r="26" fill="#d9843b"/>
      <ellipse cx="24" cy="74" rx="16" ry="14" fill="#fff8ef"/>
      <ellipse cx="42" cy="44" rx="10" ry="8" fill="#a1602a"/>
      <ellipse cx="10" cy="70" rx="4" ry="3" fill="#e57373"/>
      <circle cx="27" cy="59" r="4.5" fill="#212121"/><circle cx="28.5" cy="57.5" r="1.4" fill="#fff"/>
      <path d="M12 78 q6 6 12 2" stroke="#795548" stroke-width="2" fill="none"/>
      <ellipse cx="44" cy="110" rx="12" ry="6" fill="#e8b89a"/>
      <ellipse cx="98" cy="110" rx="13" ry="6" fill="#e8b89a"/>""",
    "couch": """
      <rect x="14" y="34" width="100" height="46" rx="14" fill="#2f80c2"/>
      <path d="M64 36v44" stroke="#25679e" stroke-width="3"/>
      <rect x="4" y="54" width="24" height="46" rx="10" fill="#3b95dd"/>
      <rect x="100" y="54" width="24" height="46" rx="10" fill="#3b95dd"/>
      <rect x="24" y="74" width="39" height="20" rx="6" fill="#4aa6ee"/>
      <rect x="65" y="74" width="39" height="20" rx="6" fill="#4aa6ee"/>
      <rect x="24" y="92" width="80" height="10" fill="#25679e"/>
      <rect x="14" y="100" width="8" height="10" fill="#5d4037"/>
      <rect x="106" y="100" width="8" height="10" fill="#5d4037"/>""",
    "table": f"""
      <ellipse cx="64" cy="48" rx="58" ry="15" fill="{WOOD}"/>
      <path d="M6 48v7q0 15 58 15t58 -15v-7q-4 15 -58 15t-58 -15z" fill="{DARK_WOOD}"/>
      <path d="M24 64l-6 50h8l8 -47zM104 64l6 50h-8l-8 -47z" fill="{DARK_WOOD}"/>
      <path d="M50 69l-3 36h7l3 -36zM78 69l3 36h-7l-3 -36z" fill="#74481f"/>
      <ellipse cx="60" cy="45" rx="40" ry="8" fill="#dba871" opacity=".6"/>""",
    "desk": f"""
      <rect x="4" y="42" width="120" height="10" rx="2" fill="{WOOD}"/>
      <rect x="8" y="52" width="40" height="56" fill="#a96c37"/>
      <rect x="12" y="56" width="32" height="14" fill="{WOOD}"/>
      <rect x="12" y="73" width="32" height="14" fill="{WOOD}"/>
      <rect x="12" y="90" width="32" height="14" fill="{WOOD}"/>
      <g fill="#5d3a18"><rect x="24" y="61" width="8" height="3"/><rect x="24" y="78" width="8"
      height="3"/><rect x="24" y="95" width="8" height="3"/></g>
      <rect x="110" y="52" width="8" height="58" fill="#a96c37"/>
      <rect x="48" y="52" width="62" height="9" fill="{DARK_WOOD}"/>
      <rect x="8" y="108" width="8" height="4" fill="#5d3a18"/>
      <rect x="40" y="108" width="8" height="4" fill="#5d3a18"/>
      <path d="M74 42l-4 -14h26l4 14z" fill="#fff" stroke="#b0bec5" stroke-width="2"/>
      <path d="M78 33h14M80 37h14" stroke="#90a4ae" stroke-width="2"/>""",
    "bench": """
      <g fill="#6aa84f"><rect x="6" y="36" width="116" height="10" rx="3"/>
      <rect x="6" y="50" width="116" height="10" rx="3"/>
      <rect x="4" y="74" width="120" height="9" rx="3"/></g>
      <rect x="4" y="83" width="120" height="5" fill="#4b7d36"/>
      <g fill="#37474f"><path d="M18 34h7v80h-9zM103 34h7l2 80h-9z"/>
      <rect x="8" y="66" width="20" height="6" rx="3"/>
      <rect x="100" y="66" width="20" height="6" rx="3"/></g>""",
    "cup": """
      <path d="M98 44h10q16 2 16 20t-18 22h-10v-10h8q10 -2 10 -12t-8 -10h-8z" fill="#d84343"/>
      <path d="M18 28h84v58q-2 24 -26 24h-32q-24 0 -26 -24z" fill="#ef5350"/>
      <ellipse cx="60" cy="28" rx="42" ry="9" fill="#ffcdd2"/>
      <ellipse cx="60" cy="29" rx="36" ry="6.5" fill="#b23b3b"/>
      <path d="M28 44v40q1 10 8 15" stroke="#ff8a80" stroke-width="6" fill="none"
      stroke-linecap="round"/>""",
    "bottle": """
      <path d="M54 6h20v26q0 8 8 16q10 10 10 22v44q0 10 -10 10h-36q-10 0 -10 -10v-44q0 -12 10 -22q8
      -8 8 -16z" fill="#2e8b57"/>
      <rect x="52" y="4" width="24" height="10" rx="3" fill="#c62828"/>
      <rect x="36" y="74" width="56" height="32" fill="#fff8e1"/>
      <path d="M42 84h44M42 92h30" stroke="#c62828" stroke-width="4"/>
      <path d="M46 60q-4 6 -4 12v38" stroke="#7fd1a2" stroke-width="5" fill="none"
      stroke-linecap="round"/>""",
    "bowl": """
      <path d="M6 52h116q-2 44 -40 56h-36q-38 -12 -40 -56z" fill="#3f7fd0"/>
      <ellipse cx="64" cy="52" rx="58" ry="13" fill="#dbe9ff"/>
      <ellipse cx="64" cy="54" rx="49" ry="9.5" fill="#5d97e0"/>
      <path d="M18 66q6 26 28 36" stroke="#8ab6f0" stroke-width="6" fill="none"
      stroke-linecap="round"/>
      <rect x="42" y="108" width="44" height="7" rx="3" fill="#2f62a5"/>""",
    "plate": """
      <circle cx="64" cy="64" r="58" fill="#e9eef2"/>
      <circle cx="64" cy="64" r="58" fill="none" stroke="#c3ced6" stroke-width="3"/>
      <circle cx="64" cy="64" r="51" fill="none" stroke="#3f6fb5" stroke-width="3"/>
      <circle cx="64" cy="64" r="36" fill="#fafcfd" stroke="#ccd6dd" stroke-width="3"/>
      <path d="M38 46q10 -14 26 -15" stroke="#fff" stroke-width="4" fill="none"/>""",
    "fork": f"""
      <g transform="rotate(35 64 64)">
      <path d="M44 4h6v28h5v-28h6v28h5v-28h6v28h5v-28h6v36q0 14 -13 18v62q0 6 -6 6t-6 -6v-62q-14
      -4 -14 -18z" fill="{STEEL}" stroke="{DARK_STEEL}" stroke-width="2"/></g>""",
    "remote": """
      <g transform="rotate(18 64 64)"><rect x="42" y="4" width="44" height="120" rx="12"
      fill="#37414d"/><circle cx="64" cy="20" r="7" fill="#e53935"/>
      <circle cx="64" cy="46" r="15" fill="#566270"/><circle cx="64" cy="46" r="6" fill="#37414d"/>
      <g fill="#aab4be"><rect x="49" y="68" width="8" height="6" rx="2"/><rect x="60" y="68" width="8"
      height="6" rx="2"/><rect x="71" y="68" width="8" height="6" rx="2"/><rect x="49" y="80" width="8"
      height="6" rx="2"/><rect x="60" y="80" width="8" height="6" rx="2"/><rect x="71" y="80" width="8"
      height="6" rx="2"/></g><g fill="#6fa8dc"><rect x="49" y="94" width="14" height="7" rx="3"/><rect
      x="66" y="94" width="13" height="7" rx="3"/></g></g>""",
    "tennis racket": """
      <g transform="rotate(40 64 64)"><ellipse cx="64" cy="38" rx="30" ry="36" fill="#f4f7e4"/>
      <path d="M44 12v52M54 4v68M64 2v72M74 4v68M84 12v52M36 24h56M34 36h60M36 48h56M42 60h44"
      stroke="#b7bf8a" stroke-width="2"/>
      <ellipse cx="64" cy="38" rx="30" ry="36" fill="none" stroke="#d32f2f" stroke-width="7"/>
      <path d="M52 70l12 20l12 -20" fill="none" stroke="#d32f2f" stroke-width="6"/>
      <rect x="58" y="86" width="12" height="40" rx="5" fill="#2b2b2b"/>
      <path d="M58 96l12 6M58 106l12 6M58 116l12 6" stroke="#666" stroke-width="2"/></g>""",
    "surfboard": """
      <g transform="rotate(12 64 64)"><path d="M64 0q26 30 26 70q0 34 -14 58h-24q-14 -24 -14 -58q0 -40
      26 -70z" fill="#29b6d8"/><path d="M64 0q26 30 26 70q0 6 -1 12l-50 -26q5 -34 25 -56z"
      fill="#ffb300"/><path d="M39 56l50 26" stroke="#fff" stroke-width="6"/>
      <path d="M64 6v120" stroke="#ffffff" stroke-width="3" opacity=".8"/></g>""",
    "baseball bat": f"""
      <g transform="rotate(42 64 64)"><path d="M64 -8q13 0 13 18q0 30 -8 66l-2 42h-6l-2 -42q-8 -36 -8
      -66q0 -18 13 -18z" fill="{WOOD}"/><path d="M57 84h14l-3 34h-8z" fill="#7b3f1d"/>
      <rect x="56" y="116" width="16" height="8" rx="4" fill="{DARK_WOOD}"/>
      <path d="M58 6q-1 24 5 60" stroke="#e6bd8c" stroke-width="4" fill="none"/></g>""",
    "piano": """
      <path d="M10 10h108v98h-108z" fill="#4a2c1a"/><rect x="4" y="6" width="120" height="9" rx="2"
      fill="#5d3a24"/><rect x="20" y="22" width="88" height="26" fill="#5d3a24"/>
      <path d="M46 46l6 -20h24l6 20z" fill="#fffdf5" stroke="#c9bda8"/>
      <rect x="2" y="56" width="124" height="8" fill="#3a2114"/>
      <rect x="6" y="64" width="116" height="16" fill="#fff" stroke="#333"/>
      <path d="M18 64v16M30 64v16M42 64v16M54 64v16M66 64v16M78 64v16M90 64v16M102 64v16M112 64v16"
      stroke="#999" stroke-width="1.5"/>
      <g fill="#111"><rect x="15" y="64" width="6" height="9"/><rect x="27" y="64" width="6" height="9"/>
      <rect x="51" y="64" width="6" height="9"/><rect x="63" y="64" width="6" height="9"/><rect x="75"
      y="64" width="6" height="9"/><rect x="99" y="64" width="6" height="9"/></g>
      <rect x="2" y="80" width="124" height="6" fill="#3a2114"/>
      <path d="M8 86h8v32h-8zM112 86h8v32h-8z" fill="#3a2114"/>
      <path d="M58 112h4M66 112h4" stroke="#d4af37" stroke-width="6"/>""",
}

PROPS_DRAWN = {
    # The set's pencil is the teacher's; a fan of color swatches is the designer's.
    "swatches": """
      <g stroke="#fff" stroke-width="2"><rect x="52" y="30" width="26" height="90" rx="5" fill="#e53935"
      transform="rotate(-40 65 112)"/><rect x="52" y="30" width="26" height="90" rx="5" fill="#fdd835"
      transform="rotate(-18 65 112)"/><rect x="52" y="30" width="26" height="90" rx="5" fill="#43a047"
      transform="rotate(4 65 112)"/><rect x="52" y="30" width="26" height="90" rx="5" fill="#1e88e5"
      transform="rotate(26 65 112)"/></g><circle cx="65" cy="110" r="5" fill="#fff"/>""",
}


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
    for occupation, (glyph, shirt, body, trousers, prop) in OCCUPATIONS.items():
        for gender, prefix in (("male", "man-"), ("female", "woman-")):
            inner = glyphs.inner(prefix + glyph)
            if occupation == "civil engineer":  # the white helmet of those who plan
                inner = inner.replace("#ffea00", "#fafafa").replace("#edbf00", "#cfd8dc")
            bust = draw(inner, SIZE)
            if shirt is not None:
                bust = recolored_shirt(bust, shirt)
            entry = {
                "art": f"noto {prefix}{glyph}",
                "body": body,
                "trousers": trousers,
                "prop": f"prop {occupation}",
            }
            made[f"{gender} {occupation}"] = bust, entry
        drawn = prop in PROPS_DRAWN
        inner = PROPS_DRAWN[prop] if drawn else glyphs.inner(prop)
        made[f"prop {occupation}"] = (
            draw(inner, PROP_SIZE),
            {"art": "ours" if drawn else f"noto {prop}"},
        )
    for name, glyph in GLYPHS.items():
        made[name] = draw(glyphs.inner(glyph), SIZE), {"art": f"noto {glyph}"}
    for name, (glyph, *colors) in FACES.items():
        image = draw(face_with_body(glyphs, glyph, *colors), SIZE)
        made[name] = image, {"art": f"noto {glyph} (face), ours (body)"}
    for name, inner in DRAWN.items():
        made[name] = draw(inner, SIZE), {"art": "ours"}
    return {name: made[name] for name in sorted(made)}


def main(icons: Path) -> None:
    cropped = {}
    for name, (image, entry) in sprites(Glyphs(icons)).items():
        cropped[name] = image.crop(image.getbbox()), entry
    sheet, index = pack(cropped)
    sheet.save(HERE / "atlas.webp", lossless=True, quality=100, method=6, exact=False)
    text = json.dumps(index, indent=1, sort_keys=True)
    (HERE / "index.json").write_text(text + "\n", encoding="utf-8")
    print(f"{len(index)} sprites, {sheet.size}, {(HERE / 'atlas.webp').stat().st_size:,} bytes")


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
