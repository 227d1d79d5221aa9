"""`human`: labels that people gave, read from a file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ...specs import Spec
from ...tables import read_rows
from ..core import FAILURES, ORIGINAL, Question, Verdict


class HumanJudge:
    """Answers with the label of a file; a question that nobody labelled is `missing`."""

    def __init__(self, path: Path) -> None:
        self.labels = read_labels(path)
        self.digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]

    @classmethod
    def from_spec(cls, spec: Spec) -> HumanJudge:
        if not spec.argument or spec.options:
            raise ValueError("human: write human:LABELS.csv")
        return cls(Path(spec.argument))

    def identity(self) -> dict[str, str]:
        return {"kind": "human", "labels": self.digest}

    def judge(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            key = question.case, question.name
            label = self.labels.get(key) if question.probe == ORIGINAL else None
            if label is None:
                yield question, Verdict("missing", "no label")
            elif label not in question.labels and label not in FAILURES:
                message = f"label {label!r} is none of {', '.join(question.labels)}"
                yield question, Verdict("error", message)
            else:
                yield question, Verdict(label, label)


def read_labels(
    path: Path, pictures: Mapping[str, str] | None = None, several: bool = False
) -> Mapping[tuple[str, str], str]:
    """(case, question) -> label, from CSV, JSON or JSONL with `case`, `question` and `label`.

    Runs of one suite share their cases, so a row may say in `image` which picture it is about
    (SHA-256): given `pictures` (case -> SHA-256), rows about others are left out. With `several`
    runs each row must say so. Raises ValueError naming file and line for a missing column or two
    different labels.
    """
    found: dict[tuple[str, str], str] = {}
    for number, row in read_rows(path):
        try:
            key, label = (str(row["case"]), str(row["question"])), str(row["label"])
        except KeyError as error:
            raise ValueError(f"{path}:{number}: has no {error}") from None
        picture = row.get("image")
        if several and not picture:
            raise ValueError(
                f"{path}:{number}: has no `image`, the SHA-256 of the picture that was labelled; "
                f"without it, give the labels with one run at a time"
            )
        if picture and pictures is not None and pictures.get(key[0]) != picture:
            continue
        if found.setdefault(key, label) != label:
            raise ValueError(f"{path}:{number}: {key[0]} has two labels")
    return found
