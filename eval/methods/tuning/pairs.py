"""Captioned images and their mirror images, as `counterprior corpus flips` writes them."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from ....errors import DataError, UsageError
from ....images import ImageError, open_image
from ....parsing import MALFORMED, read_rows, write_rows
from ....storage import whole_folder, write_whole

TABLE = "train/metadata.jsonl"
MULTIPLE = 32
"""Pixels: every pipeline takes sides that are multiples of this; those with small latents, also of
8."""
ASPECTS = (1.0, 4 / 3, 3 / 4, 3 / 2, 2 / 3, 16 / 9, 9 / 16)
"""Width over height that images are cropped to, the nearest one."""


@dataclass(frozen=True)
class CaptionedImage:
    """One image of a flip set."""

    path: Path
    text: str
    """Caption; the mirror image has the same."""
    pair: str
    """Id that an image shares with its mirror image."""
    mirrored: bool
    first: str
    """The thing that the caption names first."""
    second: str


@dataclass(frozen=True)
class FlipPairs:
    """A flip set, split for training."""

    train: tuple[CaptionedImage, ...]
    held_out: tuple[CaptionedImage, ...]
    """Originals of pairs that are not trained on."""
    digest: str
    """SHA-256 of the table."""


def read_flips(folder: Path, mirrored: bool, held_out: int, seed: int) -> FlipPairs:
    """A flip set; whole pairs are held out, drawn by the seed.

    Raises UsageError for a folder that is none and where nothing is left to train on, DataError
    for a damaged table.
    """
    table = folder / TABLE
    if not table.is_file():
        raise UsageError(
            f"{folder} is not a flip set: make one with `counterprior corpus flips`",
            code="no-such-file",
        )
    images = []
    for number, row in read_rows(table):
        try:
            images.append(
                CaptionedImage(
                    path=_inside(table.parent, row["file_name"]),
                    text=row["text"],
                    pair=str(row["pair"]),
                    mirrored=row["mirrored"],
                    first=row["first"],
                    second=row["second"],
                )
            )
        except MALFORMED as error:
            raise DataError(
                f"{table}:{number}: no image with its caption ({error!r})", code="bad-format"
            ) from None
    pairs = sorted({image.pair for image in images})
    if held_out >= len(pairs):
        raise UsageError(
            f"{folder} has {len(pairs):,} pairs: hold out fewer than that, not {held_out:,}",
            code="too-few-items",
        )
    kept_back = set(random.Random(f"held out/{seed}").sample(pairs, held_out))
    return FlipPairs(
        train=tuple(i for i in images if i.pair not in kept_back and (mirrored or not i.mirrored)),
        held_out=tuple(i for i in images if i.pair in kept_back and not i.mirrored),
        digest=hashlib.sha256(table.read_bytes()).hexdigest(),
    )


def _inside(folder: Path, name: str) -> Path:
    """A file of a set. Raises ValueError for one that lies elsewhere."""
    if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
        raise ValueError(f"{name!r} lies outside the set")
    return folder / name


def fitted(image: CaptionedImage, size: int, multiple: int = MULTIPLE) -> Image.Image:
    """The image cropped as little as needed to the nearest of `ASPECTS`, about size x size pixels.

    multiple: of which both sides are, pixels. Raises DataError for a file that can't be read.
    """
    try:
        opened = open_image(image.path)
    except ImageError as error:
        raise DataError(f"{image.path} {error}", code="unreadable-image") from None
    aspect = min(ASPECTS, key=lambda a: abs(opened.width / opened.height / a - 1))
    width, height = (
        max(multiple, round(size * f / multiple) * multiple) for f in (aspect**0.5, aspect**-0.5)
    )
    return ImageOps.fit(opened, (width, height), Image.Resampling.LANCZOS)


def export_imagefolder(images: Sequence[CaptionedImage], out: Path) -> int:
    """Writes images for other trainers: a table for diffusers' scripts and `datasets`, and beside
    each image its caption as text for ai-toolkit and SimpleTuner. Returns how many there are.

    Raises UsageError for a folder that is not empty.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty; give another --out", code="folder-not-empty")
    with whole_folder(out) as staging:
        (staging / "train").mkdir()
        rows: list[dict[str, Any]] = []
        for image in images:
            target = staging / "train" / image.path.name
            shutil.copyfile(image.path, target)
            write_whole(target.with_suffix(".txt"), image.text + "\n")
            rows.append({"file_name": image.path.name, "text": image.text})
        write_rows(staging / "train" / "metadata.jsonl", rows)
    return len(rows)
