"""`human`: labels that people gave, read from a file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

from ...human_labels import Label, read_labels, single_labels
from ...parsing import RowError
from ...specs import Options, Spec
from ..core import FAILURES, ORIGINAL, Question, Verdict
from . import CallPlan, OneByOne


class HumanJudge(OneByOne):
    """Answers with the label in a file; a question without a label is `missing`, and so is one
    about another image than the labeled one, where the file names images."""

    argument: ClassVar[str] = "LABELS.csv"

    def __init__(self, path: Path) -> None:
        """Raises RowError for rows that are no labels or name no question, and two labels of one
        question about one image that differ."""
        of_images: dict[str, list[Label]] = {}
        for label in read_labels(path):
            if not label.question:
                raise RowError(f"{label.place}: question: missing", code="missing-field")
            of_images.setdefault(label.image, []).append(label)
        self.labels = {image: single_labels(labels) for image, labels in of_images.items()}
        self.digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]

    @classmethod
    def from_spec(cls, spec: Spec, options: Options, plan: CallPlan | None = None) -> HumanJudge:
        return cls(Path(spec.argument))

    def identity(self) -> dict[str, str]:
        return {"kind": "human", "labels": self.digest}

    def verdict(self, question: Question) -> Verdict:
        key = question.case, question.name
        label = None
        if question.probe == ORIGINAL:
            of_image = self.labels.get(question.digest, {})
            label = of_image.get(key, self.labels.get("", {}).get(key))
        if label is None:
            return Verdict("missing", "no label of this image")
        if label not in question.labels and label not in FAILURES:
            return Verdict("error", f"label {label!r} is none of {', '.join(question.labels)}")
        return Verdict(label, label)
