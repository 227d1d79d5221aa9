"""Contact sheets of gold images, for whoever writes or reviews depictions.

Usage: python tools/contact_sheet.py OUT.png DOMAIN_OR_PAIR ... [--pairs N] [--from K]

One row a pair: right and swapped in two styles, then missing, doubled, above. Caption: the pair.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from counterprior.builders.bank import DEFAULT_BANK
from counterprior.builders.depictions import depiction_faults, read_depictions
from counterprior.builders.suite import Banks
from counterprior.builders.suites.t2i_correctness_gold import images_of
from counterprior.scenes.vector import draw_vector

SIDE, CAPTION = 192, 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--bank", type=Path, default=DEFAULT_BANK)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=8)
    asked = parser.parse_args()
    banks = Banks(asked.bank)
    for domain, listed in read_depictions(asked.bank).items():
        for depiction in listed:
            for fault in depiction_faults(depiction, banks.facts):
                print(f"{domain}, {depiction.id}: {fault}")
    drawables = banks.drawables
    chosen = [
        one
        for name, one in sorted(drawables.items())
        if name in asked.names or one.entry.split("/")[1].removesuffix(".yaml") in asked.names
    ]
    print(len(chosen), "pairs")
    chosen = chosen[asked.start : asked.start + asked.pairs]
    width = 7 * (SIDE + 4)
    sheet = Image.new("RGB", (width, len(chosen) * (SIDE + CAPTION)), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(14)
    for row, one in enumerate(chosen):
        top = row * (SIDE + CAPTION)
        pair = one.pair
        text = f"{pair.id}: {pair.left} | {pair.right} {pair.context}"
        draw.text((4, top + 6), text[:190], "black", font)
        for column, (layout, style, seed) in enumerate(images_of(one)):
            drawn = draw_vector(one.image(layout, style, seed)).resize((SIDE, SIDE))
            sheet.paste(drawn, (column * (SIDE + 4), top + CAPTION))
    sheet.save(asked.out)


if __name__ == "__main__":
    main()
