"""What people said of samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from ...tables import RowError, parse, read_rows

VERDICTS = ("PASS", "FAIL", "UNDECIDABLE")


class _LabelRow(BaseModel):
    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    sample_id: str = Field(min_length=1)
    verdict: Literal["PASS", "FAIL", "UNDECIDABLE"] = Field(
        validation_alias=AliasChoices("human_verdict", "label", "verdict")
    )
    annotator: str = ""
    clicked: str | None = None


@dataclass(frozen=True)
class Label:
    """One person's verdict on one sample."""

    sample_id: str
    """What was labelled."""
    verdict: str
    """PASS, FAIL or UNDECIDABLE."""
    annotator: str
    """Who; empty where the file does not say."""


def read_labels(path: Path) -> list[Label]:
    """Labels from `.jsonl`, `.json` or `.csv` with sample_id and human_verdict (or label).

    A person's later click on a sample (a row with `clicked`) replaces the earlier one. Raises
    RowError for a row that does not fit, and for a sample that a person labels twice otherwise.
    """
    found: dict[tuple[str, str], Label] = {}
    for number, row in read_rows(path):
        one = parse(_LabelRow, row, path, number)
        key = (one.sample_id, one.annotator)
        if key in found and one.clicked is None:
            who = f" by {one.annotator!r}" if one.annotator else ""
            raise RowError(
                f"{path}:{number}: sample_id: {one.sample_id!r} is labelled twice{who}; keep one"
            )
        found[key] = Label(one.sample_id, one.verdict, one.annotator)
    return list(found.values())


def refuse_unknown(labels: Iterable[Label], known: set[str], path: Path) -> None:
    """Raises RowError where a label is of a sample that is not there."""
    unknown = sorted({label.sample_id for label in labels} - known)
    if unknown:
        raise RowError(
            f"{path}: labels for {len(unknown)} unknown samples, the first {unknown[0]!r}: "
            f"give the labels of this run only"
        )


def consensus(labels: Sequence[Label]) -> dict[str, str]:
    """Sample -> what most of its annotators say; UNDECIDABLE where they are split evenly."""
    votes: dict[str, Counter[str]] = {}
    for label in labels:
        votes.setdefault(label.sample_id, Counter())[label.verdict] += 1
    return {sample: _winner(count) for sample, count in votes.items()}


def _winner(votes: Mapping[str, int]) -> str:
    most = max(votes.values())
    winners = [verdict for verdict, count in votes.items() if count == most]
    return winners[0] if len(winners) == 1 else "UNDECIDABLE"


def by_annotator(labels: Sequence[Label]) -> dict[str, dict[str, str]]:
    """Annotator -> sample -> verdict."""
    table: dict[str, dict[str, str]] = {}
    for label in labels:
        table.setdefault(label.annotator, {})[label.sample_id] = label.verdict
    return dict(sorted(table.items()))
