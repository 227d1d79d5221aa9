"""Boxes drawn on images: what the checker saw where it decided or abstained."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageDraw

from ....images import ImageError, open_image
from ....progress import Progress, silent
from ....storage import write_whole
from ...geometry.checker.decide import REASONS, CheckedImage

COLORS = ("#1668c7", "#c2410c")
"""Colors of the boxes of objects a and b."""
OUTCOMES = ("PASS", "FAIL", *REASONS)


def draw_overlays(
    checked: Sequence[CheckedImage],
    images: Mapping[str, Path],
    most: int,
    folder: Path,
    progress: Progress = silent,
) -> int:
    """Draws the boxes on at most `most` of the images that can be read; returns their number.

    images: sample id -> file. A file of the folder is named by its number, verdict and sample. The
    same inputs give the same bytes.
    """
    chosen = chosen_images([c for c in checked if c.sample.sample_id in images], most)
    count = 0
    for number, image in enumerate(chosen):
        progress("overlays", number, len(chosen))
        try:
            drawn = overlay(open_image(images[image.sample.sample_id]), image)
        except ImageError:  # the verdict counts without an image to show
            continue
        data = BytesIO()
        drawn.save(data, "JPEG", quality=88)
        sample = re.sub(r"[^A-Za-z0-9._-]+", "-", image.sample.sample_id)
        write_whole(folder / f"{number:03}-{_outcome(image)}-{sample}.jpg", data.getvalue())
        count += 1
    return count


def chosen_images(checked: Sequence[CheckedImage], most: int) -> list[CheckedImage]:
    """At most `most` images, one of every verdict and reason in turn; always the same."""
    strata: dict[str, list[CheckedImage]] = {}
    for image in sorted(checked, key=lambda image: image.sample.sample_id):
        strata.setdefault(_outcome(image), []).append(image)
    rng = random.Random(0)
    for members in strata.values():
        rng.shuffle(members)
    turns = sorted(
        (turn, OUTCOMES.index(outcome), image.sample.sample_id, image)
        for outcome, members in strata.items()
        for turn, image in enumerate(members)
    )
    return [image for *_, image in turns[:most]]


def _outcome(image: CheckedImage) -> str:
    """One of `OUTCOMES`: the verdict, or the reason of an abstention."""
    return (image.reason or image.verdict).split(":")[0].split(" (")[0]


def overlay(image: Image.Image, checked: CheckedImage) -> Image.Image:
    """The image with the recorded boxes: those that decide thick, all others of the two thin."""
    drawn = image.convert("RGB").copy()
    pen = ImageDraw.Draw(drawn)
    objects = (checked.sample.object_a, checked.sample.object_b)
    for detection in checked.sample.detectors.primary.detections:
        for label, color, best in zip(objects, COLORS, (checked.a, checked.b), strict=True):
            if detection.names(label):
                box = tuple(detection.box_xyxy)
                pen.rectangle(box, outline=color, width=4 if detection == best else 1)
                text = f"{label} {detection.score:.2f}"
                place = (detection.box_xyxy.x1 + 4, max(0.0, detection.box_xyxy.y1 + 2))
                pen.rectangle(pen.textbbox(place, text), fill="white")
                pen.text(place, text, fill=color)
    return drawn
