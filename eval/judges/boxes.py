"""`boxes`: a judge that knows where things are, from boxes that people or a detector drew.

``boxes:instances.json`` reads COCO's format. It checks layouts without a language model: the boxes
of an image are found by its address or file name, which the question carries as the fact `url`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ...errors import DataError, UsageError
from ...specs import Spec
from ..core import Question, Verdict
from ..rules.boxes import Box, intersection
from . import OneByOne

MARGIN = 0.05
"""Horizontal distance of the centers, share of the width, below which nothing is left of anything.
"""
OVERLAP = 0.5
"""Shared area, share of the smaller box, from which two things are not apart."""

ImageBoxes = dict[str, list[Box]]
"""Class -> boxes of one image, as shares of its width and height."""


class BoxJudge(OneByOne):
    """Measures `order` and `gate` questions on the largest box of each subject."""

    def __init__(self, boxes: dict[str, ImageBoxes], digest: str) -> None:
        self.boxes = boxes
        """Address or file name of an image -> its boxes."""
        self.digest = digest

    @classmethod
    def from_spec(cls, spec: Spec) -> BoxJudge:
        """Raises UsageError for a spec without a file, DataError for one not in COCO's format."""
        if not spec.argument or spec.options:
            raise UsageError("boxes: write boxes:INSTANCES.json")
        path = Path(spec.argument)
        if not path.is_file():
            raise UsageError(f"{path}: no such file of boxes")
        data = path.read_bytes()
        try:
            boxes = _read(json.loads(data))
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise DataError(f"{path}: not COCO's format ({reason})") from None
        return cls(boxes, hashlib.sha256(data).hexdigest()[:12])

    def identity(self) -> dict[str, str]:
        return {"kind": "boxes", "version": "1", "boxes": self.digest}

    def verdict(self, question: Question) -> Verdict:
        url = question.facts.get("url", "")
        found = self.boxes.get(url) or self.boxes.get(url.rpartition("/")[2])
        if found is None:
            return Verdict("missing", f"no boxes of {url!r}")
        if question.task not in ("order", "gate"):
            return Verdict("error", f"boxes: can't answer {question.task}")
        classes = []
        for subject, fact in zip(question.subjects, ("first_kinds", "second_kinds"), strict=True):
            kinds = filter(None, question.facts.get(fact, "").split("|"))
            classes.append(found.keys() & {subject, *kinds})
        if classes[0] & classes[1]:
            return Verdict("error", f"no class tells {' and '.join(question.subjects)} apart")
        boxes = [[b for name in sorted(names) for b in found[name]] for names in classes]
        if question.facts.get("mirrored") == "yes":
            boxes = [[Box(1 - b.x2, b.y1, 1 - b.x1, b.y2) for b in group] for group in boxes]
        which, why = _measure(question, *boxes)
        return Verdict(question.labels[which], why)


def _measure(question: Question, first: list[Box], second: list[Box]) -> tuple[int, str]:
    """Number of the label that holds, and why."""
    gate = question.task == "gate"
    if not first or not second:
        return (1 if gate else 2), f"{len(first)} and {len(second)} boxes"
    # Rounded, so that boxes of one size stay equal wherever they are: the left one counts.
    a, b = (max(group, key=lambda box: (round(box.area, 9), -box.x1)) for group in (first, second))
    across, down = (a.center[axis] - b.center[axis] for axis in (0, 1))
    smaller = min(a.area, b.area)
    shared = intersection(a, b) / smaller if smaller else 0.0
    why = f"across {across:+.3f}, down {down:+.3f}, shared {shared:.2f}"
    beside = abs(across) >= MARGIN and abs(across) >= abs(down)
    if gate:
        aspect = question.facts.get("aspect", "")
        holds = {"existence": True, "separation": shared < OVERLAP, "topology": beside}[aspect]
        return (0 if holds else 1), why
    return (2 if not beside else 0 if across < 0 else 1), why


def _read(data: Any) -> dict[str, ImageBoxes]:
    names = {entry["id"]: str(entry["name"]) for entry in data["categories"]}
    images = {entry["id"]: entry for entry in data["images"]}
    found: dict[str, ImageBoxes] = {}
    for image in images.values():
        boxes: ImageBoxes = {}
        for key in ("file_name", "coco_url", "url"):
            if image.get(key):
                found[str(image[key])] = boxes
    for entry in data["annotations"]:
        if entry.get("iscrowd"):
            continue
        image = images[entry["image_id"]]
        left, top, width, height = (float(v) for v in entry["bbox"])
        w, h = float(image["width"]), float(image["height"])
        box = Box(left / w, top / h, (left + width) / w, (top + height) / h)
        key = str(image.get("file_name") or image.get("coco_url") or image["url"])
        found[key].setdefault(names[entry["category_id"]], []).append(box)
    return found
