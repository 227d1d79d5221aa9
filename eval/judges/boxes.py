"""`boxes`: a judge that knows where things are, from boxes that people or a detector drew.

``boxes:instances.json`` reads COCO's format. It checks layouts without a language model: the boxes
of an image are found by its address or file name, which the question carries as the fact `url`.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from ...specs import Options, Spec
from ..core import Question, Verdict
from ..geometry.boxes import Box, intersection, is_apart, is_beside
from ..geometry.instances import Instances
from . import CallPlan, OneByOne

ImageBoxes = dict[str, list[Box]]
"""Class -> boxes of one image, as shares of its width and height."""


class BoxJudge(OneByOne):
    """Measures `order` and `gate` questions on the largest box of each subject."""

    argument: ClassVar[str] = "INSTANCES.json"

    def __init__(self, boxes: dict[str, ImageBoxes], digest: str) -> None:
        self.boxes = boxes
        """Address or file name of an image -> its boxes."""
        self.digest = digest

    @classmethod
    def from_spec(cls, spec: Spec, options: Options, plan: CallPlan | None = None) -> BoxJudge:
        """Raises DataError for a file not in COCO's format."""
        instances = Instances.read(Path(spec.argument))
        boxes = {name: image.boxes for image in instances.images for name in image.names}
        return cls(boxes, instances.digest)

    def identity(self) -> dict[str, str]:
        return {"kind": "boxes", "version": "1", "boxes": self.digest}

    def verdict(self, question: Question) -> Verdict:
        url = question.facts.get("url", "")
        boxes_by_class = self.boxes.get(url, self.boxes.get(url.rpartition("/")[2]))
        if boxes_by_class is None:
            return Verdict("missing", f"no boxes of {url!r}")
        if question.task not in ("order", "gate"):
            return Verdict("error", f"boxes: can't answer {question.task}")
        classes = []
        for subject, fact in zip(question.subjects, ("first_kinds", "second_kinds"), strict=True):
            kinds = filter(None, question.facts.get(fact, "").split("|"))
            classes.append(boxes_by_class.keys() & {subject, *kinds})
        if classes[0] & classes[1]:
            return Verdict("error", f"no class tells {' and '.join(question.subjects)} apart")
        boxes = [[b for name in sorted(names) for b in boxes_by_class[name]] for names in classes]
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
    beside = is_beside(a, b)
    if gate:
        aspect = question.facts.get("aspect", "")
        holds = {"existence": True, "separation": is_apart(a, b), "topology": beside}[aspect]
        return (0 if holds else 1), why
    return (2 if not beside else 0 if across < 0 else 1), why
