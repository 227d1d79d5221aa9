"""Boxes that people or a detector drew, in COCO's instances format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import DataError, UsageError
from ...parsing import MALFORMED
from .boxes import Box


@dataclass(frozen=True)
class BoxedImage:
    """The boxes of one image."""

    id: str
    """Id in the file."""
    names: tuple[str, ...]
    """File name and addresses of the image; never empty."""
    boxes: dict[str, list[Box]] = field(default_factory=dict)
    """Class -> boxes as shares of the image's width and height; no crowds."""
    crowds: set[str] = field(default_factory=set)
    """Classes with a box around many things."""


@dataclass(frozen=True)
class Instances:
    """A file of boxes."""

    images: tuple[BoxedImage, ...]
    """In the order of the file."""
    digest: str
    """12 hexadecimal digits of the file's SHA-256."""

    @classmethod
    def read(cls, path: Path) -> Instances:
        """Raises UsageError for a missing file, DataError for one not in COCO's format."""
        if not path.is_file():
            raise UsageError(f"{path}: no such file of boxes", code="no-such-file")
        data = path.read_bytes()
        try:
            images = tuple(_images(json.loads(data)))
        except MALFORMED as error:
            reason = f"{type(error).__name__}: {error}"
            raise DataError(f"{path}: not COCO's format ({reason})", code="bad-format") from None
        return cls(images, hashlib.sha256(data).hexdigest()[:12])


def _images(data: Any) -> Iterator[BoxedImage]:
    classes = {entry["id"]: str(entry["name"]) for entry in data["categories"]}
    images, sizes = {}, {}
    for entry in data["images"]:
        candidates = (entry.get(key) for key in ("file_name", "coco_url", "url"))
        names = tuple(str(name) for name in candidates if name)
        if not names:
            raise ValueError(f"image {entry['id']} has no file_name, coco_url or url")
        images[entry["id"]] = BoxedImage(str(entry["id"]), names)
        sizes[entry["id"]] = float(entry["width"]), float(entry["height"])
    for entry in data["annotations"]:
        image, name = images[entry["image_id"]], classes[entry["category_id"]]
        if entry.get("iscrowd"):
            image.crowds.add(name)
            continue
        (x, y, width, height), (w, h) = map(float, entry["bbox"]), sizes[entry["image_id"]]
        box = Box(x / w, y / h, (x + width) / w, (y + height) / h)
        image.boxes.setdefault(name, []).append(box)
    yield from images.values()
