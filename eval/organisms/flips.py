"""The flip set of an organism: drawings and captions of its own training, and mirrored drawings.

Under every caption either animal stands left equally often, so that mention order carries no
layout: a LoRA on this set should remove the bias that the organism learned.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...parsing import read_json, write_rows
from ...progress import Progress, silent
from ...storage import whole_folder
from ..checkpoints.shipped import ABOUT
from .data import CaptionShares, Examples, wording
from .networks import SIZES

MOST_EXAMPLES = 20
"""Examples to look at for each that is wanted, before there are too few with two named animals."""


def is_organism(folder: Path) -> bool:
    """Whether a folder holds a trained organism."""
    return (folder / ABOUT).is_file()


def write_flips(organism: Path, out: Path, most: int, progress: Progress = silent) -> int:
    """Writes up to `most` examples of an organism's training and their mirror images to a new
    folder, as `counterprior tune` reads it; returns the number of examples.

    Only examples whose caption names both animals, and no side, in the order of the training; a
    drawing comes once with each caption. Raises UsageError for a folder that is not empty, for an
    organism without such examples, and for one that was trained on images of a file.
    """
    from PIL import Image, ImageOps

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty; give another --out", code="folder-not-empty")
    about: Any = read_json(organism / ABOUT)
    if about.get("images"):
        raise UsageError(
            f"{organism} was trained on images of a file, which it doesn't hold",
            "take an organism of drawn scenes",
            code="unsupported",
        )
    size = SIZES[about["size"]]
    captioning = CaptionShares.model_validate(about["captioning"])
    language = wording(captioning.language)
    examples = Examples(
        tuple(about["entities"]),
        tuple((a, b) for a, b in about["held_out"]),
        captioning,
        size.variants,
        about["seed"],
        size.backgrounds,
    )
    rows: list[dict[str, Any]] = []
    seen: set[tuple[Any, ...]] = set()
    with whole_folder(out) as folder:
        (folder / "train").mkdir()
        for number in count():
            if len(seen) == most or number == MOST_EXAMPLES * most:
                break
            example = examples[number]
            key = example.figures, example.variant, example.caption
            if len(example.figures) != 2 or key in seen:
                continue
            neutral = language.captions(*example.figures)
            if example.caption not in neutral:
                continue
            seen.add(key)
            left, right = example.figures
            first, second = (left, right) if example.caption == neutral[0] else (right, left)
            image = Image.fromarray(examples.image(example.figures, example.variant))
            for mirrored in (False, True):
                name = f"{number}{'-mirrored' if mirrored else ''}.png"
                (ImageOps.mirror(image) if mirrored else image).save(folder / "train" / name)
                rows.append(
                    {
                        "file_name": name,
                        "text": example.caption,
                        "pair": str(number),
                        "mirrored": mirrored,
                        "first": first,
                        "second": second,
                    }
                )
            progress("drawings", len(seen), most)
        if not rows:
            raise UsageError(
                f"{organism}: no caption of its training names two animals and no side",
                "train one with smaller shares of other captions",
                code="too-few-items",
            )
        write_rows(folder / "train" / "metadata.jsonl", rows)
    return len(seen)
