"""Contact sheets of gold images, for whoever writes or reviews depictions and drawings of worlds.

Usage: python tools/contact_sheet.py OUT.png NAME ... [--start K] [--rows N] [--bank DIR]

NAME is a file of `depictions/` or `world_drawings/`, a pair or a group. One row a pair: right and
swapped in two styles, then missing, doubled, above. One row a group: real and altered in two
styles; its scene and questions are printed. Prints every fault.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from counterprior.builders.bank import DEFAULT_BANK, BankError, BankFaults
from counterprior.builders.suite import Banks
from counterprior.builders.suites.t2i_correctness_gold import images_of
from counterprior.builders.world_drawings import WORLD_DRAWINGS, alike_faults, drawing_faults
from counterprior.builders.worlds import KEYED
from counterprior.scenes.vector import VectorImage, draw_vector

SIDE, CAPTION = 192, 30


@dataclass(frozen=True)
class SheetRow:
    """Images side by side."""

    names: tuple[str, ...]
    """What it can be chosen by."""
    caption: str
    images: Sequence[VectorImage]
    about: str = ""
    """What is printed of it."""


def pair_rows(banks: Banks) -> Iterator[SheetRow]:
    """A row for each pair."""
    for name, one in sorted(banks.drawables.items()):
        pair = one.pair
        caption = f"{pair.id}: {pair.left} | {pair.right} {pair.context}"
        yield SheetRow(
            (name, Path(one.entry).stem),
            caption,
            [one.image(layout, style, seed) for layout, style, seed in images_of(one)],
        )


def world_rows(banks: Banks) -> Iterator[SheetRow]:
    """A row for each group that can be drawn, also where its file has faults."""
    scenes = {s.id: (law, s) for some in banks.laws.values() for law in some for s in law.scenes}
    for file, drawings in WORLD_DRAWINGS.read(banks.root).items():
        for drawing in drawings:
            if any(drawing_faults(drawing)) or drawing.group not in scenes:
                continue
            law, scene = scenes[drawing.group]
            entry = banks.worlds.get(drawing.group)
            asked = [f"{name}: {getattr(scene, f'q_{name}').text}" for name in KEYED]
            lines = (f"if {law.altered}: {scene.scene}", *asked)
            yield SheetRow(
                (drawing.group, file),
                f"{drawing.group}: {scene.scene}",
                [drawing.image(*version) for version in drawing.versions()],
                "\n  ".join([*lines, f"presence: {entry.presence if entry else 'no entry'}"]),
            )


def drawing_bank_faults(banks: Banks) -> list[str]:
    """Every fault of depictions and drawings, by file and entry."""
    faults = BankFaults()
    for part in ("drawables", "world_drawings"):
        with faults.caught():
            getattr(banks, part)
    return faults.lines


def look_alikes(banks: Banks, names: Collection[str]) -> Iterator[str]:
    """Styles in which the worlds look alike, of drawings without faults that are named."""
    for file, drawings in WORLD_DRAWINGS.read(banks.root).items():
        for drawing in drawings:
            if {file, drawing.group} & {*names} and not any(drawing_faults(drawing)):
                for fault in alike_faults(drawing):
                    yield f"{WORLD_DRAWINGS.name}/{file}.yaml, {drawing.group}: {fault}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--bank", type=Path, default=DEFAULT_BANK)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--rows", type=int, default=8)
    asked = parser.parse_args()
    banks = Banks(asked.bank)
    faults = drawing_bank_faults(banks)
    for fault in faults:
        print(fault)
    try:
        worlds = {name for row in world_rows(banks) for name in row.names}
        kind = world_rows if worlds & set(asked.names) else pair_rows
        chosen = [row for row in kind(banks) if {*row.names} & {*asked.names}]
        for fault in look_alikes(banks, asked.names):
            print(fault)
    except BankError:
        if not faults:
            raise
        sys.exit("no sheet: mend these faults first")
    print(len(chosen), "rows")
    for name in asked.names:
        known = (*faults, *(other for row in chosen for other in row.names))
        if not any(name in text for text in known):
            print(f"{name}: no drawing has a file, pair or group of this name")
    chosen = chosen[asked.start : asked.start + asked.rows]
    width = max((len(row.images) for row in chosen), default=1) * (SIDE + 4)
    sheet = Image.new("RGB", (width, max(1, len(chosen)) * (SIDE + CAPTION)), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(14)
    for number, row in enumerate(chosen):
        top = number * (SIDE + CAPTION)
        draw.text((4, top + 6), row.caption[:190], "black", font)
        for column, image in enumerate(row.images):
            drawn = draw_vector(image).resize((SIDE, SIDE))
            sheet.paste(drawn, (column * (SIDE + 4), top + CAPTION))
        if row.about:
            print(f"{row.names[0]}: {row.about}")
    sheet.save(asked.out)


if __name__ == "__main__":
    try:
        main()
    except BankError as error:
        sys.exit(str(error))
