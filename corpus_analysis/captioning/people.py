"""People's captions of photographs: COCO's annotations, or rows of image and caption."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import DataError, UsageError
from ...parsing import read_rows

KEYS = ("image", "file_name", "image_id")
"""Columns that may name the image of a row, in order of preference."""


@dataclass(frozen=True)
class HumanCaption:
    """Caption by one person."""

    image: str
    """Id of the image."""
    text: str
    """The caption."""


@dataclass(frozen=True)
class HumanCaptions:
    """Captions in a file that belong to some images."""

    captions: tuple[HumanCaption, ...]
    """In the order of the file."""
    of_other_images: int
    """Captions of other images."""


def read_people(path: Path, ids: Mapping[str, str]) -> HumanCaptions:
    """Reads the captions of images whose number, file name or address `ids` maps to an id.

    ``*.json`` in COCO's format (`annotations` with `image_id` and `caption`; an image is identified
    by its name, else by its number, which must be that of the boxes), or rows with `image`
    and `caption`, as jsonl, csv or a list. Raises UsageError for a missing file or one without a
    caption of these images, DataError for an unreadable file.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file of captions", code="no-such-file")
    captions, of_other_images = [], 0
    for keys, text in _coco(path) if path.suffix == ".json" and _is_object(path) else _rows(path):
        image = next((ids[key] for key in keys if key in ids), None)
        if image is None:
            of_other_images += 1
        else:
            captions.append(HumanCaption(image, text))
    if not captions:
        raise UsageError(
            f"{path}: none of its {of_other_images:,} captions is of one of these images",
            code="nothing-to-do",
        )
    return HumanCaptions(tuple(captions), of_other_images)


def _is_object(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(64).lstrip()[:1] == b"{"


def _coco(path: Path) -> Iterator[tuple[list[str], str]]:
    """Yields the names that each caption's image may have, and the caption."""
    try:
        data: Any = json.loads(path.read_bytes())
        names_by_number = {
            image["id"]: [str(image[k]) for k in ("file_name", "coco_url") if image.get(k)]
            for image in data.get("images", ())
        }
        for entry in data["annotations"]:
            number = entry["image_id"]
            yield [*names_by_number.get(number, ()), str(number)], str(entry["caption"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise DataError(
            f"{path}: not captions in COCO's format ({reason})", code="bad-format"
        ) from None


def _rows(path: Path) -> Iterator[tuple[list[str], str]]:
    for number, row in read_rows(path):
        keys = [str(row[key]) for key in KEYS if row.get(key) not in (None, "")]
        if not keys or not isinstance(row.get("caption"), str):
            raise DataError(
                f"{path}:{number}: a row needs `image` and `caption`", code="missing-field"
            )
        yield keys, row["caption"]
