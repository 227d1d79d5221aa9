"""`boxes`: a judge that knows where things are, from boxes that people or a detector drew.

``boxes:instances.json`` reads COCO's format. With it a rate of layouts is checked without any
language model: the boxes of a picture are found by its address or file name, which the question
brings along as the fact `url`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...specs import Spec
from ..core import Question, Verdict

MARGIN = 0.05
"""Horizontal distance of centres, share of the width, below which nothing is left of anything."""
OVERLAP = 0.5
"""Shared area, share of the smaller box, from which two things aren't apart."""


@dataclass(frozen=True)
class Box:
    """Where one thing is, in [0, 1] of the picture's width and height."""

    left: float
    top: float
    width: float
    height: float

    @property
    def area(self) -> float:
        return self.width * self.height

    @property
    def centre(self) -> tuple[float, float]:
        return self.left + self.width / 2, self.top + self.height / 2

    def mirrored(self) -> Box:
        return Box(1 - self.left - self.width, self.top, self.width, self.height)

    def shared(self, other: Box) -> float:
        """Area that both cover, as a share of the smaller one."""
        width = min(self.left + self.width, other.left + other.width) - max(self.left, other.left)
        height = min(self.top + self.height, other.top + other.height) - max(self.top, other.top)
        smaller = min(self.area, other.area)
        return max(0.0, width) * max(0.0, height) / smaller if smaller else 0.0


class BoxJudge:
    """Measures `order` and `gate` questions on the largest box of each subject."""

    def __init__(self, boxes: dict[str, dict[str, list[Box]]], digest: str) -> None:
        self.boxes = boxes
        """Address or file name of a picture -> class -> boxes."""
        self.digest = digest

    @classmethod
    def from_spec(cls, spec: Spec) -> BoxJudge:
        """Raises ValueError for a file that isn't COCO's format."""
        if not spec.argument or spec.options:
            raise ValueError("boxes: write boxes:INSTANCES.json")
        path = Path(spec.argument)
        if not path.is_file():
            raise ValueError(f"{path}: no such file of boxes")
        data = path.read_bytes()
        try:
            boxes = _read(json.loads(data))
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise ValueError(
                f"{path}: not COCO's format ({type(error).__name__}: {error})"
            ) from None
        return cls(boxes, hashlib.sha256(data).hexdigest()[:12])

    def identity(self) -> dict[str, str]:
        return {"kind": "boxes", "version": "1", "boxes": self.digest}

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            yield question, self._verdict(question)

    def _verdict(self, question: Question) -> Verdict:
        url = question.facts.get("url", "")
        found = self.boxes.get(url) or self.boxes.get(url.rpartition("/")[2])
        if found is None:
            return Verdict("missing", f"no boxes of {url!r}")
        if question.task not in ("order", "gate"):
            return Verdict("error", f"boxes: can't answer {question.task}")
        classes = [self._classes(question, which, found) for which in (0, 1)]
        if classes[0] & classes[1]:
            return Verdict("error", f"no class tells {' and '.join(question.subjects)} apart")
        boxes = [[b for name in sorted(names) for b in found[name]] for names in classes]
        if question.facts.get("mirrored") == "yes":
            boxes = [[b.mirrored() for b in group] for group in boxes]
        which, why = _measure(question, *boxes)
        return Verdict(question.labels[which], why)

    def _classes(self, question: Question, which: int, found: dict[str, list[Box]]) -> set[str]:
        """Classes of the picture that a subject may be: its name, or what it is a kind of."""
        kinds = question.facts.get(("first_kinds", "second_kinds")[which], "")
        names = {question.subjects[which], *filter(None, kinds.split("|"))}
        return names & set(found)


def _measure(question: Question, first: list[Box], second: list[Box]) -> tuple[int, str]:
    """Number of the label that holds, and why."""
    gate = question.task == "gate"
    aspect = question.facts.get("aspect", "")
    if not first or not second:
        return (1 if gate else 2), f"{len(first)} and {len(second)} boxes"
    a, b = (max(group, key=lambda box: (box.area, -box.left)) for group in (first, second))
    across, down = (a.centre[axis] - b.centre[axis] for axis in (0, 1))
    why = f"across {across:+.3f}, down {down:+.3f}, shared {a.shared(b):.2f}"
    beside = abs(across) >= MARGIN and abs(across) >= abs(down)
    if gate:
        holds = {"existence": True, "separation": a.shared(b) < OVERLAP, "topology": beside}[aspect]
        return (0 if holds else 1), why
    return (2 if not beside else 0 if across < 0 else 1), why


def _read(data: Any) -> dict[str, dict[str, list[Box]]]:
    names = {entry["id"]: str(entry["name"]) for entry in data["categories"]}
    images = {entry["id"]: entry for entry in data["images"]}
    found: dict[str, dict[str, list[Box]]] = {}
    for image in images.values():
        boxes: dict[str, list[Box]] = {}
        for key in ("file_name", "coco_url", "url"):
            if image.get(key):
                found[str(image[key])] = boxes
    for entry in data["annotations"]:
        if entry.get("iscrowd"):
            continue
        image = images[entry["image_id"]]
        left, top, width, height = (float(v) for v in entry["bbox"])
        w, h = float(image["width"]), float(image["height"])
        box = Box(left / w, top / h, width / w, height / h)
        key = str(image.get("file_name") or image.get("coco_url") or image["url"])
        found[key].setdefault(names[entry["category_id"]], []).append(box)
    return found
