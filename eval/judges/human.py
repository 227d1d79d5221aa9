"""`human`: labels that people gave, read from a file."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...specs import Spec
from . import FAILURES, Question, Verdict


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

    def judge(self, questions: Sequence[Question]) -> Iterator[tuple[Question, Verdict]]:
        for question in questions:
            case, name, probe = question.id.split("/")
            label = self.labels.get((case, name)) if probe == "original" else None
            if label is None:
                yield question, Verdict("missing", "no label")
            elif label not in question.labels and label not in FAILURES:
                message = f"label {label!r} is none of {', '.join(question.labels)}"
                yield question, Verdict("error", message)
            else:
                yield question, Verdict(label, label)


def read_labels(path: Path) -> Mapping[tuple[str, str], str]:
    """(case, question) -> label, from CSV or JSONL with `case`, `question`, `label`.

    Raises ValueError naming file and row for a missing column or two different labels.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no such file of labels")
    found: dict[tuple[str, str], str] = {}
    for number, record in enumerate(_records(path), 1):
        try:
            key, label = (str(record["case"]), str(record["question"])), str(record["label"])
        except KeyError as error:
            raise ValueError(f"{path}, record {number}: has no {error}") from None
        if found.setdefault(key, label) != label:
            raise ValueError(f"{path}, record {number}: {key[0]} has two labels")
    return found


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            yield from csv.DictReader(file)
            return
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except ValueError:
                raise ValueError(f"{path}:{number}: not JSON") from None
