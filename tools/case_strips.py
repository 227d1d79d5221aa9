"""One case over the denoising steps, from the previews of a study: a row of images a generator.

    python tools/case_strips.py STUDY SUITE CASE OUT.png GENERATOR...

Columns are the steps of `preview:` methods in rising order, and then the image without a method.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from PIL import Image, ImageDraw

from counterprior.eval.engine.run import Run
from counterprior.eval.methods.denoising import preview_step
from counterprior.storage import whole_file

ZOOM, GAP, TITLE = 3, 6, 14


def strip(study: Path, suite: str, case: str, generator: str) -> list[tuple[str, Image.Image]]:
    """Label and image of each step of a case."""
    images: dict[int, Image.Image] = {}
    for root in sorted((study / "runs" / suite).glob(f"{generator}*")):
        name, _, method = root.name.partition("+")
        run = Run.open(root)
        step = preview_step(run.header.generator) if method else 10**6
        made = run.images().get(case)
        if name == generator and step >= 0 and made is not None and made.status == "made":
            images[step] = Image.open(run.image_path(made)).convert("RGB")
    return [(f"step {n}" if n < 10**6 else "image", images[n]) for n in sorted(images)]


def sheet(rows: dict[str, list[tuple[str, Image.Image]]]) -> Image.Image:
    """All rows under each other, every image under its label."""
    width, height = (ZOOM * side for side in next(iter(rows.values()))[0][1].size)
    across = max(map(len, rows.values()))
    size = across * (width + GAP) + GAP, len(rows) * (height + TITLE + GAP) + GAP
    drawn = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(drawn)
    for number, (name, images) in enumerate(rows.items()):
        top = GAP + number * (height + TITLE + GAP)
        for place, (label, image) in enumerate(images):
            left = GAP + place * (width + GAP)
            pen.text((left, top), f"{name}, {label}", fill="black")
            larger = image.resize((width, height), Image.Resampling.NEAREST)
            drawn.paste(larger, (left, top + TITLE))
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path)
    parser.add_argument("suite")
    parser.add_argument("case")
    parser.add_argument("out", type=Path)
    parser.add_argument("generators", nargs="+")
    chosen = parser.parse_args()
    rows = {n: strip(chosen.study, chosen.suite, chosen.case, n) for n in chosen.generators}
    with whole_file(chosen.out) as file:
        sheet(rows).save(file, "PNG")


if __name__ == "__main__":
    main()
